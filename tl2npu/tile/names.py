"""Which integers, sizes and other names a kernel mentions."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.expr import Opaque, integers, walk
from tl2npu.tile.ir import AtomicAdd, For, Kernel, Move, Stmt, statements, values


def numbers(kernel: Kernel) -> Iterator[Sym]:
    """Every integer in shapes, the grid and the statements."""
    for buffer in (*kernel.params, *kernel.tiles):
        yield from buffer.shape
    yield from kernel.launch.grid
    for stmt in statements(kernel.body):
        yield from numbers_of(stmt)


def numbers_of(stmt: Stmt) -> Iterator[Sym]:
    """The integers of a statement, not those of the statements in it."""
    match stmt:
        case Move():
            for region in (stmt.src, stmt.dst):
                yield from region.start
                yield from (extent for extent in region.extent if extent is not None)
        case AtomicAdd():
            yield from stmt.dst.start
        case For():
            yield stmt.count
        case _:
            for value in values(stmt):
                yield from integers(value)


def names(kernel: Kernel) -> Iterator[str]:
    """Every name in shapes, the grid and the statements."""
    for number in numbers(kernel):
        yield from number.names
    for stmt in statements(kernel.body):
        yield from _texts(stmt)


def names_of(stmt: Stmt) -> Iterator[str]:
    """The names that a statement mentions, not those of the statements in it."""
    for number in numbers_of(stmt):
        yield from number.names
    yield from _texts(stmt)


def names_in(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The names that statements mention, those of the statements in them too."""
    return frozenset(name for stmt in statements(body) for name in names_of(stmt))


def _texts(stmt: Stmt) -> Iterator[str]:
    """Scalars that are kept as text."""
    for value in values(stmt):
        yield from (item.text for item in walk(value) if isinstance(item, Opaque))


def run_time_scalars(kernel: Kernel) -> frozenset[str]:
    """Numbers with a type of their own that expressions use, and no shape, no index and no count."""
    found = {item.text for item in _scalars(kernel) if not item.weak}
    return frozenset(found - {name for number in numbers(kernel) for name in number.names})


def _scalars(kernel: Kernel) -> Iterator[Opaque]:
    for stmt in statements(kernel.body):
        for value in values(stmt):
            yield from (item for item in walk(value) if isinstance(item, Opaque))
