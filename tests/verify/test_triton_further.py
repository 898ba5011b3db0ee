"""Launches of Triton kernels on other values, scalars and sizes than those of their script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.verify.test_triton import HOST, KERNEL, OLD, verified
from tl2npu.interpreter.launch import Launch, TensorArgument
from tl2npu.verify.triton_further import explained, other_sizes

ROWS = """import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, stride, m, n, factor, shift, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n * factor + shift)


torch.manual_seed(0)
x = torch.randn(6, 128, device="cuda")
out = torch.empty(6, device="cuda")
mean_kernel[(6,)](x, out, x.stride(0), 6, 128, 200.0, 17, BLOCK=128)
torch.testing.assert_close(out, x.mean(1) * 200.0 + 17)
"""
NEW_ROWS = """import torch
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(pass_configs=pass_configs)
def mean_kernel(m, n, shift, BLOCK):
    @T.prim_func
    def main(x_ptr: T.Tensor((m, n), "float32"), out_ptr: T.Tensor((m,), "float32"), factor: T.float32):
        with T.Kernel(m, threads=1, is_npu=True) as (row):
            x = T.alloc_shared((1, BLOCK), "float32")
            total = T.alloc_shared((1,), "float32")
            T.copy(x_ptr[row, 0], x)
            T.reduce_sum(x, total, dim=-1)
            for i in T.Parallel(1):
                total[i] = total[i] * (1.0 / n) * factor + T.float32(shift)
            T.copy(total, out_ptr[row])

    return main
"""
LAUNCH = """

torch.manual_seed(0)
x = torch.randn(6, 128, device="npu")
out = torch.empty(6, device="npu")
mean_kernel(6, 128, 17, 128)(x, out, 200.0)
"""


@pytest.mark.parametrize("launch", [LAUNCH, ""], ids=["script", "kernels only"])
def test_a_right_kernel_is_right_at_other_sizes(tmp_path: Path, launch: str) -> None:
    result = verified(tmp_path, ROWS, NEW_ROWS + launch)
    assert result.ok, result
    (told,) = [note for note in result.notes if "also on" in note]
    for part in ("wide values (factor = ", "values far below 0", "stride = 127, n = 127", "another size (m = 5)"):
        assert part in told


WRONG = {
    "the number of columns": ("(1.0 / n)", "(1.0 / 128)"),
    "the number of rows": ("T.Kernel(m,", "T.Kernel(m // 2 * 2,"),
    "a factor": (" * factor", " * 200.0"),
    "an integer": ("T.float32(shift)", "17.0"),
    "large negative values": ("T.reduce_sum(", f"T.tile.max(x, x, -6.0)\n{' ' * 12}T.reduce_sum("),
}


@pytest.mark.parametrize("launch", [LAUNCH, ""], ids=["script", "kernels only"])
@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_that_is_right_with_the_numbers_of_the_script_only(tmp_path: Path, what: str, launch: str) -> None:
    old, new = WRONG[what]
    assert old in NEW_ROWS
    result = verified(tmp_path, ROWS, (NEW_ROWS + launch).replace(old, new))
    assert {d.code for d in result.diagnostics if d.severity == "error"} == {"TL907"}


def test_the_count_of_all_elements_is_a_size(tmp_path: Path) -> None:
    right = verified(tmp_path, OLD, KERNEL + HOST)
    assert any("another size (n = 797)" in note for note in right.notes)
    new = (KERNEL + HOST).replace("T.Kernel(T.ceildiv(n, BLOCK),", "T.Kernel((n + 224) // BLOCK,")
    wrong = verified(tmp_path, OLD, new)
    assert "TL907" in {d.code for d in wrong.diagnostics}


def test_a_scalar_that_the_new_kernel_lacks_is_told(tmp_path: Path) -> None:
    new = NEW_ROWS.replace("shift, BLOCK", "BLOCK").replace("T.float32(shift)", "17.0")
    result = verified(tmp_path, ROWS, new + LAUNCH.replace("17, ", ""))
    assert result.ok, result
    assert any("it has no shift" in note for note in result.notes)


def test_what_the_old_kernel_cannot_take_is_left_out(tmp_path: Path) -> None:
    """Without a mask it reads past the end of its tensors at any other size."""
    old = ROWS.replace("mask=i < n, other=0.0", "").replace("i, )", "i)")
    result = verified(tmp_path, old, NEW_ROWS + LAUNCH)
    assert result.ok, result
    assert not any("n = 127" in note for note in result.notes)
    assert any("another size (m = 5)" in note for note in result.notes)


def launch(shapes: dict[str, tuple[int, ...]], scalars: dict[str, int], grid: int, **constexprs: int) -> Launch:
    tensors = {}
    for number, (name, shape) in enumerate(shapes.items()):
        strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
        tensors[name] = TensorArgument(number, 0, shape, strides, "float32")
    storages = tuple(np.zeros(int(np.prod(shape)) * 4, np.uint8) for shape in shapes.values())
    names = (*shapes, *scalars, *constexprs)
    return Launch(
        0, "k", 0, "k.py", 1, 1, (grid, 1, 1), names, dict(constexprs), dict(scalars), tensors, storages, storages
    )


def sizes(given: Launch) -> list[tuple[dict[str, int], int]]:
    return [(found.scalars, found.grid[0]) for found in other_sizes(given)]


def test_numbers_of_the_host_change_with_a_size() -> None:
    heads = launch({"q": (2, 8, 100, 64), "o": (2, 8, 100, 64)}, {"s": 6400, "h": 8, "m": 100, "all": 102400}, 16)
    assert sizes(heads) == [({"s": 6208, "m": 97, "all": 99328}, 16), ({"h": 7, "all": 89600}, 14)]
    tiles = launch({"x": (1000,)}, {"n": 1000}, 4, BLOCK=256)
    assert sizes(tiles) == [({"n": 997}, 4)]
    assert sizes(launch({"x": (1024,)}, {"n": 1024}, 4, BLOCK=256)) == [({"n": 1021}, 4)]
    assert sizes(launch({"x": (1025,)}, {"n": 1025}, 5, BLOCK=256)) == [({"n": 1031}, 5)]
    assert sizes(launch({"x": (4, 200)}, {"n": 800}, 4, BLOCK=256)) == [({"n": 797}, 4)]


@pytest.mark.parametrize(
    "given",
    [
        launch({"x": (512,), "y": (8, 64)}, {"n": 512, "rows": 8}, 1),  # of 8 and 64, or for itself
        launch({"x": (100,)}, {"n": 100, "half": 50}, 1),
        launch({"x": (16,)}, {"n": 16}, 1, BLOCK=2),  # no prime needs 8 tiles of 2 but 17, which needs 9
    ],
)
def test_a_size_is_left_alone_where_another_number_may_go_with_it(given: Launch) -> None:
    assert sizes(given) == []


def test_which_numbers_go_with_tensors() -> None:
    found = explained(launch({"x": (6, 100)}, {}, 6, BLOCK=32))
    assert {6, 100, 600, 50, 4, 128, 101, 99, 106} <= found
    assert not {19, 41, 1000} & found
