"""Where prim_funcs are compiled: names mean what they mean in Python."""

from __future__ import annotations

import textwrap

import pytest

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.index import Index

FACTORY = """
def {name}(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            T.copy(A, A)

{end}
"""


def compiled(*ends: str) -> dict[str, list[str]]:
    """The compilations of factories ``f0``, ``f1``, ... that end like this, each with a prim_func ``main``."""
    parts = [FACTORY.format(name=f"f{k}", end=textwrap.indent(end, "    ")) for k, end in enumerate(ends)]
    index = Index.parse("import tilelang\nimport tilelang.language as T\n" + "".join(parts))
    return {
        item.key[0]: [index.module.code_for_node(found.node) for found in item.factory.compilations]
        for item in FileKernels(index).located
        if item.factory is not None
    }


@pytest.mark.parametrize("last", ["return tilelang.compile(main, out_idx=[1])", "return main"])
def test_every_main_is_that_of_its_own_factory(last: str) -> None:
    found = compiled("return tilelang.compile(main, out_idx=[0])", last)
    assert found["f0.main"] == ["tilelang.compile(main, out_idx=[0])"]
    assert found["f1.main"] == (["tilelang.compile(main, out_idx=[1])"] if "out_idx" in last else [])


def test_a_function_inside_a_factory_sees_what_the_factory_defines() -> None:
    inner = "def build():\n    return tilelang.compile(main, out_idx=[0])\n\nreturn build"
    assert compiled(inner, "return main") == {"f0.main": ["tilelang.compile(main, out_idx=[0])"], "f1.main": []}
