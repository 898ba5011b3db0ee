"""Kernels that another file of the repository launches: their factories stand in the copy of that file."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import pytest

from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.triton.result import migrate_triton

OPS = """\
from typing import Dict

import triton
import triton.language as tl
from triton import next_power_of_2

GAIN = 3.0


def block(args: Dict) -> int:
    return max(16, next_power_of_2(args["n"]))


@triton.jit
def gained(x):
    return x * GAIN


@triton.heuristics({"B": block})
@triton.jit
def _row_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    x = tl.load(x_ptr + row * n + at, mask=at < n)
    tl.store(y_ptr + row * n + at, gained(x), mask=at < n)


@triton.jit
def cumulated(x_ptr, y_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.cumsum(x, axis=0), mask=at < n)
"""
HOST = """\
import torch
from pkg.ops import (
    _row_kernel as rows,
    cumulated,
)

SCALE = 2.0


def run(x):
    m, n = x.shape
    y = torch.empty_like(x)
    rows[(m,)](x, y, n)
    return y


def summed(x):
    n = x.shape[0]
    y = torch.empty_like(x)
    cumulated[(1,)](x, y, n, B=128)
    return y


if __name__ == "__main__":
    x = torch.randn(5, 48, dtype=torch.float32)
    torch.testing.assert_close(run(x), x * 3.0)
"""


def package(root: Path, host: str = HOST, ops: str = OPS) -> tuple[Path, Path]:
    (root / "pkg").mkdir()
    (root / "pyproject.toml").write_text("")
    for name, text in (("__init__", ""), ("ops", ops), ("host", host)):
        (root / "pkg" / f"{name}.py").write_text(text, encoding="utf-8")
    return root / "pkg" / "ops.py", root / "pkg" / "host.py"


def migrated(file: Path) -> FileResult:
    return migrate_triton(file.read_text(encoding="utf-8"), str(file), Options())


def test_the_factory_stands_beside_the_launch(tmp_path: Path) -> None:
    _, host = package(tmp_path)
    result = migrated(host)
    assert [(k.name, k.line, k.disposition) for k in result.kernels] == [
        ("_row_kernel", 13, "migrated"),
        ("cumulated", 20, "refused"),
    ]
    new = result.new_text or ""
    assert "    _row_kernel(n=n, m=m, next_power_of_2_n=next_power_of_2(n))(x, y)\n" in new
    assert "y_tile[i] = x[i] * 3.0" in new
    assert "from pkg.ops import cumulated\n" in new  # what stays Triton is imported as before
    assert "from tilelang import next_power_of_2\n" in new
    assert not [word for word in ("gained", "GAIN", "Dict", "def block", "triton") if word in new]
    assert (result.old_text, Path(result.beside).name) == (HOST, "host_tilelang.py")
    refused = [item for item in result.diagnostics if item.severity == "error"]
    assert [(item.code, item.line) for item in refused] == [("TL531", 20)]
    assert refused[0].message.endswith("pkg/ops.py:32)")
    assert {Path(path).name for path, _ in result.depends} >= {"ops.py"}


def test_the_file_of_the_kernel_says_where_it_is_launched(tmp_path: Path) -> None:
    ops, _ = package(tmp_path)
    result = migrated(ops)
    assert [(k.name, k.disposition) for k in result.kernels] == [("_row_kernel", "unchanged")]
    assert "host.py" in result.kernels[0].reason
    assert result.new_text == OPS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from pkg.ops import (\n", "if torch.cuda.is_available():\n    rows = None\nfrom pkg.ops import (\n"),
        ("SCALE = 2.0", "def gained(x):\n    return x"),  # what the kernel calls is another function here
        ("SCALE = 2.0", "tl = None"),
        ("rows[(m,)](x, y, n)", "launch(rows, m, x, y, n)"),
    ],
)
def test_a_kernel_whose_names_mean_something_else_stays(tmp_path: Path, old: str, new: str) -> None:
    ops, host = package(tmp_path, HOST.replace(old, new))
    assert "_row_kernel" not in [kernel.name for kernel in migrated(host).kernels if kernel.disposition == "migrated"]
    assert [(k.name, k.codes) for k in migrated(ops).kernels if k.disposition == "refused"][:1] == [
        ("_row_kernel", ("TL510",))
    ]


@pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs triton and torch")
def test_it_computes_the_same(tmp_path: Path) -> None:
    _, host = package(tmp_path)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "tl2npu", "verify", str(host)]
    done = run(command, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "_row_kernel: verified" in done.stdout
