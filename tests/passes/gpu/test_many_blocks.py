"""TL620 without ``--fixed-core``, TL817: a launch has at most 65,535 blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.gpu.test_fixed_core import GEMM
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

ROWS = 'X: T.Tensor((M, 64), "float32"), O: T.Tensor((M, 64), "float32")'
BODY = """x = T.alloc_fragment((64,), "float32")
T.copy(X[{row}, 0], x)
for j in T.Parallel(64):
    x[j] = x[j] * 2.0
T.copy(x, O[{row}, 0])
"""


def rows(args: str = "M", tail: str = "", launch: str = "T.Kernel(M, threads=128) as bx", row: str = "bx") -> str:
    return gpu_file(ROWS, BODY.format(row=row), launch=launch, args=args) + tail


def by_tasks(text: str) -> str:
    """The new text, with a loop over tasks, of which a message tells; its results are those of the rows."""
    (note,) = (d for d in result_of(text).diagnostics if d.code == "TL620")
    assert (note.severity, note.help) == ("info", "")
    new = migrated(text)
    assert "for task in T.serial(" in new
    return new


def doubles(new: str, *args: int) -> None:
    """100 rows for 24 blocks: four turns of all, and four rows."""
    x = np.random.default_rng(3).standard_normal((100, 64)).astype(np.float32)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": x, "O": np.zeros_like(x)}, "factory", args, reading)
        np.testing.assert_array_equal(found["O"], 2 * x)


@pytest.mark.parametrize(
    ("args", "tail"),
    [
        ("M=131072", ""),
        ("M", "kernel = factory(65536)\n"),
        ("M", "TOKENS = 32 * 4096\nkernel = factory(TOKENS)\n"),
        ("M=64", "kernels = [factory(), factory(M=1 << 17)]\n"),
        ("M", "def double(x):\n    return factory(x.shape[0])(x)\n\n\ndouble(torch.randn(98304, 64))\n"),
        ("M", "def double(x):\n    m, n = x.shape\n    factory(m)(x)\n\n\ndouble(torch.ones((70000, 64)).npu())\n"),
    ],
)
def test_more_blocks_than_a_launch_has(args: str, tail: str) -> None:
    text = rows(args, tail).replace("import tilelang\n", "import torch\nimport tilelang\n", 1)
    new = by_tasks(text).replace('int(torch.npu.get_device_properties("npu").cube_core_num)', "24")
    doubles(new.partition("def double")[0], 100)


def test_torch_that_only_the_script_imports() -> None:
    """The factory does not ask for it: whoever imports the file would get a NameError."""
    script = 'if __name__ == "__main__":\n    import torch\n\n    factory(65536)(torch.ones(65536, 64))\n'
    new = by_tasks(rows("M", script))
    assert "    core_num = min(M, 24)\n" in new
    doubles(new, 100)


def test_two_axes_count_together() -> None:
    """512 times 256 rows."""
    text = rows("G=512, H=256", "", "T.Kernel(G, H, threads=128) as (bx, by)", "by * G + bx")
    doubles(by_tasks(text.replace("(M, 64)", "(G * H, 64)")), 10, 10)


def test_a_grid_of_numbers() -> None:
    text = rows("", launch="T.Kernel(131072, threads=128) as bx").replace("(M, 64)", "(131072, 64)")
    assert "core_num = min(131072, 24)" in by_tasks(text)


@pytest.mark.parametrize("limit", ["factory(65535)", "factory(M=100)"])
def test_a_grid_that_fits_stays(limit: str) -> None:
    """In every call that the file shows."""
    new = migrated(rows(tail=f"kernel = {limit}\n"))
    assert "T.Kernel(M, threads=2, is_npu=True) as (bx)" in new


def test_rows_that_nothing_limits() -> None:
    doubles(by_tasks(rows()), 100)


@pytest.mark.parametrize(
    ("says", "loops"),
    [
        ("assert M <= 65535", False),
        ("assert 0 < M < 65536 and M % 2 == 0", False),
        ("if M > 4096:\n    raise ValueError(M)", False),
        ("assert 1024 >= M", False),
        ("assert M <= 65536", True),
        ("assert M >= 16", True),
        ("if M < 4096:\n    raise ValueError(M)", True),
    ],
)
def test_what_the_factory_asserts(says: str, loops: bool) -> None:
    text = gpu_file(ROWS, BODY.format(row="bx"), launch="T.Kernel(M, threads=128) as bx", args="M", factory=says)
    assert ("for task" in migrated(text)) is loops


def test_tiles_of_rows_stay() -> None:
    """Who has eight million rows?"""
    new = migrated(rows(launch="T.Kernel(M // 128, threads=128) as bx", row="bx * 128"))
    assert "T.Kernel(M // 128, threads=2, is_npu=True)" in new


def test_rows_that_are_symbolic() -> None:
    text = rows("", launch="T.Kernel(M, threads=128) as bx").replace(
        "    @T.prim_func", '    M = T.symbolic("M")\n\n    @T.prim_func'
    )
    assert "core_num = 24" in by_tasks(text)


PARAMS = 'A: T.Tensor((M * 64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((M * 64, 64), "float32")'
RACES = GEMM.format(after="for i, j in T.Parallel(64, 64):\n    c[i, j] = c[i, j] * 0.5\n")


def gemm(args: str, params: str = PARAMS) -> str:
    return gpu_file(params, RACES, jit="@tilelang.jit", launch="T.Kernel(M, threads=128) as bx", args=args)


def test_a_loop_that_would_race_is_refused() -> None:
    """The cube could overwrite the tile of the hand-over before the vector cores have read it."""
    result = result_of(gemm("M=70000"))
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]
    (error,) = (d for d in result.diagnostics if d.severity == "error")
    assert (error.code, error.line) == ("TL817", 9)
    assert error.message.startswith("70,000 blocks: ")
    assert "TL848" in error.message


def test_a_loop_that_would_race_is_an_assertion_where_nothing_limits_the_rows() -> None:
    extra = PARAMS + ', S: T.Tensor((M,), "float32")'
    result = result_of(gemm("M", extra))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert result.new_text is not None
    assert '    assert M <= 65535, "a launch has at most 65,535 blocks"\n' in result.new_text
    assert "for task" not in result.new_text


VID = (Path(__file__).parents[3] / "fixtures/vid/softmax_rows/before.py").read_text(encoding="utf-8")


def test_a_kernel_of_an_npu_that_asks_for_too_many() -> None:
    """120 rows of 64, in 30 blocks of 4: a loop of two turns for six of the 24 cores."""
    before = VID.partition("\nif __name__")[0].replace("import torch\n", "")
    assert "for task" not in (result_of(before + "kernel = softmax(65535 * 32, 256, 32)\n").new_text or "")
    new = by_tasks(before + "kernel = softmax(65536 * 32, 256, 32)\n")
    x = np.random.default_rng(3).standard_normal((120, 64)).astype(np.float32)
    right = np.exp(x - x.max(axis=1, keepdims=True))
    right /= right.sum(axis=1, keepdims=True)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": x}, "softmax", (120, 64, 4), reading)
        np.testing.assert_allclose(found["Y"], right, 1e-4, 1e-5)
