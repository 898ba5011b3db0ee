"""What ``threads=2`` leaves whole, and the number of the vector core: facts read in code that the compiler generated.

``T.copy(B, b)`` with ``b`` in front of ``T.Kernel`` became ``copy_gm_to_ub<float, 64>(b[0], B[0], 64, 1, 64)`` on both
cores, ``T.float32(i + vid * (M // 2))`` became ``(float)((vid * 16) + i)``, and the select of ``x[: M // 2, :]``
counts M * N / 2.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import developer, load, outputs
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.standin.session import Session

M, N = 32, 64
RNG = np.random.default_rng(11)
A = RNG.standard_normal((M, N)).astype(np.float32)
B = RNG.standard_normal(N).astype(np.float32)
TILE, OUT = 'A: T.Tensor((M, N), "float32")', 'C: T.Tensor((M, N), "float32")'
ROWS, COLUMNS = np.arange(M, dtype=np.float32)[:, None], np.arange(N, dtype=np.float32)

ADD = """
a = T.alloc_ub((M, N), "float32")
T.copy(A, a)
T.copy(B, b)
for i, j in T.Parallel(M, N):
    a[i, j] = a[i, j] + b[j]
T.copy(a, C)
"""
VECTOR = 'b = T.alloc_ub((N,), "float32")'


def test_a_vector_in_front_of_the_launch_is_whole_on_both_cores() -> None:
    signature = f'{TILE}, B: T.Tensor((N,), "float32"), {OUT}'
    inputs = {"A": A, "B": B}
    for outside in (VECTOR, VECTOR.replace("alloc_ub", "alloc_shared")):  # the compiler writes the same for both
        np.testing.assert_array_equal(outputs(developer(signature, ADD, outside=outside), inputs), A + B)
    assert not np.array_equal(outputs(developer(signature, f"{VECTOR}\n{ADD}"), inputs), A + B)


@pytest.mark.parametrize(("row", "expected"), [("i + vid * (M // 2)", A + ROWS), ("i", A + ROWS % (M // 2))])
@pytest.mark.parametrize("reading", ["ideal", "actual"])
def test_the_second_variable_of_the_launch_is_the_vector_core(row: str, expected: np.ndarray, reading: str) -> None:
    body = f"""
    vid = T.get_block_binding(1)
    a = T.alloc_ub((M, N), "float32")
    T.copy(A, a)
    for i in T.serial(M):
        T.tile.add(a[i, :], a[i, :], T.float32({row}))
    T.copy(a, C)
    """
    np.testing.assert_array_equal(outputs(developer(f"{TILE}, {OUT}", body), {"A": A}, reading), expected)


def test_one_core_is_number_0_and_the_block_is_variable_0() -> None:
    body = """
    a = T.alloc_ub((M // 2, N), "float32")
    T.copy(A[T.get_block_binding(0) * (M // 2), 0], a)
    T.tile.add(a, a, T.float32(T.get_block_binding(1)))
    T.copy(a, C[cid * (M // 2), 0])
    """
    np.testing.assert_array_equal(outputs(developer(f"{TILE}, {OUT}", body, 1, 2), {"A": A}), A)


def test_a_part_of_a_whole_vector_for_each_core() -> None:
    outside = 'n = T.alloc_ub((M,), "int32")\nw = T.alloc_ub((M,), "float32")'
    body = """
    vid = T.get_block_binding(1)
    a = T.alloc_ub((M, N), "float32")
    r = T.alloc_ub((M,), "float32")
    T.copy(A, a)
    T.tile.createvecindex(n, 0)
    T.copy(n, w)
    T.copy(w[vid * (M // 2) : vid * (M // 2) + M // 2], r[: M // 2])
    for i, j in T.Parallel(M, N):
        a[i, j] = a[i, j] + r[i]
    T.copy(a, C)
    """
    np.testing.assert_array_equal(outputs(developer(f"{TILE}, {OUT}", body, outside=outside), {"A": A}), A + ROWS)


SELECT = """
a = T.alloc_ub((M, N), "float32")
mask = T.alloc_ub((M * N // 8,), "uint8")
T.copy(A, a)
T.tile.compare(mask, a, 0.0, "GT")
T.tile.select({0}, mask, {0}, 0.0, "VSEL_TENSOR_SCALAR_MODE")
T.copy(a, C)
"""


@pytest.mark.parametrize("reading", ["ideal", "actual"])
def test_a_select_of_half_of_the_rows_is_one_of_the_core_s_rows(reading: str) -> None:
    text = developer(f"{TILE}, {OUT}", SELECT.format("a[: M // 2, :]"))
    np.testing.assert_array_equal(outputs(text, {"A": A}, reading), np.maximum(A, 0))
    with pytest.raises(SimulatorError, match="out-of-bounds"):
        outputs(developer(f"{TILE}, {OUT}", SELECT.format("a")), {"A": A})


def test_each_core_adds_its_own_rows() -> None:
    body = """
    vid = T.get_block_binding(1)
    a = T.alloc_ub((M, N), "float32")
    zero = T.alloc_ub((M, N), "float32")
    T.tile.fill(zero, 0.0)
    T.copy(zero, C)
    T.copy(A, a)
    T.tile.atomic_add(C[vid * (M // 2) : vid * (M // 2) + M // 2, :], a[: M // 2, :])
    """
    np.testing.assert_array_equal(outputs(developer(f"{TILE}, {OUT}", body), {"A": A}), A)


def test_some_columns_of_several_rows_lose_their_stride_in_an_atomic_addition() -> None:
    """``atomic_add_ub_to_gm<float, 32, 16>(C[0], a[0], 64, 16, 32)`` was generated for ``a[:16, :32]`` of 32 x 64."""
    body = 'a = T.alloc_ub((M, N), "float32")\nT.copy(A, a)\nT.tile.atomic_add(C[0, 0], a[:16, :32])'
    text = developer(f"{TILE}, {OUT}", body, 1).replace("out_idx=[1], ", "")
    given = np.zeros((M, N), np.float32)
    load(text, Session(reading="actual"))["factory"]()(A.copy(), given)
    np.testing.assert_array_equal(given[:16, :32], A.ravel()[: 16 * 32].reshape(16, 32))


def test_more_blocks_than_a_launch_has() -> None:
    kernel = developer(f"{TILE}, {OUT}", 'a = T.alloc_ub((M, N), "float32")\nT.copy(A, a)\nT.copy(a, C)', blocks=65536)
    with pytest.raises(SimulatorError, match="65,536 blocks: a launch of more than 65,535 fails with error 107000"):
        outputs(kernel, {"A": A})
