"""Device functions and constants of other modules, and reductions with functions of the file."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.triton.result import migrate_triton

UTILS = """\
from .deep import half as _half
from triton.language.math import exp2 as fast
import triton
import triton.language as tl

GAIN = 1.5
SCALE: tl.constexpr = 2.0


@triton.jit
def _inner(x, k=SCALE):
    return x * k + GAIN


@triton.jit
def squash(x):
    y = _inner(x)
    return _half(y) / (1.0 + tl.abs(y))


@triton.jit
def lowest(dtype):
    dtype_ = dtype
    if dtype_.is_floating():
        value: tl.constexpr = float("-inf")
        return value
    if dtype_.is_int_signed():
        width: tl.constexpr = dtype_.int_bitwidth
        value: tl.constexpr = -1 * 2 ** (width - 1)
        return value
"""
DEEP = """\
import triton

SCALE = 7.0


@triton.jit
def half(x):
    return x * 0.5
"""
KERNEL = """\
import torch
import triton
import triton.language as tl
from pkg.utils import squash as sq, lowest
from .utils import GAIN, fast

SCALE = 100.0


@triton.jit
def kernel(x_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=lowest(x_ptr.type.element_ty))
    top = tl.max(x, axis=0)
    y = sq(x - top) + fast(x - top) * GAIN
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def run(x):
    n, cols = x.shape
    y = torch.empty_like(x)
    kernel[(n,)](x, y, n, cols, BLOCK=triton.next_power_of_2(cols))
    return y


if __name__ == "__main__":
    x = torch.randn(8, 100, dtype=torch.float32)
    z = x - x.max(dim=1, keepdim=True).values
    v = z * 2.0 + 1.5
    torch.testing.assert_close(run(x), v * 0.5 / (1 + v.abs()) + torch.exp2(z) * 1.5, rtol=1e-4, atol=1e-4)
"""


def package(root: Path, utils: str = UTILS) -> Path:
    (root / "pkg").mkdir()
    (root / "pyproject.toml").write_text("")
    for name, text in (("__init__", ""), ("utils", utils), ("deep", DEEP), ("k", KERNEL)):
        (root / "pkg" / f"{name}.py").write_text(text, encoding="utf-8")
    return root / "pkg" / "k.py"


def migrated(file: Path) -> FileResult:
    return migrate_triton(file.read_text(encoding="utf-8"), str(file), Options())


def test_functions_mean_what_their_own_module_says(tmp_path: Path) -> None:
    result = migrated(package(tmp_path))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"], result.diagnostics
    new = result.new_text or ""
    assert "* 2.0 + 1.5" in new  # its own SCALE, not that of the file or of the function below
    assert "utils" not in new
    assert {Path(path).name for path, _ in result.depends} >= {"utils.py", "deep.py"}
    assert {d.line for d in result.diagnostics} <= set(range(1, KERNEL.count("\n")))


@pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs triton and torch")
def test_they_compute_the_same(tmp_path: Path) -> None:
    file = package(tmp_path)
    file.write_text(KERNEL.replace("from .utils", "from pkg.utils"), encoding="utf-8")  # a script is in no package
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "tl2npu", "verify", str(file)]
    done = run(command, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "utils",
    [
        UTILS.replace("@triton.jit\ndef squash", "if GAIN > 1.0:\n    squash = None\n\n\n@triton.jit\ndef squash"),
        UTILS.replace("def squash(x):\n", "def squash(x, *rest):\n"),
        UTILS.replace("    y = _inner(x)\n", "    y = squash(x)\n"),
        UTILS.replace("@triton.jit\ndef squash", "def squash"),
        UTILS.replace("def squash", "def squashed"),
    ],
)
def test_what_is_not_known_stays(tmp_path: Path, utils: str) -> None:
    result = migrated(package(tmp_path, utils))
    found = [(d.code, d.line) for d in result.diagnostics if d.severity == "error"]
    assert found == [("TL544", 16)]


_OLD = """if TRITON3:

    @triton.jit
    def _inner(x, by=SCALE):
        return x * by + GAIN

else:

    @triton.jit
    def _inner(x, by=SCALE):
        return x * by - GAIN
"""
_INNER = "@triton.jit\ndef _inner(x, k=SCALE):\n    return x * k + GAIN\n"


def test_functions_for_other_versions_of_triton(tmp_path: Path) -> None:
    """In the module of the kernel and in another one; of another condition nothing is known."""
    by_version = 'TRITON3 = triton.__version__ >= "3.0.0"\n\n' + _OLD
    new = migrated(package(tmp_path, UTILS.replace(_INNER, by_version))).new_text or ""
    assert "* 2.0 + 1.5" in new
    assert "- 1.5" not in new
    by_variable = "import os\n\n" + _OLD.replace("TRITON3", "os.environ.get('EXACT', '1') == '1'")
    (root := tmp_path / "other").mkdir()
    result = migrated(package(root, UTILS.replace(_INNER, by_variable)))
    assert "* 2.0 + 1.5" in (result.new_text or "")
    assert ["`_inner`" in d.message and "`EXACT`" in d.message for d in result.diagnostics if d.code == "TL509"] == [
        True
    ]
    kernel = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, _inner(x), mask=i < n)")
    named = "if os.environ.get('EXACT', '1') == '1':\n    grow = tl.exp\nelse:\n    grow = tl.exp2\n"
    (root := tmp_path / "named").mkdir()
    result = migrated(
        package(root, UTILS.replace(_INNER, f"import os\n\n{named}\n{_INNER}".replace("x * k", "grow(x)")))
    )
    assert "T.exp(" in (result.new_text or "")
    assert any("`grow`" in d.message and "`EXACT`" in d.message for d in result.diagnostics if d.code == "TL509")
    names = "SCALE: tl.constexpr = 2.0\nGAIN: tl.constexpr = 1.5\n"
    for functions, disposition in ((by_version, "migrated"), (_OLD, "refused")):
        text = kernel.replace(HEAD, f"{HEAD}\n\n{names}{functions}\n\n")
        assert [kernel.disposition for kernel in migrate_triton(text, "k.py", Options()).kernels] == [disposition]


def test_a_name_that_the_file_binds_again_is_not_that_of_the_module(tmp_path: Path) -> None:
    file = package(tmp_path)
    file.write_text(KERNEL.replace("SCALE = 100.0", "if torch.cuda.is_available():\n    sq = tl.abs"), encoding="utf-8")
    assert [d.code for d in migrated(file).diagnostics if d.severity == "error"] == ["TL544"]


REDUCED = """\
import torch
import triton
import triton.language as tl
from triton.language import maximum


@triton.jit
def any_of(a, b):
    \"\"\"Whether one holds.\"\"\"
    return a or b


@triton.jit
def all_of(a, b):
    return a & b


@triton.jit
def plus(a, b):
    return b + a


@triton.jit
def most(x, y):
    return maximum(x, y)


@triton.jit
def kernel(x_ptr, any_ptr, all_ptr, sum_ptr, max_ptr, n, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    y = tl.load(x_ptr + row * cols + at, mask=at < cols, other=1.0)
    tl.store(any_ptr + row, tl.reduce(x != 0, axis=0, combine_fn=any_of))
    tl.store(all_ptr + row, tl.reduce(y != 0, 0, all_of))
    tl.store(sum_ptr, tl.reduce(x, 0, plus))
    tl.store(max_ptr + row, tl.reduce(x, axis=0, combine_fn=most))


x = torch.randn(8, 100, dtype=torch.float32)
x[1] = 0.0
x[2, 3] = 0.0
x[4, 5] = float("inf")
x[5] = 0.0
x[5, 99] = -1.0
a, b = torch.empty(8, dtype=torch.bool), torch.empty(8, dtype=torch.bool)
s, m = torch.empty([], dtype=torch.float32), torch.empty(8, dtype=torch.float32)

kernel[(8,)](x, a, b, s, m, 8, 100, BLOCK=128)
"""
ONE = REDUCED.replace("sum_ptr, tl", "sum_ptr + row, tl").replace("torch.empty([]", "torch.empty(8")


@pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs triton and torch")
def test_reductions_with_functions_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        ONE
        + "assert a.tolist() == (x != 0).any(dim=1).tolist()\n"
        + "assert b.tolist() == (x != 0).all(dim=1).tolist()\n"
        + "torch.testing.assert_close(m, torch.clamp(x.max(dim=1).values, min=0.0))\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "tl2npu", "verify", str(tmp_path / "old.py")]
    done = run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return b + a", "return a * b"),
        ("return b + a", "return a + a"),
        ("return b + a", "return a + 1.0"),
        ("return b + a", "c = a\n    return c + b"),
        ("return a or b", "return a or not b"),
        ("tl.reduce(x, 0, plus)", "tl.reduce(x.to(tl.float16), 0, plus)"),
        ("tl.reduce(x != 0, axis=0, combine_fn=any_of)", "tl.reduce(x.to(tl.int32), axis=0, combine_fn=any_of)"),
        ("return maximum(x, y)", "return maximum(x, x)"),
    ],
)
def test_other_reductions_are_refused(old: str, new: str) -> None:
    assert refusals(ONE.replace(old, new)) == ["TL536"]


def test_a_tensor_without_axes_is_one_element(tmp_path: Path) -> None:
    text = REDUCED.replace("kernel[(8,)]", "kernel[(1,)]")
    result = migrate_triton(text, str(tmp_path / "old.py"), Options())
    assert "s.view(1)" in (result.new_text or ""), result.diagnostics
