"""What is said of a kernel that nothing in its file compiles."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import IMPORTS, gpu_file
from tl2npu.migration import migrate_text
from tl2npu.options import Options

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
        ("import functools\n", "@functools.lru_cache", "no `@tilelang.jit` or `tilelang.compile` in this file"),
        (
            "import functools\n",
            "@functools.lru_cache(None)",
            "no `@tilelang.jit` or `tilelang.compile` in this file compiles",
        ),
        (
            "import pytest\n",
            "@pytest.mark.parametrize('n', [1])",
            "no `@tilelang.jit` or `tilelang.compile` in this file",
        ),
        (
            "import functools\n",
            "@functools.partial(tilelang.jit, out_idx=[1])",
            "`@functools.partial` above the factory is",
        ),
        ("", "@staticmethod", "no `@tilelang.jit` or `tilelang.compile` in this file compiles"),
    ],
)
def test_other_decorators(imports: str, jit: str, expected: str) -> None:
    assert expected in said(jit, imports)


def test_several_at_once() -> None:
    assert "the NPU has no `tilelang.par_compile`" in said(
        "@staticmethod", end="\nks = tilelang.par_compile([factory()])\n"
    )
