"""TL137: copies that only give a vector tile another name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file

PARAMS = 'X: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32"), O: T.Tensor((64, 64), "float32")'
HEAD = """
a = T.alloc_shared((64, 64), "float32")
b = T.alloc_fragment((64, 64), "float32")
s = T.alloc_fragment((64,), "float32")
T.copy(S, s)
"""
MUL = "for i, j in T.Parallel(64, 64):\n    {0}[i, j] = {0}[i, j] * 2.0"
INPUTS = {
    "X": np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32),
    "S": np.arange(64, dtype=np.float32),
}


def new_text(body: str) -> str:
    """The migrated kernel, compared with the old one."""
    return agree(gpu_file(PARAMS, HEAD + body, launch="T.Kernel(1, threads=128) as bx"), INPUTS)


@pytest.mark.parametrize(
    ("body", "there", "gone"),
    [
        (f"T.copy(X, a)\nT.copy(a, b)\n{MUL.format('b')}\nT.copy(b, O)", "T.copy(X, b)", "a = "),
        (f"T.copy(X, b)\n{MUL.format('b')}\nT.copy(b, a)\nT.copy(a, O)", "T.copy(b, O)", "a = "),
    ],
)
def test_one_tile_is_enough(body: str, there: str, gone: str) -> None:
    new = new_text(body)
    assert there in new
    assert gone not in new


def test_a_tile_between_is_left_out_where_its_value_is_not_wanted_again() -> None:
    """``a`` passes a value on to ``b``, and then holds another one; both are converted on their way."""
    tiles = {"x": "float32", "a": "float16", "b": "float16"}
    lines = [f'{name} = T.alloc_shared((64, 64), "{dtype}")' for name, dtype in tiles.items()]
    lines += ["T.copy(X, x)", "T.copy(x, a)", "T.copy(a, b)", MUL.format("x"), "T.copy(x, a)"]
    lines += ["T.copy(a, A)", "T.copy(b, B)"]
    typed = zip("XAB", tiles.values(), strict=True)
    params = ", ".join(f'{name}: T.Tensor((64, 64), "{dtype}")' for name, dtype in typed)
    new = agree(gpu_file(params, "\n".join(lines), launch="T.Kernel(1, threads=128) as bx"), INPUTS, rtol=1e-3)
    assert "T.copy(x, b)" in new
    assert "T.copy(a, b)" not in new


@pytest.mark.parametrize(
    "body",
    [
        # the loaded values are needed again
        f"T.copy(X, a)\nT.copy(a, b)\n{MUL.format('b')}\n"
        "for i, j in T.Parallel(64, 64):\n    b[i, j] += a[i, j]\nT.copy(b, O)",
        # the second tile is read after the load
        f"T.copy(X, b)\nT.copy(X, a)\n{MUL.format('b')}\nT.copy(b, O)\nT.copy(a, b)\nT.copy(b, O)",
        # the first tile changes before the second one is stored
        f"T.copy(X, b)\nT.copy(b, a)\n{MUL.format('b')}\nT.copy(b, O)\nT.copy(a, O)",
    ],
)
def test_both_tiles_are_needed(body: str) -> None:
    new = new_text(body)
    assert "T.copy(a, b)" in new or "T.copy(b, a)" in new


def test_no_load_into_a_tile_that_is_allocated_later() -> None:
    """The copy stays, or goes where both tiles are there."""
    later = 'T.copy(X, a)\nc = T.alloc_fragment((64, 64), "float32")\nT.clear(c)\n'
    assign = "for i, j in T.Parallel(64, 64):\n    c[i, j] = a[i, j]\n"
    new = new_text(later + assign + MUL.format("c") + "\n" + MUL.format("a") + "\nT.copy(c, O)\nT.copy(a, O)")
    assert "T.copy(X, a)" in new
    assert "T.copy(X, c)" not in new_text(later + assign + MUL.format("c") + "\nT.copy(c, O)")


PRODUCT = (
    'Q: T.Tensor((64, 64), "float16"), K: T.Tensor((64, 64), "float16"), '
    'S: T.Tensor((64,), "float32"), O: T.Tensor((64, 64), "float32")'
)
GEMM = """
q = T.alloc_shared((64, 64), "float16")
k = T.alloc_shared((64, 64), "float16")
s = T.alloc_fragment((64,), "float32")
p = T.alloc_fragment((64, 64), "float32")
T.copy(Q, q)
T.copy(K, k)
T.copy(S, s)
T.gemm(q, k, p, clear_accum=True)
for i, j in T.Parallel(64, 64):
    p[i, j] = {0}
T.copy(p, O)
"""


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("p[i, j] * 0.5 - s[i]", 0),  # the whole product is scaled first
        ("T.exp(p[i, j] * 0.5)", 0),
        ("(p[i, j] - s[i]) * 0.5", 1),  # the first reader goes row by row: the product would be loaded again for each
    ],
)
def test_a_product_lands_in_its_tile_which_is_read_as_a_whole(value: str, taken: int) -> None:
    draw = np.random.default_rng(5)
    inputs = {name: draw.normal(size=(64, 64)).astype(np.float16) for name in "QK"} | {"S": INPUTS["S"]}
    text = gpu_file(PRODUCT, GEMM.format(value), launch="T.Kernel(1, threads=128) as bx")
    new = agree(text, inputs, rtol=1e-3, atol=1e-2)
    assert "T.copy(p_l0c, p)" in new
    assert new.count("T.tile.mul(p, p, 1.0)") == taken


PARTS = """
q = T.alloc_shared((64, 64), "float16")
k = T.alloc_shared((64, 64), "float16")
p = T.alloc_fragment((64, 64), "float32")
r = T.alloc_fragment((64, 64), "float32")
s = T.alloc_fragment((64,), "float32")
T.copy(Q, q)
T.copy(K, k)
T.copy(S, s)
T.gemm(q, k, p, clear_accum=True)
T.gemm(q, k, r, transpose_B=True, clear_accum=True)
for i, j in T.Parallel(64, 64):
    p[i, j] = T.max(p[i, j], 0.0)
for i, j in T.Parallel(64, 64):
    r[i, j] = r[i, j] * s[i]
for i, j in T.Parallel(64, 64):
    p[i, j] = p[i, j] + r[i, j]
T.copy(p, O)
"""


def test_of_two_products_one_is_taken_first() -> None:
    """The compiler would load ``r`` again for each of its rows; ``p`` is read by one instruction."""
    random = np.random.default_rng(5)
    inputs = {
        "Q": random.normal(size=(64, 64)).astype(np.float16),
        "K": random.normal(size=(64, 64)).astype(np.float16),
        "S": np.arange(64, dtype=np.float32),
    }
    new = agree(gpu_file(PRODUCT, PARTS, launch="T.Kernel(1, threads=128) as bx"), inputs)
    assert "T.copy(p_l0c, p)" in new
    assert "T.copy(r_l0c, r)" in new
    assert new.count(", 1.0)") == new.count("T.tile.mul(r, r, 1.0)") == 1


def test_a_copy_that_nothing_reads() -> None:
    """The author stores the sum itself; where a tile out of L0C is not read the compiler could wait nowhere."""
    draw = np.random.default_rng(5)
    inputs = {name: draw.normal(size=(64, 64)).astype(np.float16) for name in "QK"} | {"S": INPUTS["S"]}
    unread = GEMM[: GEMM.index("for i, j")] + 'h = T.alloc_shared((64, 64), "float16")\nT.copy(p, h)\nT.copy(p, O)\n'
    new = agree(gpu_file(PRODUCT, unread, launch="T.Kernel(1, threads=128) as bx"), inputs, rtol=1e-3, atol=1e-2)
    assert "T.copy(p, O)" in new
    assert "h = " not in new
