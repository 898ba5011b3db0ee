"""TL416: atomic additions add whole tiles, or rows of tiles, to slices of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.atomics import refuse_atomic
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Let, Loop, Op, Operand, Stmt, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.atomics_loops import Addition
from tl2npu.passes.npuir.statistics_copies import sliced
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text, shape_text


def to_slices(job: Job) -> None:
    """``T.atomic_add(C[i0, j0], tile)`` and loops over the elements of a tile say by slices what they add to."""
    work = _Work(job)
    loops: set[int] = set()
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not _is_atomic(stmt):
            continue
        assert isinstance(stmt, Op)
        refuse_atomic(stmt)
        around = [above for above in parents if isinstance(above, Loop) and above.kind == "parallel"]
        if stmt.via or len(around) > 1:
            raise Blocked("TL416", stmt.node, "cannot turn this element-wise atomic addition into one on tiles")
        if not around:
            work.tile(stmt)
        elif id(around[0]) not in loops:
            loops.add(id(around[0]))
            work.loop(around[0])
    work.plan.apply()


def _is_atomic(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC


class _Work:
    """The additions of one kernel."""

    def __init__(self, job: Job) -> None:
        self._job, self.plan, self._names = job, Plan(job), Names(job)

    def tile(self, stmt: Op) -> None:
        """``T.atomic_add(C[i0, j0], tile)``."""
        target, value = _sides(stmt)
        if value.is_indexed:
            raise Blocked("TL416", stmt.node, "AscendNPU IR cannot add a single number atomically")
        text = code(target.node)
        if target.dims is not None and target.is_indexed:
            if not value.is_whole or len(target.dims) < len(value.buffer.shape):
                raise Blocked("TL416", stmt.node, f"`{text}` gives a start, but not the size of the addition")
            text = code(sliced(target, value.buffer))
        lines, source = self._converted(stmt, target, value, whole=value.is_whole)
        source = source or code(value.node)
        lines.append(f"T.atomic_add({text}, {source})")
        self._write(stmt, stmt.node, lines)
        self._job.change("TL416", stmt.node, f"wrote the addition of `{source}` to `{text}`")

    def loop(self, loop: Loop) -> None:
        """Loops in which nothing but additions of elements happens: each addition gets what it needs of the loop."""
        additions = list(_additions(loop.body))
        lines: list[str] = []
        for stmt, conditions in additions:
            target, value = _sides(stmt)
            lets = [inner for inner in walk(loop.body) if isinstance(inner, Let)]
            addition = Addition.of(self._job, stmt, loop, lets, conditions)
            if addition is None:
                raise Blocked(
                    "TL416", stmt.node, "cannot turn this element-wise atomic addition into one on tiles or rows"
                )
            before, source = self._converted(stmt, target, value, whole=True)
            lines += before
            lines += addition.lines(source or value.buffer.name)
            self._job.change("TL416", stmt.node, f"wrote the addition of `{value.buffer.name}` to `{addition.target}`")
        self._write(additions[0][0], loop.node, lines)

    def _converted(self, stmt: Op, target: Operand, value: Operand, *, whole: bool) -> tuple[list[str], str]:
        """The lines that bring the tile to the type of the tensor, and the name of what is added then."""
        if not value.buffer.is_tile or value.buffer.statement is None:
            raise Blocked("TL416", stmt.node, f"`{value.buffer.name}` is not a tile")
        if element_type(self._job, value.buffer) == element_type(self._job, target.buffer):
            return [], ""
        if not whole:
            raise Blocked(
                "TL416", stmt.node, f"`{code(value.node)}` and `{target.buffer.name}` have different element types"
            )
        cast = self._names.fresh(f"{value.buffer.name}_cast")
        shape, dtype = shape_text(value.buffer), dtype_text(target.buffer)
        near = value.buffer.statement
        self.plan.after(near, parse(self._job, f"{cast} = T.alloc_shared({shape}, {dtype})\n", near))
        return [f"T.copy({value.buffer.name}, {cast})"], cast

    def _write(self, stmt: Op, node: cst.CSTNode, lines: Sequence[str]) -> None:
        self.plan.replace(node, parse(self._job, "\n".join(lines) + "\n", stmt.node))


def _sides(stmt: Op) -> tuple[Operand, Operand]:
    target, value = stmt.args["dst"], stmt.args["value"]
    if not isinstance(target, Operand) or not isinstance(value, Operand):
        raise Blocked("TL416", stmt.node, "AscendNPU IR cannot add a single number atomically")
    return target, value


def _additions(body: Sequence[Stmt], conditions: tuple[Branch, ...] = ()) -> Iterator[tuple[Op, tuple[Branch, ...]]]:
    """The additions of a loop, each with the conditions that it is under."""
    for stmt in body:
        if isinstance(stmt, Branch) and not stmt.orelse:
            yield from _additions(stmt.then, (*conditions, stmt))
        elif isinstance(stmt, Op) and _is_atomic(stmt):
            refuse_atomic(stmt)
            yield stmt, conditions
        elif not isinstance(stmt, Let):
            raise Blocked("TL416", stmt.node, "the loop has other statements beside its atomic additions")
