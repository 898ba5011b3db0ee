"""What is said of a kernel that nothing in its file compiles."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import IMPORTS, gpu_file
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import judged

PARAMS = "A: T.Tensor((64,), 'float32'), B: T.Tensor((64,), 'float32')"
BODY = "a = T.alloc_shared((64,), 'float32')\nT.copy(A, a)\nT.copy(a, B)"
OLD = "is `tilelang.autotuner.jit`, which TileLang has removed: write `@tilelang.jit`"


def said(jit: str, imports: str = "", end: str = "", to: str = "ascendc") -> str:
    text = gpu_file(PARAMS, BODY, jit=jit, head=imports + IMPORTS) + end
    result = migrate_text(text, "k.py", Options(target=to))  # type: ignore[arg-type]
    assert result.new_text == text
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert found.code == ("TL816" if to == "ascendc" else "TL401")
    return found.message


@pytest.mark.parametrize(
    ("imports", "jit"),
    [
        ("from tilelang.autotuner import jit\n", "@jit(out_idx=[1], supply_type=None)"),
        ("from tilelang.autotuner import autotune, jit\n", "@autotune(configs=[], keys=['n'])\n@jit(out_idx=[1])"),
        ("from tilelang.autotuner import jit as tuned\n", "@tuned"),
        ("import tilelang.autotuner\n", "@tilelang.autotuner.jit(out_idx=[1])"),
        ("import tilelang.autotuner as tuner\nmy_jit = tuner.jit\n", "@my_jit(out_idx=[1])"),
    ],
)
@pytest.mark.parametrize("to", ["ascendc", "npuir"])
def test_the_jit_of_old_tuners(imports: str, jit: str, to: str) -> None:
    assert OLD in said(jit, imports, to=to)


@pytest.mark.parametrize(
    ("imports", "jit", "expected"),
    [
        ("from numba import jit\n", "@jit", "`@jit` above the factory is `numba.jit`, which is not known to compile"),
        ("from .tools import jit\n", "@jit()", "`@jit` above the factory is `.tools.jit`, which"),
        ("", "@T.jit", "`@T.jit` above the factory is `tilelang.language.jit`, which"),
        ("def ours(f):\n    return f\n\n\n", "@ours", "`@ours` above the factory is not known to compile"),
        (
            "import pytest\n",
            "@pytest.mark.parametrize('n', [1])",
            "nothing in this file compiles",
        ),
        (
            "import functools\n",
            "@functools.partial(tilelang.jit, out_idx=[1])",
            "`@functools.partial` above the factory is",
        ),
        ("", "@staticmethod", "nothing in this file compiles"),
    ],
)
def test_other_decorators(imports: str, jit: str, expected: str) -> None:
    assert expected in said(jit, imports)


LOWERED = "module, params = tilelang.lower(factory())\nprofiler = tilelang.Profiler(module, params, [1])"


@pytest.mark.parametrize("jit", ["", "@functools.lru_cache", "@functools.cache", "@functools.lru_cache(None)"])
@pytest.mark.parametrize("end", ["", "show(factory)", LOWERED, "f = other if other else factory"])
def test_what_something_else_compiles(jit: str, end: str) -> None:
    """The kernel is new to the NPU, so that nobody can have set its keys yet: the error names them."""
    text = f"{gpu_file(PARAMS, BODY, jit=jit, head='import functools' + chr(10) + IMPORTS)}\n\n{end}\n"
    result = migrate_text(text, "k.py", Options())
    (found,) = [d for d in result.diagnostics if d.code == "TL816"]
    assert found.message == (
        "nothing in this file compiles the kernel: add `@tilelang.jit(out_idx=[1])` above `factory` before "
        "you migrate, or set `TL_ASCEND_AUTO_CV_COMBINE` and `TL_ASCEND_AUTO_SYNC` and `TL_ASCEND_MEMORY_PLANNING` "
        "where it is compiled"
    )
    assert [kernel.verdict for kernel in judged(result).kernels] == ["migrated with errors"]
    assert "is_npu=True" in (result.new_text or "")
    again = migrate_text(result.new_text or "", "k.py", Options())
    assert again.new_text == result.new_text


def test_a_helper_that_compiles() -> None:
    """A decorator above the factory would get what the helper makes: the advice is one that migrates, when followed."""
    helper = "@functools.lru_cache\ndef build(func):\n    return tilelang.compile(func)\n"
    text = gpu_file(PARAMS, BODY, jit="", head=f"import functools\n{IMPORTS}\n\n\n{helper}").replace(
        "return main", "return build(main)"
    )
    (found,) = [d for d in migrate_text(text, "k.py", Options()).diagnostics if d.code == "TL816"]
    assert "compiles the kernel: call `tilelang.compile` instead of `build` before you migrate" in found.message
    done = migrate_text(text.replace("return build(", "return tilelang.compile("), "k.py", Options())
    assert [kernel.verdict for kernel in judged(done).kernels] == ["migrated"]


def test_several_at_once() -> None:
    assert "the NPU has no `tilelang.par_compile`" in said(
        "@staticmethod", end="\nks = tilelang.par_compile([factory()])\n"
    )


BARE = """
import tilelang
import tilelang.language as T


@T.prim_func
def scale(X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")):
    with T.Kernel({launch}:
        x = T.alloc_ub(({rows}, 64), "float32")
        T.copy(X[{row}, 0], x)
        for i, j in T.Parallel({rows}, 64):
            x[i, j] = x[i, j] * 2.0
        T.copy(x, Y[{row}, 0])
"""
GPU = BARE.replace("alloc_ub", "alloc_shared").format(launch="4, threads=128) as (bx)", rows=64, row="bx * 64")
ASCEND = BARE.format(launch="4, is_npu=True) as (cid, vid)", rows=32, row="cid * 64 + vid * 32")


@pytest.mark.parametrize("text", [GPU, ASCEND])
def test_the_line_that_is_missing_below_a_prim_func_of_a_module(text: str) -> None:
    """Taken as it is written in the message, the kernel is migrated, with its keys."""
    (found,) = [d for d in migrate_text(text, "k.py", Options()).diagnostics if d.severity == "error"]
    (line,) = [part for part in found.message.split("`") if part.startswith("kernel = ")]
    assert (found.code, line) == ("TL816", "kernel = tilelang.compile(scale, out_idx=[1])")
    result = migrate_text(f"{text}\n\n{line}\n", "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert [d for d in result.diagnostics if d.severity == "error"] == []
    assert "TL_ASCEND_AUTO_SYNC: True" in result.new_text
