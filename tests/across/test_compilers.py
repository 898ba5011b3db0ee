"""Decorators of a repository that are ``tilelang.jit`` where TileLang is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.across.support import migrated, repository, result_of
from tl2npu.verify.settings import Call

COMPAT = """
import functools

try:
    import tilelang

    HAVE = True
except ImportError:
    tilelang = None
    HAVE = False


def whole(*args, **kwargs):
    return tilelang.jit(*args, **kwargs)


def guarded(*args, **kwargs):
    if HAVE:
        return tilelang.jit(*args, **kwargs)
    return lambda function: function


def named(func=None, **options):
    '''Compile a kernel, where that can be done.'''
    if tilelang is None:
        return func
    return tilelang.jit(func, **options)


def without(*args, **kwargs):
    return lambda function: function


def either(*args, **kwargs):
    if HAVE:
        return tilelang.jit(*args, **kwargs)
    return without(*args, **kwargs)


def logged(*args, **kwargs):
    print("compiling")
    return tilelang.jit(*args, **kwargs)


def changed(*args, **kwargs):
    kwargs.update(target="cuda")
    return tilelang.jit(*args, **kwargs)


last = functools.partial(tilelang.jit, out_idx=[-1])
cuda = functools.partial(tilelang.jit, out_idx=[-1], target="cuda")
"""
KERNEL = """
import tilelang.language as T


@{decorator}
def factory(M=64, block=32):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(M // block, threads=128) as bx:
            a = T.alloc_fragment((block, 64), "float32")
            T.copy(A[bx * block, 0], a)
            for i, j in T.Parallel(block, 64):
                a[i, j] = a[i, j] * 2.0
            T.copy(a, B[bx * block, 0])

    return main
"""
CALL = Call("factory", {"M": 64})
MEANT = [f"{name}(out_idx=[1])" for name in ("whole", "guarded", "logged", "either")] + ["named(out_idx=[-1])"]


@pytest.mark.parametrize("decorator", [*MEANT, "last", "last()", "last(verbose=True)"])
def test_one_of_the_file(tmp_path: Path, decorator: str) -> None:
    text = COMPAT + KERNEL.format(decorator=decorator)
    root = repository(tmp_path / "r", {"k.py": text})
    new = migrated(root / "k.py", CALL)
    assert f"@{decorator.split('(')[0]}(" in new
    assert '"tl.ascend_auto_cv_combine": True' in new  # no attribute of what may be None


@pytest.mark.parametrize("decorator", MEANT)
def test_one_of_another_file(tmp_path: Path, decorator: str) -> None:
    name = decorator.split("(")[0]
    text = f"from .compat import {name}\n" + KERNEL.format(decorator=decorator)
    root = repository(tmp_path / "r", {"ops/__init__.py": "", "ops/compat.py": COMPAT, "ops/k.py": text})
    assert f"from .compat import {name}\n" in migrated(root / "ops" / "k.py")


@pytest.mark.parametrize("decorator", ["changed(out_idx=[1])", "cuda"])
def test_what_does_more_is_not_known(tmp_path: Path, decorator: str) -> None:
    root = repository(tmp_path / "r", {"k.py": COMPAT + KERNEL.format(decorator=decorator)})
    result = result_of(root / "k.py")
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL816"]
    assert result.new_text == result.old_text


@pytest.mark.parametrize("empty", ["{}", "None"])
def test_configs_for_where_tilelang_is(tmp_path: Path, empty: str) -> None:
    configs = f"CONFIGS = {{tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}} if HAVE else {empty}\n"
    text = COMPAT + configs + KERNEL.format(decorator="guarded(out_idx=[1], pass_configs=CONFIGS)")
    root = repository(tmp_path / "r", {"k.py": text})
    assert "FAST_MATH" not in migrated(root / "k.py", CALL)
