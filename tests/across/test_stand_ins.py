"""Objects that stand in for TileLang where it may not be installed: a file that is migrated imports TileLang itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.across.support import migrated, refused, repository

STAND_IN = """
import importlib


def _load():
    try:
        import tilelang as real
        from tilelang import language as words
    except ImportError as exc:
        raise RuntimeError("no TileLang") from exc
    return real, words


class _Keys:
    TL_ENABLE_FAST_MATH = "TL_ENABLE_FAST_MATH"


class _Package:
    PassConfigKey = _Keys

    def __getattr__(self, name):
        real, _ = _load()
        return getattr(real, name)


class _Language:
    bfloat16 = "bfloat16"

    def __getattr__(self, name):
        _, words = _load()
        return getattr({of}, name)


tilelang = _Package()
T = _Language()
BLOCK = 32
"""
KERNEL = """
from .compat import {names}


@tilelang.jit(out_idx=[-1], pass_configs={{tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}})
def factory(M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, 64), dtype), B: T.Tensor((M, 64), dtype)):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            a = T.alloc_shared((32, 64), dtype)
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] * 2.0
            T.copy(a, B[bx * 32, 0])

    return main
"""


@pytest.mark.parametrize(
    ("names", "imports"),
    [
        ("T, tilelang", "import tilelang\nimport tilelang.language as T\n"),
        ("BLOCK, T, tilelang", "import tilelang\nimport tilelang.language as T\nfrom .compat import BLOCK\n"),
    ],
)
def test_a_file_imports_what_the_object_stands_for(tmp_path: Path, names: str, imports: str) -> None:
    files = {"ops/__init__.py": "", "ops/compat.py": STAND_IN.replace("{of}", "words")}
    root = repository(tmp_path, files | {"ops/kernel.py": KERNEL.format(names=names)})
    text = migrated(root / "ops" / "kernel.py")
    assert text.startswith(imports)
    assert "tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True" in text  # which the object does not have


@pytest.mark.parametrize("of", ["other", "_load()"])
def test_an_object_that_asks_something_else(tmp_path: Path, of: str) -> None:
    files = {"ops/__init__.py": "", "ops/compat.py": STAND_IN.replace("{of}", of)}
    root = repository(tmp_path, files | {"ops/kernel.py": KERNEL.format(names="T, tilelang")})
    assert [code for code, _, _ in refused(root / "ops" / "kernel.py")] == ["TL923"]
