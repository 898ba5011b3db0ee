"""Small repositories, migrated file by file and verified on the simulator."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.in_process import copied
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.verify.judge import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.settings import Call, Settings

LIBRARY = """
import tilelang.language as tl

from .sizes import HALF

SCALE = 0.5
ROWS = HALF * 2


@tl.macro
def scaled(x, rows, cols):
    for i, j in tl.Parallel(rows, cols):
        x[i, j] = x[i, j] * SCALE


def make_add(value, rows, cols=64):
    total = value + 1.0

    @tl.macro
    def add(x):
        for i, j in tl.Parallel(rows, cols):
            x[i, j] = x[i, j] + total

    return add
"""
SIZES = "HALF = 1 << 4\n"

KERNEL = """
import tilelang
import tilelang.language as T
{imports}


@tilelang.jit(out_idx=[-1])
def factory(M, dtype="float32"):
    add = {make_add}(2.0, {rows})

    @T.prim_func
    def main(A: T.Tensor((M, 64), dtype), B: T.Tensor((M, 64), dtype)):
        with T.Kernel(T.ceildiv(M, {rows}), threads=128) as bx:
            a = T.alloc_shared(({rows}, 64), dtype)
            T.copy(A[bx * {rows}, 0], a)
            {scaled}(a, {rows}, 64)
            add(a)
            T.copy(a, B[bx * {rows}, 0])

    return main
"""
CALL = Call("factory", {"M": 64})


def kernel(imports: str, prefix: str = "", rows: str = "ROWS") -> str:
    """A kernel that needs ``scaled``, ``make_add`` and ``ROWS``; ``prefix`` stands before each of them."""
    return KERNEL.format(
        imports=imports, make_add=f"{prefix}make_add", scaled=f"{prefix}scaled", rows=f"{prefix}{rows}"
    ).lstrip("\n")


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """Write the files below ``root``, which becomes the root of a repository."""
    root.mkdir(exist_ok=True)
    (root / "pyproject.toml").touch()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def library(root: Path, files: Mapping[str, str]) -> Path:
    """A repository with the package ``ops`` and its ``lib`` and ``sizes``."""
    return repository(root, {"ops/__init__.py": "", "ops/lib.py": LIBRARY, "ops/sizes.py": SIZES, **files})


def result_of(path: Path) -> FileResult:
    """The result for a file of a repository."""
    result = migrate_text(path.read_text(encoding="utf-8"), str(path), Options())
    assert result.error is None
    return result


def migrated(path: Path, *calls: Call) -> str:
    """The new text of a file whose kernels must all be migrated, verified with the calls."""
    result = result_of(path)
    assert result.kernels
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}, result.diagnostics
    assert result.new_text is not None
    if calls:
        old, new = (Source(text or "", str(path), path.name) for text in (result.old_text, result.new_text))
        found = verify(old, new, Settings(calls=calls), copied)
        assert found.ok, found
    return result.new_text


def refused(path: Path) -> list[tuple[str, int, str]]:
    """Code, line and message of the errors of a file whose kernels must all be refused, its text untouched."""
    result = result_of(path)
    assert {kernel.disposition for kernel in result.kernels} == {"refused"}
    assert result.new_text == result.old_text
    return [(item.code, item.line, item.message) for item in result.diagnostics if item.severity == "error"]
