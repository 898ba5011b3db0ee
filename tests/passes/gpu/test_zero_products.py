"""TL624: sums in L0C whose start is only known at run time start with a product of zeros."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated

RNG = np.random.default_rng(12)
A = RNG.standard_normal((64, 96)).astype(np.float16)
B = RNG.standard_normal((96, 64)).astype(np.float16)
M = np.array([[0, 1, 2], [0, 0, 0]], np.int32)
PARAMS = (
    'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), M: T.Tensor((2, 3), "int32"), '
    'C: T.Tensor((64, 64), "float32")'
)
TILES = """
a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
acc = T.alloc_fragment((32, 64), "float32")
T.clear(acc)
"""
LOAD = "T.copy(A[bx * 32, k * 32], a)\nT.copy(B[k * 32, 0], b)\n"
STORE = "T.copy(acc, C[bx * 32, 0])\n"
ZEROS = "T.gemm_v0(zeros_l1, zeros_2_l1, acc, transpose_B=True, init=True)"


def loop(head: str, *lines: str) -> str:
    return head + "\n" + "".join(f"    {line}\n" for text in lines for line in text.splitlines())


def test_blocks_that_data_leaves_out() -> None:
    """Of the second row of blocks no product runs: what is stored are zeros."""
    body = loop("for k in T.serial(3):", loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)"))
    new = agree(gpu_file(PARAMS, TILES + body + STORE), {"A": A, "B": B, "M": M}, atol=1e-2)
    assert ZEROS in new
    assert "T.gemm_v0(a, b, acc)" in new
    assert STORE.strip() in new


def test_both_arms_of_a_condition() -> None:
    arms = loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)") + loop(
        "else:", LOAD, "T.gemm(a, b, acc)\nT.gemm(a, b, acc)"
    )
    new = agree(
        gpu_file(PARAMS, TILES + loop("for k in T.serial(3):", arms) + STORE), {"A": A, "B": B, "M": M}, atol=2e-2
    )
    assert new.count("T.gemm_v0(a, b, acc)") == 3


def test_loops_that_may_be_empty() -> None:
    body = loop("for k in T.serial(T.min(M[bx, 2], 3)):", LOAD, "T.gemm(a, b, acc)")
    assert ZEROS in agree(gpu_file(PARAMS, TILES + body + STORE), {"A": A, "B": B, "M": M}, atol=1e-2)


def test_the_sum_is_used_by_vector_code_behind_the_loop() -> None:
    body = loop("for k in T.serial(3):", loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)"))
    after = "for i, j in T.Parallel(32, 64):\n    acc[i, j] = acc[i, j] * 0.5 + 1.0\n"
    new = agree(gpu_file(PARAMS, TILES + body + after + STORE), {"A": A, "B": B, "M": M}, atol=1e-2)
    assert "T.gemm_v0(zeros_l1, zeros_2_l1, acc_l0c, transpose_B=True, init=True)" in new


@pytest.mark.parametrize("inside", ["for i, j in T.Parallel(32, 64):\n    acc[i, j] = acc[i, j] * 0.5", "T.clear(acc)"])
def test_what_the_loop_changes_itself_is_added_up(inside: str) -> None:
    body = loop("for k in T.serial(3):", inside, loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)"))
    new = agree(gpu_file(PARAMS, TILES + body + STORE), {"A": A, "B": B, "M": M}, atol=1e-2)
    assert "zeros" not in new


def test_tiles_of_one_size_share_their_zeros() -> None:
    params = PARAMS.replace("(96, 64)", "(96, 32)").replace("(64, 64)", "(64, 32)")
    body = loop("for k in T.serial(3):", loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)"))
    file = gpu_file(params, TILES.replace("(32, 64)", "(32, 32)") + body + STORE)
    new = agree(file, {"A": A, "B": B[:, :32].copy(), "M": M}, atol=1e-2)
    assert "T.gemm_v0(zeros_l1, zeros_l1, acc, transpose_B=True, init=True)" in new


@pytest.mark.parametrize("named", [False, True])
def test_sums_of_integers_are_added_up(named: bool) -> None:
    """No instruction fills tiles of int8."""
    params = PARAMS.replace("float16", "int8").replace("float32", "int32")
    tiles = TILES.replace("float16", "int8").replace("float32", "int32")
    body = loop("for k in T.serial(3):", loop("if M[bx, k] > 0:", LOAD, "T.gemm(a, b, acc)"))
    a, b = (RNG.integers(-9, 9, shape).astype(np.int8) for shape in ((64, 96), (96, 64)))
    file = gpu_file(params, tiles + body + STORE)
    if named:
        file = file.replace('"int32"', "kind").replace("M: T.Tensor((2, 3), kind)", 'M: T.Tensor((2, 3), "int32")')
        file = file.replace("def factory():", 'def factory(kind="int32"):')
    assert "zeros" not in agree(file, {"A": a, "B": b, "M": M})


def test_stores_behind_a_tensor_stay_with_the_vector_cores() -> None:
    """A store from L0C that begins behind its tensor writes a full tile there, one from UB nothing (TL885)."""
    params = (
        PARAMS.replace('M: T.Tensor((2, 3), "int32")', 'M: T.Tensor((3,), "int32")')
        .replace("(64, 64)", "(m, 64)")
        .replace("(64, 96)", "(m, 96)")
    )
    rows = "first = M[bx]\nlast = M[bx + 1]\n"
    load = "T.copy(A[first + by * 32, k * 32], a)\nT.copy(B[k * 32, 0], b)\n"
    body = loop("for k in T.serial(3):", loop("if last - first > by * 32:", load, "T.gemm(a, b, acc)"))
    file = gpu_file(
        params,
        rows + TILES + body + "T.copy(acc, C[first + by * 32, 0])\n",
        launch="T.Kernel(2, 4, threads=128) as (bx, by)",
        factory="m = T.dynamic('m')",
    )
    assert "zeros" not in migrated(file)
