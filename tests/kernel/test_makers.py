"""Which kernel a compilation is of: names are looked up as Python does."""

from __future__ import annotations

import pytest

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.source.index import Index

HEAD = """\
import tilelang
import tilelang.language as T


"""
FUNC = """\
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(2, threads=128) as bx:
        a = T.alloc_shared((32, 64), "float32")
        T.copy(A[bx * 32, 0], a)
        for i, j in T.Parallel(32, 64):
            a[i, j] = a[i, j] + 1.0
        T.copy(a, C[bx * 32, 0])
"""


def maker(name: str, end: str = "return main") -> str:
    body = "".join(f"    {line}" for line in (FUNC + end + "\n").splitlines(True))
    return f"def {name}():\n{body}\n\n"


def after(text: str) -> FileResult:
    return migrate_text(HEAD + text, "kernels.py", Options())


def new_text(text: str) -> str:
    found = after(text).new_text
    assert found is not None
    return found


def compiled(text: str) -> dict[str, list[str]]:
    """The factories of the file, with the source of what compiles each."""
    file = FileKernels(Index.parse(HEAD + text))
    return {
        item.factory.node.name.value: [file.index.module.code_for_node(c.node) for c in item.factory.compilations]
        for item in file.located
        if item.factory is not None
    }


def test_each_factory_compiles_its_own_main() -> None:
    end = "return tilelang.compile(main, out_idx=[{}])"
    assert compiled(maker("one", end.format(1)) + maker("two", end.format(-1))) == {
        "one": ["tilelang.compile(main, out_idx=[1])"],
        "two": ["tilelang.compile(main, out_idx=[-1])"],
    }


def test_a_variable_of_one_function_is_not_that_of_another() -> None:
    tests = "def test_{0}():\n    program = {0}()\n    return tilelang.compile(program, out_idx=[{1}])\n\n\n"
    text = maker("one") + maker("two") + tests.format("one", 1) + tests.format("two", -1)
    assert compiled(text) == {
        "one": ["tilelang.compile(program, out_idx=[1])"],
        "two": ["tilelang.compile(program, out_idx=[-1])"],
    }


@pytest.mark.parametrize("argument", ["program", "func=program", "program()"])
def test_a_parameter_is_the_only_thing_of_that_name(argument: str) -> None:
    helper = f"def build(program):\n    return tilelang.compile({argument})\n\n\nprogram = one()\n"
    assert compiled(maker("one") + helper) == {"one": [f"tilelang.compile({argument})"]}
    assert compiled(maker("one") + maker("two") + helper + "\n\ndef other():\n    program = two()\n")["two"] == []


def test_a_parameter_may_stand_for_any_of_several() -> None:
    helper = "def build(main):\n    return tilelang.compile(main)\n"
    assert compiled(maker("one") + maker("two") + helper) == {"one": [], "two": []}


@pytest.mark.parametrize("returned", ["one()", "one", "give()"])
def test_a_decorated_function_returns_the_kernel_of_another(returned: str) -> None:
    inner = "def give():\n    return one()\n\n\n"
    outer = f"@tilelang.jit(out_idx=[1])\ndef tuned(n=None):\n    return {returned}\n"
    assert compiled(maker("one") + inner + outer) == {"one": ["tilelang.jit(out_idx=[1])"]}


def test_a_decorated_function_that_returns_one_of_two_kernels_is_of_none() -> None:
    outer = "@tilelang.jit\ndef tuned(n):\n    if n:\n        return one()\n    return two()\n"
    assert compiled(maker("one") + maker("two") + outer) == {"one": [], "two": []}


CURRIED = """\
def make(tune=False):
    def kernel_func(rows):
{func}
        return main

    if tune:

        @tilelang.jit(out_idx=[1])
        def kernel(rows=None):
            return kernel_func(rows)

        return kernel()
    else:

        def kernel(rows):
            return kernel_func(rows)

        return kernel


if __name__ == "__main__":
    program = make()(32)
    kernel = tilelang.compile(program, out_idx=[1])
"""


def test_every_way_to_compile_gets_the_same_pass_configs() -> None:
    indented = "".join(f"        {line}" for line in FUNC.splitlines(True))
    result = after(CURRIED.format(func=indented))
    text = result.new_text or ""
    assert [item.disposition for item in result.kernels] == ["migrated"]
    assert "@tilelang.jit(out_idx=[1], pass_configs=pass_configs)\n" in text
    assert "kernel = tilelang.compile(program, out_idx=[1], pass_configs=pass_configs)\n" in text
    assert text.count("pass_configs = {") == 1
    assert text.index("pass_configs = {") < text.index("def make")


def test_the_dict_stands_above_what_uses_it_first() -> None:
    early = "def run():\n    return tilelang.compile(one(), out_idx=[1])\n\n\n"
    late = "@tilelang.jit(out_idx=[1])\ndef tuned():\n    return one()\n\n\n"
    for parts in ([early, maker("one"), late], [maker("one"), late, early], [late, early, maker("one")]):
        text = new_text("".join(parts))
        assert text.count("pass_configs = {") == 1
        assert text.index("pass_configs = {") < text.index("pass_configs=pass_configs")


def test_a_dict_below_is_of_no_use_to_a_decorator() -> None:
    late = "@tilelang.jit(out_idx=[1])\ndef tuned():\n    return one()\n\n\n"
    keys = ("TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_AUTO_SYNC", "TL_ASCEND_MEMORY_PLANNING")
    below = "pass_configs = {" + ", ".join(f"tilelang.PassConfigKey.{key}: True" for key in keys) + "}\n"
    text = new_text(maker("one") + late + below)
    assert "@tilelang.jit(out_idx=[1], pass_configs=developer_pass_configs)\n" in text
    assert text.index("developer_pass_configs = {") < text.index("@tilelang.jit")


@pytest.mark.parametrize(
    "end",
    [
        "made = tilelang.compile(main, out_idx=[1])",
        "def build():\n    return tilelang.compile(main, out_idx=[1])",
        "program = main\n\n\ndef build():\n    return tilelang.compile(func=main, out_idx=[1])",
        "class Op:\n    def __init__(self):\n        self.made = tilelang.cached(main, [1])",
    ],
)
def test_a_prim_func_without_a_factory(end: str) -> None:
    result = migrate_text(f"{HEAD}{FUNC}\n\n{end}\n", "k.py", Options())
    (kernel,) = result.kernels
    assert (kernel.name, kernel.disposition) == ("main", "migrated")
    new = result.new_text or ""
    assert "pass_configs=pass_configs)" in new.splitlines()[-1]
    (located,) = FileKernels(Index.parse(new)).located
    assert [sorted(found.kwargs) for found in located.compilations] == [["out_idx", "pass_configs"]]


PRODUCT = """\
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.gemm(a, a, c, clear_accum=True)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.exp(c[i, j])
        T.copy(c, C)
"""


def test_outputs_of_a_prim_func_without_a_factory() -> None:
    """Beside a hand-over they are counted from the front."""
    text = f"{HEAD}{PRODUCT}\n\nmade = tilelang.compile(main, [-1])\n"
    new = migrate_text(text, "k.py", Options()).new_text or ""
    assert new.splitlines()[-1] == "made = tilelang.compile(main, out_idx=[1], pass_configs=pass_configs)"


@pytest.mark.parametrize(
    "end", ["made = tilelang.compile(other, out_idx=[1])", "made = tilelang.jit(main, out_idx=[1])", "show(main)"]
)
def test_a_prim_func_that_nothing_compiles(end: str) -> None:
    result = migrate_text(f"{HEAD}{FUNC}\n\n{end}\n", "k.py", Options())
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL816"]
