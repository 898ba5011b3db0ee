"""What is kept of a file over edits inside of a prim_func is what reading the edited tree anew gives."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from tl2npu.kernel.environment import Closure, Env, Helper, Static
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.model import Kernel
from tl2npu.kernel.symbolic import Sym
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import nodes_of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SEVERAL = [
    *sorted(FIXTURES.glob("gpu/*attention*/before.py"))[:3],
    *sorted(FIXTURES.glob("gpu/*norm*/before.py"))[:2],
    *sorted(FIXTURES.glob("vid/*attention*/before.py"))[:2],
    *sorted(FIXTURES.glob("expert/*/before.py"))[:2],
]
TEXT = """
import tilelang
import tilelang.language as T
from tilelang.language import {first} as op

SIZE = 64
TILES = (SIZE, 32)

class Runner:
    lang = T

    def run(self, x):
        return make(128)(x)

@tilelang.jit(out_idx=[1])
def make(N, block=SIZE):
    rows, columns = TILES
    half = block // 2

    @T.macro
    def twice(a):
        a[0] = a[0] * 2

    @T.prim_func
    def main(A: T.Tensor((N, block), "float32"), B: T.Tensor((N, block), "float32")):
        with T.Kernel(N, threads=128) as i:
            tile = T.alloc_shared((half, block), "float32")
            {body}
            T.copy(tile, B[i, 0])

    return main

def host(n):
    kernel = make(n)
    return tilelang.compile(make(n), out_idx=[1])
"""


def same(made: FileKernels, fresh: FileKernels) -> None:
    """Kernels, compilations, environments and the meaning of every name are equal."""
    assert [item.key for item in made.located] == [item.key for item in fresh.located]
    for one, other in zip(made.located, fresh.located, strict=True):
        assert one.node is other.node
        assert (one.factory and one.factory.node) is (other.factory and other.factory.node)
        assert [found.node for found in one.compilations] == [found.node for found in other.compilations]
        assert [list(found.kwargs.items()) for found in one.compilations] == [
            list(found.kwargs.items()) for found in other.compilations
        ]
        same_environment(one.env, other.env)
        assert outermost(one.env) is made.module_env
        assert one.factory is None or outermost(one.factory.env) is made.module_env
        assert one.targets == other.targets
        same_kernel(one.read(), other.read())
    for node in nodes_of(fresh.index.module, cst.Name, cst.Attribute, cst.Call):
        assert made.names.resolve(node) == fresh.names.resolve(node)
    assert set(made.names.imported) == set(fresh.names.imported)


def outermost(env: Env) -> Env:
    """The environment of the module."""
    return env if env.parent is None else outermost(env.parent)


def same_kernel(one: Kernel, other: Kernel) -> None:
    """The same statements at the same nodes, buffers of the same shapes."""
    assert [(type(stmt), stmt.node) for stmt in one.walk()] == [(type(stmt), stmt.node) for stmt in other.walk()]
    assert {name: (buffer.shape, buffer.dtype, buffer.memory) for name, buffer in one.buffers.items()} == {
        name: (buffer.shape, buffer.dtype, buffer.memory) for name, buffer in other.buffers.items()
    }


def same_environment(one: Env | None, other: Env | None) -> None:
    """Equal values for the same names, here and above."""
    if one is None or other is None:
        assert one is other
        return
    assert one.values.keys() == other.values.keys()
    assert one.versions == other.versions
    for name, value in one.values.items():
        fresh = other.values[name]
        assert type(value) is type(fresh)
        if isinstance(value, (Sym, Static)):
            assert value == fresh
        elif isinstance(value, (Helper, Closure)):
            assert isinstance(fresh, (Helper, Closure))
            assert value.node is fresh.node
    same_environment(one.parent, other.parent)


@pytest.mark.parametrize("path", SEVERAL, ids=lambda path: path.parent.name)
def test_a_whole_migration(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every step of every strategy."""
    after, steps = FileKernels.after, list[FileKernels]()

    def compared(self: FileKernels, edits: Edits) -> FileKernels:
        made = after(self, edits)
        same(made, FileKernels(made.index))
        steps.append(made)
        return made

    monkeypatch.setattr(FileKernels, "after", compared)
    migrate_text(path.read_text(), str(path), Options())
    assert steps


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("T.copy(A[i, 0], tile)", "T.copy(A[i, 0], tile)\n"),
        ("twice(tile)", "tile[0, 0] = half"),
        ("T.copy(A[i, 0], tile)", "rows = T.alloc_shared((block,), 'float32')"),  # hides a name of the factory
        ("T.copy(A[i, 0], tile)", "op = 1"),  # ... an import
        ("half = 3", "T.copy(A[i, 0], tile)"),  # ... no longer
        ("T.copy(A[i, 0], tile)", "tile[0, 0] = op(*[T for T in (1, 2)])"),
        ("T.copy(A[i, 0], tile)", "more = T\n"),
    ],
)
@pytest.mark.parametrize("first", ["max", "exp"])
def test_one_statement_becomes_another(first: str, body: str, new: str) -> None:
    file = FileKernels(Index.parse(TEXT.format(first=first, body=body)))
    same(file, file)
    (kernel,) = file.located
    statements = kernel.node.body.body[0].body.body  # type: ignore[union-attr]
    edits = Edits(file.index)
    edits.replace(statements[1], cst.parse_statement(new))
    made = file.after(edits)
    same(made, FileKernels(made.index))
    (kernel,) = made.located  # and once more, from what was kept
    edits = Edits(made.index)
    edits.replace(kernel.node.body.body[0].body.body[1], cst.parse_statement(body))  # type: ignore[union-attr]
    again = made.after(edits)
    same(again, FileKernels(again.index))


def test_edits_outside_of_the_kernel_are_read() -> None:
    file = FileKernels(Index.parse(TEXT.format(first="max", body="twice(tile)")))
    edits = Edits(file.index)
    (size,) = [node for node in nodes_of(file.index.module, cst.Integer) if node.value == "64"]
    edits.replace(size, cst.Integer("96"))
    made = file.after(edits)
    same(made, FileKernels(made.index))
    assert str(made.module_env.values["SIZE"]) == "96"


def test_edits_of_one_kernel_after_another() -> None:
    """Also where both factories have one name."""
    kernel = TEXT.format(first="max", body="twice(tile)").split("@tilelang.jit", 1)
    text = kernel[0] + "".join("@tilelang.jit" + kernel[1].partition("def host")[0] for _ in range(2))
    file = FileKernels(Index.parse(text))
    for number in (0, 1, 0):
        edits = Edits(file.index)
        node = file.located[number].node
        edits.replace(node.body.body[0].body.body[1], cst.parse_statement("T.copy(A[i, 0], tile)"))  # type: ignore[union-attr]
        file = file.after(edits)
        same(file, FileKernels(file.index))
