"""Which statement wrote what a statement reads: definitions found by walking backwards through the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Buffer, Kernel, Loop, Operand, Stmt, blocks, walk, walk_with_parents
from tl2npu.kernel.symbolic import Sym


@dataclass(frozen=True, eq=False)
class Step:
    """A statement that runs before another one, and the loops that are left on the way back to it."""

    stmt: Stmt
    left: tuple[Loop, ...]


class Flow:
    """Where every statement of a kernel stands."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.parents = dict(walk_with_parents(kernel.body))
        self._block: dict[Stmt, Sequence[Stmt]] = {}
        for block in blocks(kernel.body):
            self._block.update(dict.fromkeys(block, block))

    def block(self, stmt: Stmt) -> Sequence[Stmt]:
        """The statements of the block that a statement stands in."""
        return self._block[stmt]

    def loops(self, stmt: Stmt) -> tuple[Loop, ...]:
        """The loops around a statement, outermost first."""
        return tuple(parent for parent in self.parents[stmt] if isinstance(parent, Loop))

    def before(self, stmt: Stmt) -> Iterator[Step]:
        """The statements before one, nearest first: those of its block, then those of the blocks around it."""
        left: tuple[Loop, ...] = ()
        for current in (stmt, *reversed(self.parents[stmt])):
            block = self._block[current]
            for index in range(block.index(current) - 1, -1, -1):
                yield Step(block[index], left)
            parent = next(reversed(self.parents[current]), None)
            if isinstance(parent, Loop):
                left = (*left, parent)

    def between(self, first: Stmt, last: Stmt) -> Iterator[Stmt]:
        """What may run after ``first`` and before ``last``, which it reaches; bodies of left loops as a whole."""
        for step in self.before(last):
            if step.stmt is first:
                for loop in step.left:
                    yield from (stmt for stmt in walk(loop.body) if stmt is not last)
                return
            yield from walk([step.stmt])


def writes_of(stmts: Sequence[Stmt], buffer: Buffer) -> list[tuple[Stmt, Operand]]:
    """Every write to a buffer in or below some statements."""
    return [(s, a.operand) for s in walk(stmts) for a in accesses(s) if a.writes and a.operand.buffer is buffer]


def reads_of(stmts: Sequence[Stmt], buffer: Buffer) -> list[tuple[Stmt, Operand]]:
    """Every read of a buffer in or below some statements."""
    return [(s, a.operand) for s in walk(stmts) for a in accesses(s) if a.reads and a.operand.buffer is buffer]


def slots(operand: Operand, rank: int = 2) -> tuple[Sym, ...] | None:
    """The indices before the last ``rank`` axes, empty for a whole matrix; None where they are no plain indices."""
    buffer = operand.buffer
    extra = len(buffer.shape) - rank
    if operand.dims is None:
        return () if extra <= 0 else None
    leading = operand.dims[: max(0, len(operand.dims) - rank)]
    if len(operand.dims) != len(buffer.shape) or not all(dim.is_point for dim in leading):
        return None
    return tuple(dim.lo for dim in leading)


def differ(left: Sequence[Sym], right: Sequence[Sym]) -> bool:
    """True if two slots are certainly not the same: two numbers."""
    return any((a - b).constant not in (None, 0) for a, b in zip(left, right, strict=False))
