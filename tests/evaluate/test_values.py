"""What single kernels compute, against NumPy."""

from __future__ import annotations

from typing import Any

import libcst as cst
import numpy as np
import pytest

from tests.evaluate.support import SOFTMAX, gpu, npu, values
from tl2npu.evaluate.apart import apart
from tl2npu.evaluate.values import NotChecked
from tl2npu.source.index import Index
from tl2npu.source.tree import nodes_of

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 32))  # of three tiles of 16 rows the last one has 8
BYTES = np.repeat((np.arange(16) * 40 + 128) % 256 - 128, 32)
NOTHING = np.full((40, 32), 7.0)

AUGMENTED = SOFTMAX.replace("x[i, j] = x[i, j] / total", "x[i, j] /= total")


def test_softmax_of_a_gpu() -> None:
    found = values(gpu(AUGMENTED), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    powers = np.exp(X)
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_softmax_of_one_and_of_two_vector_cores(threads: int) -> None:
    text = npu(AUGMENTED.replace("alloc_fragment", "alloc_shared"), threads)
    found = values(text, {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    powers = np.exp(X)
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("T.if_then_else(i >= j, x[i, j], 0.0)", np.where(np.arange(16)[:, None] >= np.arange(32), X[:16], 0)),
        ("T.max(x[i, j], 0.25) * 2", np.maximum(X[:16], 0.25) * 2),
        ("x[i, 31 - j]", X[:16, ::-1]),
        ("T.cast(x[i, j] * 3, 'int32') % 4", np.trunc(X[:16] * 3) % 4),
        ("T.cast(T.cast(i * 40, 'int8'), 'float32')", BYTES.reshape(16, 32)),
        ("x[i, j] if N > 40 else -x[i, j]", -X[:16]),
    ],
    ids=["select", "max", "index", "cast", "wrap", "python"],
)
def test_elements_of_a_parallel_loop(statement: str, expected: Any) -> None:
    body = f"""
    x = T.alloc_fragment((16, N), "float32")
    y = T.alloc_fragment((16, N), "float32")
    T.copy(X[b * 16, 0], x)
    for i, j in T.Parallel(16, N):
        y[i, j] = {statement}
    T.copy(y, Y[b * 16, 0])
    """
    found = values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found[:16], expected, rtol=1e-12)


def test_a_load_behind_the_end_reads_zeros_and_a_store_there_does_nothing() -> None:
    body = """
    x = T.alloc_fragment((16, N), "float32")
    s = T.alloc_fragment((N,), "float32")
    T.copy(X[b * 16, 0], x)
    T.reduce_sum(x, s, dim=0)
    for i, j in T.Parallel(16, N):
        Y[b * 16 + i, j] = s[j]
    """
    found = values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found[32:], np.broadcast_to(X[32:].sum(0), (8, 32)), rtol=1e-12)


def test_memory_that_nobody_has_stored_is_undefined() -> None:
    body = """
    x = T.alloc_fragment((16, N), "float32")
    T.copy(x, Y[b * 16, 0])
    """
    assert np.isnan(values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]).all()


def test_lanes_that_race_are_not_evaluated() -> None:
    body = """
    x = T.alloc_fragment((16,), "float32")
    for i, j in T.Parallel(16, N):
        x[i] = X[b * 16 + i, j]
    T.copy(x, Y[b * 16, 0])
    """
    with pytest.raises(NotChecked, match="different values in one element of `x`"):
        values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)


def test_each_vector_core_has_half_of_a_vector_by_columns() -> None:
    """The compiler halves a bias as it halves rows: what it makes of that is wrong, and evaluated so."""
    body = """
    x = T.alloc_shared((16, N), "float32")
    s = T.alloc_shared((N,), "float32")
    T.copy(X[b * 16, 0], x)
    T.copy(X[0, 0], s)
    for i, j in T.Parallel(16, N):
        x[i, j] = x[i, j] + s[j]
    T.copy(x, Y[b * 16, 0])
    """
    found = values(npu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    assert not np.allclose(found[:16], X[:16] + X[0])
    found = values(npu(body, 1), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found, X + X[0])


def test_a_product_with_transposed_operands_and_a_mask_of_bits() -> None:
    body = """
    x = T.alloc_shared((16, N), "float32")
    c = T.alloc_fragment((16, 16), "float32")
    s = T.alloc_shared((16, 16), "float32")
    mask = T.alloc_shared((16 * 16 // 8,), "uint8")
    T.copy(X[b * 16, 0], x)
    T.gemm_v0(x, x, c, transpose_B=True, init=True)
    T.copy(c, s)
    T.tile.compare(mask, s, 0.5, "GE")
    T.tile.select(s[:8, :], mask, s[:8, :], -1.0, "VSEL_TENSOR_SCALAR_MODE")
    T.copy(s, Y[b * 16, 0])
    """
    found = values(npu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    products = X[:16] @ X[:16].T
    np.testing.assert_allclose(found[:16, :16], np.where(products >= 0.5, products, -1.0), rtol=1e-12)
    assert (found[:, 16:] == 7.0).all()


LOOP = """
x = T.alloc_fragment((16, N), "float32")
y = T.alloc_fragment((16, N), "float32")
T.copy(X[b * 16, 0], x)
T.copy(X[b * 16, 0], y)
for i in T.serial(16):
    for j in T.serial({}):
        {}
T.copy(y, Y[b * 16, 0])
"""


@pytest.mark.parametrize(
    ("statement", "at_once", "expected"),
    [
        ("y[i, j] = x[i, N - 1 - j] * 2", True, X[:16, ::-1] * 2),
        ("t = x[i, j] + i; y[i, j] = t * t", True, (X[:16] + np.arange(16)[:, None]) ** 2),
        ("y[i, j] = y[i, N - 1 - j]", False, np.concatenate([X[:16, :15:-1], X[:16, 16:]], axis=1)),
        ("y[i, 0] = x[i, j]", False, np.concatenate([X[:16, 31:], X[:16, 1:]], axis=1)),
        ("y[i, j] += x[i, j]", False, X[:16] * 2),
        ("y[i, j] = x[i, j] if j == 0 else t; t = x[i, j]", False, np.concatenate([X[:16, :1], X[:16, :-1]], axis=1)),
    ],
)
def test_turns_run_at_once_only_where_they_are_apart(statement: str, at_once: bool, expected: Any) -> None:
    text = gpu(LOOP.format("N", statement))
    loop = next(n for n in nodes_of(Index.parse(text).module, cst.For))
    assert bool(apart(loop)) == at_once
    found = values(text, {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found[:16], expected, rtol=1e-12)


def test_a_loop_whose_end_depends_on_another_is_in_order() -> None:
    text = gpu(LOOP.format("i + 1", "y[i, j] = x[i, j] * 2"))
    found = values(text, {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    lower = np.arange(16)[:, None] >= np.arange(32)
    np.testing.assert_allclose(found[:16], np.where(lower, X[:16] * 2, X[:16]), rtol=1e-12)


def test_threads_are_lanes() -> None:
    body = """
    t = T.get_thread_binding(0)
    s = T.alloc_local((1,), "float32")
    s[0] = 0.0
    for j in T.serial(N):
        if t < 16:
            s[0] += X[b * 16 + t, j]
    if t < 16:
        Y[b * 16 + t, 0] = s[0]
    """
    found = values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found[:, 0], X.sum(1), rtol=1e-12)
    assert (found[:, 1:] == 7.0).all()


def test_rows_of_an_image_as_a_matrix() -> None:
    """``T.im2col`` against a convolution that is written out."""
    image, weight = RNG.standard_normal((1, 6, 5, 4)), RNG.standard_normal((3, 3, 4, 16))
    tensors = 'I: T.Tensor((1, 6, 5, 4), "float32"), W: T.Tensor((36, 16), "float32"), O: T.Tensor((30, 16), "float32")'
    body = """
    i = T.alloc_shared((16, 36), "float32")
    w = T.alloc_shared((36, 16), "float32")
    o = T.alloc_fragment((16, 16), "float32")
    T.clear(o)
    T.im2col(I, i, b, 0, 3, 1, 1, 1)
    T.copy(W, w)
    T.gemm(i, w, o)
    T.copy(o, O[b * 16, 0])
    """
    given = {"I": image, "W": weight.reshape(36, 16), "O": np.zeros((30, 16))}
    found = values(gpu(body, tensors=tensors).replace("ceildiv(M, 16)", "ceildiv(30, 16)"), given, M=40, N=32)["O"]
    padded = np.pad(image[0], ((1, 1), (1, 1), (0, 0)))
    expected = np.array([[np.tensordot(padded[y : y + 3, x : x + 3], weight, 3) for x in range(5)] for y in range(6)])
    np.testing.assert_allclose(found, expected.reshape(30, 16), rtol=1e-9)


@pytest.mark.parametrize(("parity", "runs"), [("(k + 1) % 2", True), ("k % 2", False)])
def test_warp_groups_run_from_top_to_bottom_unless_one_waits_for_a_later_statement(parity: str, runs: bool) -> None:
    text = gpu(
        f"""
        x = T.alloc_shared((16, 16), "float32")
        full = T.alloc_barrier([128])
        empty = T.alloc_barrier(128)
        for k in T.serial(N // 16):
            with T.ws(1):
                T.barrier_wait(empty, {parity})
                T.tma_copy(X[b * 16, k * 16], x, barrier=full[0])
                T.mbarrier_arrive(mbarrier=full[0])
            with T.ws(0):
                T.mbarrier_wait_parity(mbarrier=full[0], parity=k % 2)
                T.copy(x, Y[b * 16, k * 16])
                T.barrier_arrive(empty)
        """
    )
    x = np.arange(16 * 48, dtype=np.float64).reshape(16, 48)
    if runs:
        assert np.array_equal(values(text, {"X": x, "Y": 0 * x}, M=16, N=48)["Y"], x)
    else:
        with pytest.raises(NotChecked, match="waits at `empty`"):
            values(text, {"X": x, "Y": 0 * x}, M=16, N=48)


def test_a_tensor_may_have_the_type_of_another_whatever_the_module_calls_so() -> None:
    tensors = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), X.dtype)'
    body = "for i, j in T.Parallel(16, N):\n    Y[b * 16 + i, j] = X[b * 16 + i, j]"
    text = gpu(body, tensors=tensors) + "\nX = torch.tensor([100])\n"
    x = np.ones((16, 16))
    assert np.array_equal(values(text, {"X": x, "Y": 0 * x}, M=16, N=16)["Y"], x)


def test_tiles_under_a_condition_on_the_thread_are_those_of_all_its_threads() -> None:
    body = """
    t = T.get_thread_binding()
    x = T.alloc_shared((16, N), "float32")
    y = T.alloc_fragment((N,), "float32")
    if t < 64:
        T.copy(X[b * 16, 0], x)
        for i, j in T.Parallel(16, N):
            x[i, j] *= 2.0
    else:
        T.fill(y, 1.0)
    for i, j in T.Parallel(16, N):
        x[i, j] = x[i, j] + y[j]
    T.copy(x, Y[b * 16, 0])
    """
    found = values(gpu(body), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
    np.testing.assert_allclose(found, 2 * X + 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "bits", "expected"),
    [("float16", 0x3E00, 1.5), ("bfloat16", 0xC0A0, -5.0), ("float32", 0x41200000, 10.0)],
)
def test_floats_made_of_bits(dtype: str, bits: int, expected: float) -> None:
    """The numbers are those of IEEE 754."""
    body = f"""
    for i, j in T.Parallel(16, N):
        Y[b * 16 + i, j] = T.reinterpret("{dtype}", T.cast(X[b * 16 + i, j], "uint32"))
    """
    found = values(gpu(body), {"X": np.full((16, 8), bits), "Y": np.zeros((16, 8))}, M=16, N=8)["Y"]
    assert np.all(found == expected)


def test_one_element_behind_the_end_is_filled() -> None:
    """``copy_gm_to_ub`` with no valid row or column, as the compiler writes it for these, fills the tile."""
    body = """
    x = T.alloc_shared((1,), "float32")
    T.tile.fill(x, 7.0)
    T.copy({}, x)
    T.copy(x, Y[b, 0])
    """
    for place in ("X[b * 40, 0]", "X[0, b * 40]"):
        found = values(npu(body.format(place), 1), {"X": X, "Y": NOTHING}, M=40, N=32)["Y"]
        np.testing.assert_array_equal(found[:3, 0], [X[0, 0], 0, 0])
