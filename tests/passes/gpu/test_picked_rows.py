"""Rows that indices pick; unfolded images; flat views of tensors; loops that are longer than their tile."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused

RNG = np.random.default_rng(22)
X = RNG.standard_normal((64, 64)).astype(np.float32)
INDEX = RNG.integers(-9, 60, 64).astype(np.int32)
INDEX[7] = INDEX[8]
PARAMS = 'X: T.Tensor((64, 64), "float32"), I: T.Tensor((64,), "int32"), Y: T.Tensor((3, 50, 2, 64), "float32")'
TILE = 'x = T.alloc_shared((32, 64), "float32")\nT.copy(X[bx * 32, 0], x)\n'
KEPT = "@tilelang.jit"


def scattered(body: str, inputs: np.ndarray = INDEX, jit: str = KEPT) -> str:
    target = np.zeros((3, 50, 2, 64), np.float32)
    return agree(gpu_file(PARAMS, TILE + body, jit=jit), {"X": X, "I": inputs, "Y": target})


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[1, I[bx * 32 + i], 1, j], x[i, j])",
        "for i, j in T.Parallel(32, 64):\n    p = I[bx * 32 + i]\n    if p > 2 or p == 1:\n"
        "        T.atomic_add(Y[0, p, 0, j], x[i, j] * 2.0)",
        "for i, j in T.Parallel(32, 64):\n    if (I[bx * 32 + i] > -1) & (I[bx * 32 + i] <= 40):\n"
        "        T.atomic_add(Y[2, I[bx * 32 + i], bx, j], x[i, j])",
        "for i, g in T.Parallel(32, 16):\n    T.atomic_addx4(Y[1, I[bx * 32 + i], 1, g * 4], x[i, g * 4])",
        "for i, j in T.Parallel(32, 64):\n    if bx * 32 + i < 45:\n"
        "        T.atomic_add(Y[1, 3 + bx * 32 + i, 1, j], x[i, j])",
        "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[i % 3, (bx * 32 + i) // 2, 0, j], x[i, j])",
    ],
)
def test_rows_are_added_where_their_indices_say(body: str) -> None:
    new = scattered(body)
    assert "T.tile.atomic_add(Y[" in new
    assert "threads=1" in new


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 64):\n    Y[1, I[bx * 32 + i], 1, j] = x[i, j]",
        "for i, j in T.Parallel(32, 64):\n    p = I[bx * 32 + i]\n    if p != 5:\n"
        "        Y[0, p, 0, j] = x[i, j] + 1.0",
        "for i, j in T.Parallel(32, 64):\n    at = (bx * 32 + i) * 3 % 50\n"
        "    Y[(bx * 32 + i) // 25, at, 1, j] = x[i, j]",
        "for i, j in T.Parallel(32, 64):\n    at = 60 - (bx * 32 + i) * (bx * 32 + i)\n    Y[1, at, 1, j] = x[i, j]",
    ],
)
def test_rows_are_stored_where_their_indices_say(body: str) -> None:
    """No two rows of the permuted indices go to one place: which of them stays is not defined on a GPU."""
    permuted = RNG.permutation(70)[:64].astype(np.int32) - 10
    assert "T.copy(x" in scattered(body, permuted) or "_tile[i, :]" in scattered(body, permuted)


def test_a_product_is_not_added_by_rows_from_l0c() -> None:
    """L0C has blocks of 16 x 16 elements: a row of it is no region."""
    body = """
    x = T.alloc_shared((32, 64), "float16")
    w = T.alloc_shared((64, 64), "float16")
    acc = T.alloc_fragment((32, 64), "float32")
    T.copy(X[bx * 32, 0], x)
    T.copy(W, w)
    T.gemm(x, w, acc, clear_accum=True)
    for i, j in T.Parallel(32, 64):
        if bx * 32 + i < 45:
            T.atomic_add(Y[3 + bx * 32 + i, j], acc[i, j])
    """
    params = 'X: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), Y: T.Tensor((50, 64), "float32")'
    half = X.astype(np.float16)
    text, inputs = gpu_file(params, body, jit=KEPT), {"X": half, "W": half, "Y": np.zeros((50, 64), np.float32)}
    new = agree(text, inputs)
    assert "acc = T.alloc_fragment" not in new
    stored = text.replace("T.atomic_add(Y[3 + bx * 32 + i, j], acc[i, j])", "Y[3 + bx * 32 + i, j] = acc[i, j]")
    assert "acc = T.alloc_fragment" not in agree(stored, inputs)


def test_a_tile_that_only_loops_and_atomics_use_is_in_ub() -> None:
    """The compiler infers nothing from an atomic addition: it rejects a tile that is not known to be in UB."""
    loop = "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[1, I[bx * 32 + i], 1, j], {})\n"
    assert "y_tile = T.alloc_ub(" in scattered(loop.format("x[i, j] * 2.0") + loop.format("x[i, j]"))


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[1, I[j], 1, j], x[i, j])",
        "for i, j in T.Parallel(32, 64):\n    if j < I[i]:\n        T.atomic_add(Y[1, I[i], 1, j], x[i, j])",
        "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[1, I[i], 1, 63 - j], x[i, j])",
        "for i, j in T.Parallel(32, 64):\n    T.atomic_add(Y[1, I[i] + j, 1, j], x[i, j])",
    ],
)
def test_what_is_no_row_stays(body: str) -> None:
    assert refused(gpu_file(PARAMS, TILE + body, jit=KEPT))[0][0] == "TL173"


def test_indices_that_are_computed_pick_rows() -> None:
    body = """
    x = T.alloc_shared((32, 64), "float32")
    for i, j in T.Parallel(32, 64):
        row = (bx * 32 + i) * 5 % 70 - 4
        x[i, j] = T.if_then_else(row < 3 or row > 7, X[row, j], 0.0)
    T.copy(x, Y[bx * 32, 0])
    """
    params = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'
    new = agree(gpu_file(params, body), {"X": X})
    assert "if (row < 3 or row > 7) and row >= 0 and row < 64:" in new


CONVOLUTION = """
    a = T.alloc_shared((16, 32), "float16")
    w = T.alloc_shared((32, 32), "float16")
    acc = T.alloc_fragment((16, 32), "float32")
    flat = T.Tensor((K * K * C, 32), "float16", W.data)
    out = T.Tensor((N * OH * OW, 32), "float32", Y.data)
    T.clear(acc)
    for k in T.serial(K * K * C // 32):
        T.im2col(X, a, bx, k, K, S, D, P)
        T.copy(flat[k * 32, 0], w)
        T.gemm(a, w, acc)
    T.copy(acc, out[bx * 16, 0])
"""
IMAGE = (
    'X: T.Tensor((N, H, B, C), "float16"), W: T.Tensor((K, K, C, 32), "float16"), '
    'Y: T.Tensor((N, OH, OW, 32), "float32")'
)
SIZES = "OH = (H + 2 * P - D * (K - 1) - 1) // S + 1\nOW = (B + 2 * P - D * (K - 1) - 1) // S + 1\n"


@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 0), (1, 2, 3), (3, 1, 2)])
def test_a_convolution(stride: int, dilation: int, pad: int) -> None:
    image = RNG.standard_normal((2, 7, 5, 64)).astype(np.float16)
    weights = RNG.standard_normal((3, 3, 64, 32)).astype(np.float16)
    text = gpu_file(
        IMAGE,
        CONVOLUTION,
        args="N, H, B, C, K, S, D, P",
        factory=SIZES,
        launch="T.Kernel(T.ceildiv(N * OH * OW, 16), threads=128) as bx",
    )
    new = agree(text, {"X": image, "W": weights}, args=(2, 7, 5, 64, 3, stride, dilation, pad), rtol=1e-2, atol=1e-2)
    assert "assert C % 32 == 0" in new
    assert "im2col" not in new


def test_channels_that_do_not_fill_a_tile() -> None:
    """The GPU compiler rejects them too; without a factory, or with sizes of the launch, nothing can assert it."""
    text = gpu_file(IMAGE, CONVOLUTION, args="N, H, B, K, S, D, P", factory="C = 48\n" + SIZES)
    assert [code for code, _ in refused(text)] == ["TL190"]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [("(N * OH * OW, 32)", '"int32"'), ("(OH * OW, 32)", '"float32"')],
)
def test_a_view_of_another_type_or_of_a_part(shape: str, dtype: str) -> None:
    body = CONVOLUTION.replace('out = T.Tensor((N * OH * OW, 32), "float32"', f"out = T.Tensor({shape}, {dtype}")
    text = gpu_file(IMAGE, body, args="N, H, B, C, K, S, D, P", factory=SIZES)
    assert [code for code, _ in refused(text)] == ["TL902"]


SHORT = """
x = T.alloc_shared((32, 64), "float32")
y = T.alloc_shared((16, 64), "float32")
T.copy(X[bx * 32, 0], x)
T.clear(y)
for i, j in T.Parallel(32, 64):
    if {condition}:
        y[i, j] = x[i + 16, j] * 2.0
T.copy(y, Y[bx * 16, 0])
"""
HALVES = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((32, 64), "float32")'


def test_a_loop_ends_with_its_tile() -> None:
    new = agree(gpu_file(HALVES, SHORT.format(condition="i < 16")), {"X": X})
    assert "T.Parallel(16, 64)" in new


@pytest.mark.parametrize("condition", ["i < C", "i < 16 and j < C", "i * 2 < 32"])
def test_a_select_never_writes_more_rows_than_its_tile_has(condition: str) -> None:
    text = gpu_file(HALVES, SHORT.format(condition=condition), args="C")
    assert [code for code, _ in refused(text)] == ["TL153"]


def test_a_loop_that_ends_before_its_tile_keeps_its_condition() -> None:
    body = SHORT.format(condition="i < 8")
    text = gpu_file(HALVES, body.replace("x[i + 16, j]", "x[i, j]").replace("T.Parallel(32", "T.Parallel(16"))
    assert "T.Parallel(16, 64)" in migrated(text)
