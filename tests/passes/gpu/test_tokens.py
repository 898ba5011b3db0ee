"""TL623: loops that hand tiles to the cube core only are ordered by a token, and the sum stays in L0C."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tl2npu.checking import check_text
from tl2npu.options import Options

RNG = np.random.default_rng(11)
A = RNG.standard_normal((64, 96)).astype(np.float16)
B = RNG.standard_normal((96, 64)).astype(np.float16)
GEMM = 'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")'
TILES = """
a = T.alloc_shared((32, 32), "float16")
raw = T.alloc_shared((32, 64), "float16")
b = T.alloc_shared((32, 64), "float16")
acc = T.alloc_fragment((32, 64), "float32")
"""
AROUND = (
    "T.copy(token, token_l1)",
    "T.gemm_v0(token_l1, token_l1, token_l0c, init=True)",
    "T.copy(token_l0c, token_back)",
)
STORE = "T.copy(acc, C[bx * 32, 0])\n"
SCALED = "for i, j in T.Parallel(32, 64):\n    b[i, j] = raw[i, j] * 0.5\n"


def indented(text: str, by: int = 1) -> str:
    return "".join("    " * by + line + "\n" for line in text.splitlines())


def test_the_sum_stays_in_l0c() -> None:
    turn = f"T.copy(A[bx * 32, k * 32], a)\nT.copy(B[k * 32, 0], raw)\n{SCALED}T.gemm(a, b, acc)\n"
    new = agree(
        gpu_file(GEMM, f"{TILES}T.clear(acc)\nfor k in T.serial(3):\n{indented(turn)}{STORE}"),
        {"A": A, "B": B},
        atol=1e-2,
    )
    assert "T.gemm_v0(a, b_l1, acc, init=(k == 0))" in new
    assert all(line in new for line in AROUND)
    without = "\n".join(line for line in new.splitlines() if "token" not in line) + "\n"
    assert {found.code for found in check_text(without, "kernel.py", Options()).diagnostics} == {"TL848"}


def test_loops_in_loops() -> None:
    turn = f"T.copy(A[bx * 32, k * 32], a)\nT.copy(B[k * 32, 0], raw)\n{SCALED}T.gemm(a, b, acc)\n"
    outer = f"T.clear(acc)\nfor k in T.serial(3):\n{indented(turn)}T.copy(acc, C[n, bx * 32, 0])\n"
    params = GEMM.replace("C: T.Tensor((64", "C: T.Tensor((2, 64")
    new = agree(gpu_file(params, f"{TILES}for n in T.serial(2):\n{indented(outer)}"), {"A": A, "B": B}, atol=1e-2)
    assert new.index("T.tile.fill(token, 0.0)") < new.index("for n in T.serial(2)")
    assert all(line in new for line in AROUND)


def test_blocks_that_become_a_loop_over_tasks() -> None:
    """The grid is known when the kernel is launched: its loop is closed by a token at the end of a task."""
    params = GEMM.replace("(64, 96)", "(m, 32)").replace("(64, 64)", "(m, 64)")
    turn = f"T.copy(A[bx * 32, 0], a)\nT.copy(B[0, 0], raw)\n{SCALED}T.gemm(a, b, acc, clear_accum=True)\n{STORE}"
    launch = "T.Kernel(T.ceildiv(m, 32), threads=128) as bx"
    file = gpu_file(params, TILES + turn, launch=launch, factory="m = T.dynamic('m')")
    new = migrated(file)
    assert new.index("for task in T.serial") < new.index("T.copy(token, token_l1)")


def test_products_under_a_condition_of_data() -> None:
    params = GEMM.replace("C:", 'M: T.Tensor((2, 3), "int32"), C:')
    turn = f"if M[bx, k] > 0:\n    T.copy(A[bx * 32, k * 32], a)\n    T.copy(B[k * 32, 0], raw)\n{indented(SCALED)}"
    text = f"{TILES}T.clear(acc)\nfor k in T.serial(3):\n{indented(turn)}        T.gemm(a, b, acc)\n{STORE}"
    agree(gpu_file(params, text), {"A": A, "B": B, "M": np.array([[0, 1, 2], [0, 0, 0]], np.int32)}, atol=1e-2)


@pytest.mark.parametrize(("columns", "fits"), [(128, True), (256, False)])
def test_without_room_in_l0c_the_sum_is_taken_in_every_turn(columns: int, fits: bool) -> None:
    """128 x 256 sums in float32 fill all 128 KB."""
    tiles = (
        'a = T.alloc_shared((128, 32), "float16")\n'
        f'raw = T.alloc_shared((32, {columns}), "float16")\n'
        f'b = T.alloc_shared((32, {columns}), "float16")\n'
        f'acc = T.alloc_fragment((128, {columns}), "float32")\nT.clear(acc)\n'
    )
    scaled = SCALED.replace("64", str(columns))
    turn = f"T.copy(A[bx * 128, k * 32], a)\nT.copy(B[k * 32, 0], raw)\n{scaled}T.gemm(a, b, acc)\n"
    params = (
        f'A: T.Tensor((256, 96), "float16"), B: T.Tensor((96, {columns}), "float16"), '
        f'C: T.Tensor((256, {columns}), "float32")'
    )
    new = migrated(gpu_file(params, f"{tiles}for k in T.serial(3):\n{indented(turn)}T.copy(acc, C[bx * 128, 0])\n"))
    assert ("token" in new) == fits
    assert ("acc[i, j] += acc_part[i, j]" in new) != fits


def test_an_answer_under_a_condition_is_none() -> None:
    """Where the condition does not hold, the vector cores would overwrite the tile of the other product."""
    params = GEMM.replace("C:", 'M: T.Tensor((2, 3), "int32"), D: T.Tensor((64, 64), "float32"), C:')
    tiles = TILES + 'more = T.alloc_fragment((32, 64), "float32")\nT.clear(acc)\nT.clear(more)\n'
    turn = f"T.copy(A[bx * 32, k * 32], a)\nT.copy(B[k * 32, 0], raw)\n{SCALED}T.gemm(a, b, acc)\n"
    some = "if M[bx, k] > 1:\n    T.gemm(a, b, more)\n    T.copy(more, D[bx * 32, 0])\n"
    text = f"{tiles}for k in T.serial(3):\n{indented(turn + some)}T.copy(acc, C[bx * 32, 0])\n"
    inputs = {"A": A, "B": B, "M": np.array([[0, 1, 2], [2, 0, 0]], np.int32), "D": np.zeros((64, 64), np.float32)}
    new = agree(gpu_file(params, text), inputs, atol=1e-2)
    assert all(line in new for line in AROUND)
