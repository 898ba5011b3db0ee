"""What compiles a kernel, and the names of what it is given by position."""

from __future__ import annotations

import pytest

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.index import Index

HEAD = "import tilelang\nimport tilelang.language as T\n"
FACTORY = """
{decorator}
def make(n):
    @T.prim_func
    def main(A: T.Tensor((n, 64), "float32"), B: T.Tensor((n, 64), "float32"), W: T.Tensor((n, 64), "float32")):
        with T.Kernel(1, {launch}) as bx:
            T.copy(A, B)

    return main

"""
GPU, ASCEND = "threads=128", "is_npu=True"


def only(end: str, launch: str = GPU, decorator: str = "@staticmethod", head: str = "") -> Compilation:
    """The only compilation of a file that ends like this."""
    text = HEAD + head + FACTORY.format(decorator=decorator, launch=launch) + end + "\n"
    (item,) = FileKernels(Index.parse(text)).located
    assert item.factory is not None
    (found,) = item.factory.compilations
    return found


def given(found: Compilation) -> dict[str, str]:
    return {name: code(value) for name, value in found.kwargs.items()}


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("", "tilelang.compile"),
        ("from tilelang import compile\n", "compile"),
        ("from tilelang.jit import compile as build\n", "build"),
        ("", "tilelang.cached"),
        ("from tilelang import cached\n", "cached"),
        ("from tilelang.cache import cached as from_cache\n", "from_cache"),
        ("import tilelang as tl\n", "tl.cache.cached"),
        ("from tilelang.jit import cached\n", "cached"),
        ("", "tilelang.JITKernel"),
        ("from tilelang.jit import JITKernel\n", "JITKernel"),
        ("from tilelang.jit.kernel import JITKernel as Compiled\n", "Compiled"),
    ],
)
@pytest.mark.parametrize("launch", [GPU, ASCEND])
def test_the_second_argument_is_out_idx(head: str, name: str, launch: str) -> None:
    assert given(only(f"k = {name}(make(8), [1])", launch, head=head)) == {"out_idx": "[1]"}
    assert given(only(f"k = {name}(out_idx=[1], func=make(8))", launch, head=head)) == {"out_idx": "[1]"}


@pytest.mark.parametrize("name", ["compile", "JITKernel"])
def test_the_third_argument_depends_on_the_language(name: str) -> None:
    call = f"k = tilelang.{name}(make(8), 1, 2, 'cython', 'auto', None, 'auto', False, CONFIGS)"
    assert given(only(call, ASCEND)) == {
        "out_idx": "1",
        "workspace_idx": "2",
        "execution_backend": "'cython'",
        "target": "'auto'",
        "target_host": "None",
        "platform": "'auto'",
        "verbose": "False",
        "pass_configs": "CONFIGS",
    }
    call = f"k = tilelang.{name}(make(8), 1, 'cython', 'cuda', None, True, CONFIGS, FLAGS)"
    assert given(only(call, GPU)) == {
        "out_idx": "1",
        "execution_backend": "'cython'",
        "target": "'cuda'",
        "target_host": "None",
        "verbose": "True",
        "pass_configs": "CONFIGS",
        "compile_flags": "FLAGS",
    }


def test_a_kernel_for_ascendnpu_ir_has_no_workspaces() -> None:
    found = only("k = tilelang.compile(make(8), [1], 'cython', target='npuir')", ASCEND)
    assert given(found) == {"out_idx": "[1]", "execution_backend": "'cython'", "target": "'npuir'"}


def test_cached_takes_workspaces_by_position_for_an_npu_only() -> None:
    found = only("k = tilelang.cached(make(8), [1], [2], verbose=True)", ASCEND)
    assert given(found) == {"out_idx": "[1]", "workspace_idx": "[2]", "verbose": "True"}
    found = only("k = tilelang.cached(make, [1], 8)", GPU)
    assert given(found) == {"out_idx": "[1]"}
    assert found.unread is not None
    assert code(found.unread) == "8"


def test_positions_and_names_together() -> None:
    found = only("k = tilelang.compile(make(8), [1], [2], pass_configs=CONFIGS, target='pto')", ASCEND)
    assert given(found) == {"out_idx": "[1]", "workspace_idx": "[2]", "pass_configs": "CONFIGS", "target": "'pto'"}
    assert found.unread is None


@pytest.mark.parametrize("call", ["make(8), [1], *rest", "make(8), **options()"])
def test_stars_are_not_read(call: str) -> None:
    assert only(f"k = tilelang.compile({call})").unread is not None


@pytest.mark.parametrize("argument", ["[1]", "1", "-1", "(1, 2)", "OUT", "None"])
def test_a_decorator_takes_nothing_by_position(argument: str) -> None:
    found = only("", decorator=f"@tilelang.jit({argument}, verbose=True)")
    assert given(found) == {"verbose": "True"}
    assert found.unread is not None
    assert code(found.unread).startswith(argument)


@pytest.mark.parametrize("call", ["tilelang.jit(make, out_idx=[1])", "tilelang.jit(out_idx=[1])(make)"])
def test_the_function_itself_is_no_such_argument(call: str) -> None:
    found = only(f"k = {call}(8)")
    assert given(found) == {"out_idx": "[1]"}
    assert found.unread is None


def test_the_arguments_of_a_tuner_have_an_order_of_their_own() -> None:
    head = "from tilelang.autotuner import AutoTuner\n"
    found = only("t = AutoTuner.from_kernel(make, []).set_compile_args([1], 'cuda', 'cython')", head=head)
    assert given(found) == {"out_idx": "[1]", "target": "'cuda'", "execution_backend": "'cython'"}
