"""Element loops over global memory become copies."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.stage import after, blocked, same
from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.passes.gpu import fills
from tl2npu.passes.gpu.element_copies import rewrite as element_copies

RNG = np.random.default_rng(7)
PARAMS = 'A: T.Tensor((60, 48), "float32"), W: T.Tensor((48,), "float32"), B: T.Tensor((60, 48), "float32")'
INPUT = {
    "A": RNG.standard_normal((60, 48)).astype(np.float32),
    "W": RNG.standard_normal(48).astype(np.float32),
}
TILE = 'a = T.alloc_shared((32, 48), "float32")\n'
LOAD = "for i, j in T.Parallel(32, 48):\n    a[i, j] = A[bx * 32 + i, j]\n"


def body_of(text: str) -> str:
    """What the launch runs."""
    return text.split(" as bx:\n")[1]


def staged(body: str, params: str = PARAMS, inputs: dict[str, np.ndarray] = INPUT) -> str:
    """The new body; both must compute the same."""
    return body_of(same(gpu_file(params, body), inputs, element_copies.to_copies, fills.rewrite))


@pytest.mark.parametrize(
    "index",
    ["bx * 32 + i, j", "i + bx * 32, j", "(bx * 32 + i), 0 + j", "bx * 16 + i + bx * 16, j", "32 * bx + i, j"],
)
def test_spellings_of_a_start(index: str) -> None:
    new = staged(f"{TILE}for i, j in T.Parallel(32, 48):\n    a[i, j] = A[{index}]\nT.copy(a, B[bx * 32, 0])")
    assert "T.Parallel" not in new
    assert new.count("T.copy(A[") == 1


def test_load_and_store() -> None:
    new = staged(TILE + LOAD + "for r, c in T.Parallel(32, 48):\n    B[bx * 32 + r, c] = a[r, c]")
    assert "T.copy(A[bx * 32, 0], a)\n            T.copy(a, B[bx * 32, 0])\n" in new
    assert "Parallel" not in new


def test_a_file_with_slices_gets_slices() -> None:
    new = staged(TILE + LOAD + "T.copy(a, B[bx * 32 : bx * 32 + 32, 0:48])")
    assert "T.copy(A[bx * 32 : bx * 32 + 32, :], a)" in new


def test_names_bound_in_the_loop() -> None:
    new = staged(
        TILE
        + """for i, j in T.Parallel(32, 48):
    row = bx * 32 + i
    if row < 60:
        B[row, j] = A[row, j] * W[j]
"""
    )
    assert "row" not in new
    assert "T.copy(W[0], w_tile)" in new


GUARDED = {
    "choice": "    a[i, j] = T.if_then_else(bx * 32 + i < 60, A[bx * 32 + i, j], 0)",
    "python choice": "    a[i, j] = A[bx * 32 + i, j] if bx * 32 + i < 60 else 0.0",
    "if": "    if bx * 32 + i < 60:\n        a[i, j] = A[bx * 32 + i, j]\n    else:\n        a[i, j] = 0",
    "turned": "    if 60 > i + bx * 32:\n        a[i, j] = A[bx * 32 + i, j]\n    else:\n        a[i, j] = 0",
    "bound minus start": "    a[i, j] = T.if_then_else(i < 60 - bx * 32, A[bx * 32 + i, j], 0)",
    "two": "    a[i, j] = T.if_then_else((bx * 32 + i < 60) & (j < 48), A[bx * 32 + i, j], 0)",
    "less or equal": "    a[i, j] = T.if_then_else(bx * 32 + i <= 59, A[bx * 32 + i, j], 0)",
}


@pytest.mark.parametrize("guard", GUARDED)
def test_tail_guards_go(guard: str) -> None:
    new = staged(f"{TILE}for i, j in T.Parallel(32, 48):\n{GUARDED[guard]}\nT.copy(a, B[bx * 32, 0])")
    assert "T.Parallel" not in new
    assert "if" not in new


def test_another_bound_is_no_tail() -> None:
    text = gpu_file(
        PARAMS,
        f"""{TILE}for i, j in T.Parallel(32, 48):
    if bx * 32 + i < 50:
        a[i, j] = A[bx * 32 + i, j]
    else:
        a[i, j] = 0
T.copy(a, B[bx * 32, 0])""",
    )
    assert "50" in body_of(same(text, INPUT, element_copies.to_copies, fills.rewrite))


def test_rows_stored_under_a_condition() -> None:
    new = staged(
        TILE + LOAD + "for i, j in T.Parallel(32, 48):\n    if i < 20:\n        B[bx * 32 + i, j] = a[i, j] * W[j]"
    )
    assert "for i in T.serial(32):\n                if i < 20:\n                    T.copy(b_tile[i, :], B[" in new


def test_a_tile_that_was_filled_keeps_its_guard() -> None:
    body = f"""{TILE}T.fill(a, 5.0)
for i, j in T.Parallel(32, 48):
    if bx * 32 + i < 60:
        a[i, j] = A[bx * 32 + i, j]
T.copy(a, B[bx * 32, 0])"""
    assert "if bx * 32 + i < 60:" in staged(body)


def test_operands_are_loaded_once_outside_of_the_loops() -> None:
    new = staged(
        TILE
        + """for k in T.serial(2):
    T.copy(A[bx * 32, 0], a)
    for i, j in T.Parallel(32, 48):
        a[i, j] = a[i, j] * W[j] + W[3]
    for i, j in T.Parallel(32, 48):
        B[bx * 32 + i, j] = a[i, j] + W[j]
"""
    )
    before, inside = new.split("for k in")
    assert before.count("T.copy(W[0], ") == 2
    assert "W[" not in inside
    assert "w_value = W[3]" in before


def test_operands_of_tensors_that_are_written_are_loaded_where_they_are_read() -> None:
    new = staged(
        TILE
        + """T.copy(A[bx * 32, 0], a)
T.copy(a, B[bx * 32, 0])
for k in T.serial(2):
    for i, j in T.Parallel(32, 48):
        B[bx * 32 + i, j] += a[i, j]
"""
    )
    assert "T.copy(B[bx * 32, 0], b_tile)" in new.split("for k in")[1]


def test_middle_axes() -> None:
    params = 'Q: T.Tensor((2, 60, 4, 16), "float32"), O: T.Tensor((2, 60, 4, 16), "float32")'
    body = """q = T.alloc_fragment((32, 16), "float32")
for k in T.serial(2):
    for i, d in T.Parallel(32, 16):
        q[i, d] = Q[bx, k * 32 + i, 3, d] * 0.5
    for i, d in T.Parallel(32, 16):
        if k * 32 + i < 60:
            O[bx, k * 32 + i, 3, d] = q[i, d]
"""
    inputs = {"Q": RNG.standard_normal((2, 60, 4, 16)).astype(np.float32)}
    new = agree(gpu_file(params, body), inputs)
    assert "Q[bx, k * 32 : k * 32 + 32, 3, :]" in new


@pytest.mark.parametrize("index", ["I[bx * 8 + i]", "idx"])
def test_rows_picked_by_an_index(index: str) -> None:
    params = 'K: T.Tensor((30, 16), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((16, 16), "float32")'
    bind = "    idx = I[bx * 8 + i]\n" if index == "idx" else ""
    body = f"""k = T.alloc_shared((8, 16), "float32")
for i, j in T.Parallel(8, 16):
{bind}    k[i, j] = K[{index}, j]
T.copy(k, O[bx * 8, 0])
"""
    inputs = {
        "K": RNG.standard_normal((30, 16)).astype(np.float32),
        "I": np.array([3, 29, -1, 0, 7, 30, 77, 2, 1, 2, 3, 4, 5, 6, 7, -1], np.int32),
    }
    new = agree(gpu_file(params, body), inputs)
    assert "T.copy(I[bx * 8], i_tile)" in new
    assert "if i_tile[i] >= 0 and i_tile[i] < 30:" in new
    assert "T.copy(K[i_tile[i], :], k[i, :])" in new


def test_rows_picked_under_a_condition() -> None:
    params = 'K: T.Tensor((30, 16), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((16, 16), "float32")'
    body = """k = T.alloc_shared((8, 16), "float32")
index = T.alloc_shared((8,), "int32")
T.copy(I[bx * 8], index)
for i, j in T.Parallel(8, 16):
    row = index[i]
    k[i, j] = T.if_then_else((row > -1) & (row <= 20), K[row, j], 0)
T.copy(k, O[bx * 8, 0])
"""
    inputs = {"K": RNG.standard_normal((30, 16)).astype(np.float32), "I": np.arange(-4, 28, 2, dtype=np.int32)}
    new = agree(gpu_file(params, body), inputs)
    assert "if (index[i] > -1) & (index[i] <= 20):" in new
    assert ">= 0" not in new


def test_columns_of_a_tensor() -> None:
    params = 'G: T.Tensor((2, 60, 4, 3), "float32"), O: T.Tensor((2, 60, 4), "float32")'
    body = """g = T.alloc_fragment((32,), "float32")
for k in T.serial(2):
    for i in T.Parallel(32):
        g[i] = G[bx, k * 32 + i, 2, 1]
    for i in T.Parallel(32):
        g[i] = g[i] * 2.0
    for i in T.Parallel(32):
        if k * 32 + i < 60:
            O[bx, k * 32 + i, 1] = g[i]
"""
    new = agree(gpu_file(params, body), {"G": RNG.standard_normal((2, 60, 4, 3)).astype(np.float32)})
    assert "if k * 32 + i + vid * 16 < 60:" in new  # the row of the tile: each vector core counts its own half
    assert "T.copy(o_rows, O[bx, k * 32 : k * 32 + 32, 1:2])" in new


def test_copies_of_columns_of_a_tensor() -> None:
    params = 'G: T.Tensor((2, 64, 4), "float32"), O: T.Tensor((2, 64, 4), "float32")'
    body = """g = T.alloc_fragment((32,), "float32")
for k in T.serial(2):
    T.copy(G[bx, k * 32 : (k + 1) * 32, 2], g)
    T.copy(g, O[bx, k * 32 : (k + 1) * 32, 1])
"""
    new = agree(gpu_file(params, body), {"G": RNG.standard_normal((2, 64, 4)).astype(np.float32)})
    assert "T.copy(G[bx, k * 32 : k * 32 + 32, 2:3], g_column)" in new


@pytest.mark.parametrize(
    "stores",
    [
        "B[bx * 32 + j, i] = a[i, j]",
        "B[bx * 32 + j, i] = T.exp(a[i, j]) * v[i]",
        "if bx * 32 + j < 50:\n        B[bx * 32 + j, i] = a[i, j]",
        "C[i, bx * 32 + j] = a[i, j] + 1.0\n    B[bx * 32 + j, i] = a[i, j]",
        "T.atomic_add(B[bx * 32 + j, i], a[i, j])",
    ],
)
def test_transposed_stores(stores: str) -> None:
    params = ", ".join(
        f'{n}: T.Tensor({s}, "float32")' for n, s in {"A": (16, 50), "B": (50, 16), "C": (16, 50)}.items()
    )
    body = f"""a = T.alloc_fragment((16, 32), "float32")
v = T.alloc_fragment((16,), "float32")
T.fill(v, 3.0)
T.copy(A[0, bx * 32], a)
for i, j in T.Parallel(16, 32):
    {stores}
"""
    zeros = {"B": np.zeros((50, 16), np.float32), "C": np.zeros((16, 50), np.float32)}
    inputs = {"A": RNG.standard_normal((16, 50)).astype(np.float32), **zeros}
    agree(gpu_file(params, body, jit="@tilelang.jit"), inputs)


@pytest.mark.parametrize(
    "load",
    ["T.copy(G[0, k * 32 : (k + 1) * 32, 2], g)", "for i in T.Parallel(32):\n        g[i] = G[0, k * 32 + i, 2]"],
)
def test_a_column_of_bytes_is_zero_behind_the_end_without_a_fill(load: str) -> None:
    params = 'G: T.Tensor((2, 40, 4), "uint8"), A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")'
    body = f"""g = T.alloc_fragment((32,), "uint8")
a = T.alloc_fragment((32, 32), "float32")
for k in T.serial(2):
    T.copy(A[bx * 32, k * 32], a)
    {load}
    for i, j in T.Parallel(32, 32):
        a[i, j] = T.if_then_else(g[j] != 0, a[i, j], -1.0)
    T.copy(a, O[bx * 32, k * 32])
"""
    inputs = {
        "G": RNG.integers(0, 2, (2, 40, 4)).astype(np.uint8),
        "A": RNG.standard_normal((64, 64)).astype(np.float32),
    }
    assert "T.tile.fill(g" not in agree(gpu_file(params, body), inputs)


@pytest.mark.parametrize(
    "store",
    [
        "T.copy(total, O[0, bx * 32 : (bx + 1) * 32, 1, 2])",
        "for i in T.Parallel(32):\n    O[0, bx * 32 + i, 1, 2] = total[i]",
        "for i in T.Parallel(32):\n    if bx * 32 + i < 40:\n        O[0, bx * 32 + i, 1, 2] = total[i]",
    ],
)
def test_columns_in_front_of_two_axes_end_with_the_tensor(store: str) -> None:
    params = 'G: T.Tensor((40, 16), "float32"), O: T.Tensor((2, 40, 2, 4), "float32")'
    body = """g = T.alloc_fragment((32, 16), "float32")
total = T.alloc_fragment((32,), "float32")
T.copy(G[bx * 32, 0], g)
T.reduce_sum(g, total, 1)
"""
    text = gpu_file(params, body + store, jit="@tilelang.jit")
    new = agree(text, {"G": RNG.standard_normal((40, 16)).astype(np.float32), "O": np.zeros((2, 40, 2, 4), np.float32)})
    assert new.count("if bx * 32 + i < 40:") == 1


@pytest.mark.parametrize("tail", ["", "bx * 32 + i < 40 and "], ids=["", "written out"])
def test_rows_under_a_condition_in_front_of_two_axes_end_with_the_tensor(tail: str) -> None:
    params = (
        'G: T.Tensor((2, 40, 3, 16), "float32"), M: T.Tensor((64,), "int32"), O: T.Tensor((2, 40, 3, 16), "float32")'
    )
    body = f"""g = T.alloc_shared((32, 16), "float32")
T.copy(G[0, bx * 32 : (bx + 1) * 32, 1, :], g)
for i, j in T.Parallel(32, 16):
    if {tail}M[bx * 32 + i] > 0:
        O[0, bx * 32 + i, 1, j] = g[i, j]
"""
    inputs = {
        "G": RNG.standard_normal((2, 40, 3, 16)).astype(np.float32),
        "M": RNG.integers(0, 2, 64).astype(np.int32),
        "O": np.zeros((2, 40, 3, 16), np.float32),
    }
    new = agree(gpu_file(params, body, jit="@tilelang.jit"), inputs)
    assert new.count("if bx * 32 + i + vid * 16 < 40 and M[bx * 32 + i + vid * 16] > 0:") == 1


@pytest.mark.parametrize(
    ("start", "guard", "tested"),
    [
        ("bx * 32", "i < 20", True),
        ("bx * 32", "bx * 32 + i < 33", True),
        ("first", "i < 20", False),
        ("first", "first + i < last", False),
        ("bx * 32", "bx * 32 + i < last", False),
        ("8", "i < 9", True),
    ],
)
def test_conditions_on_rows_of_a_sequence_say_where_it_ends(start: str, guard: str, tested: bool) -> None:
    params = 'G: T.Tensor((64, 16), "float32"), S: T.Tensor((3,), "int32"), O: T.Tensor((40, 3, 16), "float32")'
    body = f"""g = T.alloc_shared((32, 16), "float32")
T.copy(G[bx * 32, 0], g)
first = S[bx]
last = S[bx + 1]
for i, j in T.Parallel(32, 16):
    if {guard}:
        O[{start} + i, 1, j] = g[i, j]
"""
    inputs = {
        "G": RNG.standard_normal((64, 16)).astype(np.float32),
        "S": np.array([0, 20, 40], np.int32),
        "O": np.zeros((40, 3, 16), np.float32),
    }
    launch = "T.Kernel(2, threads=128) as bx" if start != "8" else "T.Kernel(1, threads=128) as bx"
    new = agree(gpu_file(params, body, launch=launch, jit="@tilelang.jit"), inputs)
    asked = re.search(rf"if {re.escape(start)} \+ i[^<]* < 40 and ", new)  # of rows that the vector cores share
    assert (asked is not None) is tested


def test_loads_and_stores_that_convert() -> None:
    params = 'A: T.Tensor((64, 48), "float16"), B: T.Tensor((64, 48), "float16")'
    body = """a = T.alloc_fragment((32, 48), "float32")
for i, j in T.Parallel(32, 48):
    a[i, j] = T.cast(A[bx * 32 + i, j], "float32")
for i, j in T.Parallel(32, 48):
    a[i, j] = a[i, j] * 2.0
T.copy(a, B[bx * 32, 0])
"""
    new = agree(gpu_file(params, body), {"A": RNG.standard_normal((64, 48)).astype(np.float16)}, rtol=1e-2)
    assert "T.copy(a, a_half)" in new or "T.copy(a, a_half_2)" in new


def test_columns_of_a_tile_go_through_a_part() -> None:
    params = 'A: T.Tensor((64, 16), "float32"), B: T.Tensor((64, 32), "float32")'
    body = """a = T.alloc_shared((32, 32), "float32")
T.copy(A[bx * 32, 0], a[:, 0:16])
T.copy(A[bx * 32, 0], a[:, 16:32])
for i, j in T.Parallel(32, 32):
    a[i, j] = a[i, j] + 1.0
T.copy(a, B[bx * 32, 0])
"""
    new = agree(gpu_file(params, body), {"A": RNG.standard_normal((64, 16)).astype(np.float32)})
    assert "T.copy(a_part, a[:, 0:16])" in new


def test_a_tile_used_in_column_parts_is_two_tiles() -> None:
    params = 'Q: T.Tensor((32, 96), "float16"), K: T.Tensor((32, 96), "float16"), S: T.Tensor((32, 32), "float32")'
    body = """q = T.alloc_shared((16, 96), "float16")
k = T.alloc_shared((32, 96), "float16")
s = T.alloc_fragment((16, 32), "float32")
T.copy(Q[bx * 16 : bx * 16 + 16, :64], q[:, :64])
T.copy(Q[bx * 16 : bx * 16 + 16, 64:], q[:, 64:])
T.copy(K[0:32, :64], k[:, :64])
T.copy(K[0:32, 64:], k[:, 64:])
T.clear(s)
T.gemm(q[:, :64], k[:, :64], s, transpose_B=True)
T.gemm(q[:, 64:], k[:, 64:], s, transpose_B=True)
T.copy(s, S[bx * 16, 0])
"""
    inputs = {name: RNG.standard_normal((32, 96)).astype(np.float16) for name in ("Q", "K")}
    new = agree(gpu_file(params, body), inputs, rtol=1e-2, atol=1e-2)
    assert "q_right = T.alloc_shared((16, 32), " in new
    assert "q = " not in new


def test_from_tensor_to_tensor() -> None:
    params = 'A: T.Tensor((64, 48), "float32"), B: T.Tensor((64, 48), "float16")'
    body = "T.copy(A[bx * 32 : (bx + 1) * 32, :], B[bx * 32 : (bx + 1) * 32, :])"
    new = agree(gpu_file(params, body), {"A": RNG.standard_normal((64, 48)).astype(np.float32)}, rtol=1e-2)
    assert "a_tile = T.alloc_shared([32, 48]" in new


def test_comments_stay() -> None:
    new = staged(TILE + "# load it\n" + LOAD + "# and store\nT.copy(a, B[bx * 32, 0])")
    assert "# load it\n            T.copy(A[" in new


def test_loops_backwards_are_inside_of_the_tensor() -> None:
    params = 'A: T.Tensor((64, 48), "float32"), B: T.Tensor((64, 48), "float32")'
    body = """a = T.alloc_shared((16, 48), "float32")
for k in T.serial(2):
    for i, j in T.Parallel(16, 48):
        a[i, j] = A[bx * 32 + (1 - k) * 16 + i, j]
    T.copy(a, B[bx * 32 + (1 - k) * 16, 0])
"""
    staged(body, params, {"A": RNG.standard_normal((64, 48)).astype(np.float32)})


REFUSED = {
    "transposed sum": "for i, j in T.Parallel(32, 48):\n    B[j, i] += a[i, j]",
    "stored before the beginning": "for i, j in T.Parallel(32, 48):\n    B[bx * 32 + i - 3, j] = a[i, j]",
    "picked column": "for i, j in T.Parallel(32, 48):\n    a[i, j] = A[bx * 32 + i, I[j]]",
    "same place": "for i, j in T.Parallel(32, 48):\n    B[bx, j] = a[i, j]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    params = PARAMS.replace("B:", 'I: T.Tensor((48,), "int32"), B:')
    text = gpu_file(params, TILE + "T.copy(A[bx * 32, 0], a)\n" + REFUSED[name] + "\nT.copy(a, B[bx * 32, 0])")
    assert blocked(text, element_copies.to_copies)[0] == "TL170"


def test_a_second_time_nothing_changes() -> None:
    new = after(gpu_file(PARAMS, TILE + LOAD + "T.copy(a, B[bx * 32, 0])"), element_copies.to_copies)
    assert after(new, element_copies.to_copies) == new


@pytest.mark.parametrize("at", ["0, k * 32 + i", "k * 32 + i, 1"])
def test_single_elements_stored_under_a_condition(at: str) -> None:
    params = 'G: T.Tensor((2, 64), "float32"), N: T.Tensor((2,), "int32"), O: T.Tensor((2, 64, 64), "float32")'
    body = f"""g = T.alloc_fragment((32,), "float32")
limit = N[bx]
for k in T.serial(2):
    T.copy(G[bx, k * 32], g)
    for i in T.Parallel(32):
        if k * 32 + i < limit:
            O[bx, {at}] = g[i] * 2.0
"""
    inputs = {
        "G": RNG.standard_normal((2, 64)).astype(np.float32),
        "N": np.array([5, 40], np.int32),
        "O": np.zeros((2, 64, 64), np.float32),
    }
    new = agree(gpu_file(params, body, jit="@tilelang.jit"), inputs)
    row = "i" if at.startswith("0") else "i + vid * 16"  # the elements of one row are for one vector core
    assert f"if k * 32 + {row} < limit:" in new


def test_a_column_and_a_tile_with_a_unit_axis() -> None:
    params = 'G: T.Tensor(shape, "float32"), O: T.Tensor(shape, "float32")'
    body = """g = T.alloc_shared((1, 32), "float32")
for k in T.serial(2):
    T.copy(G[bx, k * 32 : (k + 1) * 32, 2], g)
    T.copy(g, O[bx, k * 32 : (k + 1) * 32, 1])
"""
    text = gpu_file(params, body, args="last=True", factory="shape = (2, 60, 4) if last else (2, 4, 60)")
    new = agree(text, {"G": RNG.standard_normal((2, 60, 4)).astype(np.float32)})
    assert "g[0, i] = g_column[i, 0]" in new
    assert "o_rows[element, 0] = g[0, element]" in new


def test_padding_with_another_number() -> None:
    params = 'A: T.Tensor((60,), "float32"), B: T.Tensor((64,), "float32")'
    body = """a = T.alloc_fragment((32,), "float32")
for i in T.Parallel(32):
    a[i] = T.if_then_else(bx * 32 + i < 60, A[bx * 32 + i], 5)
for i in T.Parallel(32):
    a[i] = a[i] * 2.0
T.copy(a, B[bx * 32])
"""
    new = agree(gpu_file(params, body), {"A": RNG.standard_normal(60).astype(np.float32)})
    assert "T.copy(A[bx * 32], a, pad_value=5.0)" in new


def test_a_gemm_operand_is_padded_with_zeros_only() -> None:
    params = 'A: T.Tensor((60, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((64, 32), "float32")'
    body = """a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 32), "float16")
c = T.alloc_fragment((32, 32), "float32")
for i, j in T.Parallel(32, 32):
    a[i, j] = T.if_then_else(bx * 32 + i < 60, A[bx * 32 + i, j], 0)
T.copy(B, b)
T.clear(c)
T.gemm(a, b, c)
T.copy(c, C[bx * 32, 0])
"""
    inputs = {
        "A": RNG.standard_normal((60, 32)).astype(np.float16),
        "B": RNG.standard_normal((32, 32)).astype(np.float16),
    }
    new = agree(gpu_file(params, body), inputs, rtol=1e-2, atol=1e-2)
    assert "T.copy(A[bx * 32, 0], a)\n" in new
    other = after(gpu_file(params, body.replace("j], 0)", "j], 1)")), element_copies.to_copies)
    assert "pad_value" not in other


def test_picked_rows_of_a_gemm_operand() -> None:
    params = (
        'Q: T.Tensor((32, 64), "float16"), K: T.Tensor((80, 2, 64), "float16"), I: T.Tensor((2, 64), "int32"), '
        'S: T.Tensor((32, 64), "float32")'
    )
    body = """q = T.alloc_shared((16, 64), "float16")
k = T.alloc_shared((32, 64), "float16")
s = T.alloc_fragment((16, 32), "float32")
T.copy(Q[bx * 16, 0], q)
for t in T.serial(2):
    for r, c in T.Parallel(32, 64):
        k[r, c] = K[I[bx, t * 32 + r], 1, c]
    T.clear(s)
    T.gemm(q, k, s, transpose_B=True)
    for r, c in T.Parallel(16, 32):
        s[r, c] = s[r, c] * 0.5
    T.copy(s, S[bx * 16, t * 32])
"""
    inputs = {
        "Q": RNG.standard_normal((32, 64)).astype(np.float16),
        "K": RNG.standard_normal((80, 2, 64)).astype(np.float16),
        "I": RNG.integers(-1, 80, (2, 64)).astype(np.int32),
    }
    new = agree(gpu_file(params, body), inputs, rtol=1e-2, atol=1e-2)
    assert "T.copy(K[i_tile[r], 1, :], k_row)" in new
    assert "T.copy(k_row, k[r, :])" in new


@pytest.mark.parametrize(
    ("copies", "loops"),
    [
        ("T.copy(top, sums[:, k])", 1),
        ("T.copy(top, sums[:, k])\nT.copy(sums[:, k], top)", 2),
        ("T.copy(top, half[:, k])\nT.copy(half, sums)", 1),
        ("T.copy(top, sums[:, k : k + 1])", 1),
    ],
)
def test_columns_of_a_tile_and_vectors(copies: str, loops: int) -> None:
    """``T.copy(vector, tile[:, k])`` would put the vector into a row."""
    body = """
    a = T.alloc_shared((32, 8), "float32")
    top = T.alloc_fragment((32,), "float32")
    sums = T.alloc_fragment((32, 8), "float32")
    half = T.alloc_fragment((32, 8), "float16")
    T.fill(sums, 0)
    T.fill(half, 0)
    for k in T.serial(6):
        T.copy(A[bx * 32, k * 8], a)
        T.reduce_max(a, top, dim=1)
        COPIES
    T.copy(sums, B[bx * 32, 0])
    """
    lines = copies.replace("\n", "\n        ")
    new = agree(gpu_file(PARAMS, body.replace("COPIES", lines)), INPUT, threads="1")
    assert new.count(" in T.serial(32):") == loops


def test_copies_of_a_number_of_rows_that_the_kernel_computes() -> None:
    body = """
        x = T.alloc_shared((32, 64), 'float32')
        T.clear(x)
        rows = T.min(32, 80 - bx * 32)
        T.copy(X[bx * 32 : bx * 32 + rows, 0:64], x[:rows, 0:64])
        for i, j in T.Parallel(32, 64):
            x[i, j] = x[i, j] + 1.0
        T.copy(x[:rows, 0:64], Y[bx * 32 : bx * 32 + rows, 0:64])
    """
    params = "X: T.Tensor((80, 64), 'float32'), Y: T.Tensor((80, 64), 'float32')"
    text = gpu_file(params, body, launch="T.Kernel(3, threads=128) as bx")
    agree(text, {"X": np.random.default_rng(4).standard_normal((80, 64)).astype(np.float32)})


@pytest.mark.parametrize(
    ("load", "store"),
    [
        ("T.copy(X[bx : bx + 1, 128], x)", "T.copy(x, Y[bx, 0])"),
        ("T.copy(X[bx : bx + 1, bx * 16], x)", "T.copy(x, Y[bx : bx + 1, 0])"),
        ("T.copy(X[bx, 0], x)", "T.copy(x, Y[bx : bx + 1, 0])"),
        ("T.copy(X[bx, 100:228], x)", "T.copy(x, Y[bx : bx + 1, :])"),
    ],
)
@pytest.mark.parametrize("shape", ["(1, 128)", "(128,)"])
def test_regions_with_slices_and_single_indices(load: str, store: str, shape: str) -> None:
    """A GPU spreads an index to the tile where the region has no extent; the Ascend compiler takes one element."""
    body = f'x = T.alloc_shared({shape}, "float32")\n{load}\n{store}\n'
    params = 'X: T.Tensor((5, 300), "float32"), Y: T.Tensor((5, 128), "float32")'
    text = gpu_file(params, body, launch="T.Kernel(5, threads=128) as bx")
    given = np.arange(1500, dtype=np.float32).reshape(5, 300)
    starts = {"128]": [128] * 5, "16]": range(0, 80, 16), "0]": [0] * 5, "228]": [100] * 5}
    first = next(found for end, found in starts.items() if load.removesuffix(", x)").endswith(end))
    new = agree(text, {"X": given})
    wanted = np.stack([given[row, start : start + 128] for row, start in enumerate(first)])
    np.testing.assert_array_equal(run(new, {"X": given})["Y"], wanted)


@pytest.mark.parametrize("part", ["buf[0, :, :]", "buf[0, 0:16, 0:32]", "buf[0, 0:8, :]"])
def test_regions_with_slices_and_single_indices_for_a_part_of_a_tile(part: str) -> None:
    """A GPU takes all rows of the part; the Ascend compiler would take one."""
    params = 'A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")'
    body = f"""buf = T.alloc_shared((2, 16, 32), "float32")
o = T.alloc_fragment((16, 32), "float32")
T.clear(buf)
T.copy(A[bx * 16, 0:32], {part})
for k in T.serial(2):
    if k == 0:
        T.copy(A[bx * 16, 32:64], buf[1, :, :])
    for i, j in T.Parallel(16, 32):
        o[i, j] = buf[k, i, j] * 2.0
    T.copy(o, B[bx * 16, k * 32])
"""
    inputs = {"A": RNG.standard_normal((32, 64)).astype(np.float32)}
    new = agree(gpu_file(params, body, launch="T.Kernel(2, threads=128) as bx"), inputs)
    assert f"T.copy(A[bx * 16 : bx * 16 + {8 if '8' in part else 16}, 0:32], {part})" in new


def test_a_column_whose_length_has_a_name() -> None:
    """A store of ``V`` elements of a vector to a column: its length is a name of the factory, not a number."""
    body = """
    x = T.alloc_shared((bm, 64), "float32")
    s = T.alloc_fragment((bm,), "float32")
    T.copy(X[bx * V, 0], x)
    T.reduce_sum(x, s, dim=1)
    T.copy(s, Y[bx * V : (bx + 1) * V, 1])
    """
    params = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 4), "float32")'
    new = migrated(gpu_file(params, body, args="bm=32", factory="V = min(bm, 32)"))
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 7
    found = run(new, {"X": x, "Y": np.zeros((64, 4), np.float32)})["Y"]
    np.testing.assert_array_equal(found[:, 1], x.sum(axis=1))
    assert not found[:, [0, 2, 3]].any()


@pytest.mark.parametrize(("shape", "dtype"), [((4100,), "float16"), ((3, 100), "float32")])
def test_a_whole_tensor_is_copied_in_runs(shape: tuple[int, ...], dtype: str) -> None:
    """Of any size, and of another element type; the last run ends with the tensor, or with its row."""
    params = f'A: T.Tensor({shape}, "float16"), O: T.Tensor({shape}, "{dtype}")'
    text = gpu_file(params, "T.copy(A, O)\n", launch="T.Kernel(1, threads=128) as bx")
    values = np.arange(np.prod(shape)).reshape(shape).astype(np.float16)
    new = agree(text, {"A": values})
    assert "T.ceildiv" in new
    np.testing.assert_array_equal(run(new, {"A": values})["O"], values.astype(dtype))
