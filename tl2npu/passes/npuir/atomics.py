"""TL416: atomic additions add whole tiles, or rows of tiles, to slices of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.atomics import refuse_atomic
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Dim, Let, Loop, Op, Operand, Range, Stmt, walk, walk_with_parents
from tl2npu.kernel.regions import Axis, Lets, axis_of, extent_text, summand
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.statistics_copies import sliced
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text, shape_text
from tl2npu.source.tree import mentioned, names_in


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


# What a loop over the elements of an atomic addition is in whole tiles: slices, and a loop over rows where need be.
#
# Elements whose place follows from the loop variable alone are a slice. A variable that picks a place by the element of
# a tensor, or that a condition asks about, stays a loop, of one row of the tile in each turn.


@dataclass(frozen=True, eq=False)
class Addition:
    """``head``: the loops, bindings and conditions around it; ``own``: the index of the tile, empty for all of it."""

    head: tuple[str, ...]
    target: str
    own: str

    @staticmethod
    def of(job: Job, stmt: Op, loop: Loop, lets: Sequence[Let], conditions: Sequence[Branch]) -> Addition | None:
        """None if the elements of a turn are no slice of the tensor, or no part of the tile."""
        target, value = stmt.args["dst"], stmt.args["value"]
        assert isinstance(target, Operand)
        assert isinstance(value, Operand)
        names = Lets({let.name: let.value.node for let in lets})
        asked = [names.expand(branch.cond.node) for branch in conditions]
        places, own = _axes(job, stmt, target, loop, names), _axes(job, stmt, value, loop, names)
        if places is None or own is None:
            return None
        tiles = _sliced(loop.ranges, places, own, asked)
        if not tiles or [a.range for a in places if a.range in tiles] != [a.range for a in own if a.range in tiles]:
            return None
        rows = [item for item in loop.ranges if item not in tiles]
        if any(item.stop_node is None for item in rows):
            return None
        moving = {item.name for item in tiles}
        kept = [let for let in lets if not moving & _names(code(names.expand(let.value.node)))] if rows else []
        short = {let.name for let in kept}
        places = [_as_written(axis, dim, names, short) for axis, dim in zip(places, target.dims or (), strict=True)]
        text, part = _text(target, places, tiles), _text(value, own, tiles)
        tests = [
            code(branch.cond.node if _names(code(branch.cond.node)) & short else node)
            for branch, node in zip(conditions, asked, strict=True)
        ]
        head = (
            [_turns(item) for item in rows] + _needed(kept, [f"_[{text}]", *tests]) + [f"if {test}:" for test in tests]
        )
        return Addition(tuple(head), f"{target.buffer.name}[{text}]", "" if set(part.split(", ")) == {":"} else part)

    def lines(self, tile: str) -> list[str]:
        """The statement with what stands around it."""
        source = f"{tile}[{self.own}]" if self.own else tile
        depth, found = 0, []
        for line in (*self.head, f"T.atomic_add({self.target}, {source})"):
            found.append("    " * depth + line)
            depth += line.endswith(":")
        return found


def _turns(item: Range) -> str:
    assert item.stop_node is not None
    start = "" if item.start_node is None or item.start.is_zero else f"{code(item.start_node)}, "
    return f"for {item.name} in T.serial({start}{code(item.stop_node)}):"


def _needed(lets: Sequence[Let], texts: Sequence[str]) -> list[str]:
    """The lines that bind the names which these texts, or a later binding, use."""
    used = {name for text in texts for name in _names(text)}
    lines: list[str] = []
    for let in reversed(lets):
        if let.name in used:
            used |= _names(code(let.value.node))
            lines.insert(0, f"{let.name} = {code(let.value.node)}")
    return lines


def _as_written(axis: Axis, dim: Dim, lets: Lets, kept: set[str]) -> Axis:
    """A place without a slice in the names that the loop binds, where those stay."""
    text = code(dim.node)
    if axis.range is not None or not isinstance(dim.node, cst.BaseExpression) or not _names(text) & kept:
        return axis
    bound = {name for name in _names(text) if code(lets.expand(cst.Name(name))) != name}
    return Axis(axis.index, text, None) if bound <= kept else axis


def _axes(job: Job, stmt: Op, operand: Operand, loop: Loop, lets: Lets) -> list[Axis] | None:
    """The indices of an operand, each with the loop variable that runs along it; rows have none."""
    if operand.dims is None or len(operand.dims) != len(operand.buffer.shape):
        return None
    found: list[Axis] = []
    for dim in operand.dims:
        if not isinstance(dim.node, cst.BaseExpression):
            return None
        axis = axis_of(dim.node, loop.ranges, lets, job.file.evaluator, stmt.env)
        if axis is None or any(item.name in _names(axis.start) for item in loop.ranges):
            axis = Axis(dim.lo, code(lets.expand(dim.node)), None)
        found.append(axis)
    return found


def _names(text: str) -> set[str]:
    return mentioned(cst.parse_expression(text))


def _sliced(
    ranges: Sequence[Range], places: Sequence[Axis], own: Sequence[Axis], asked: Sequence[cst.CSTNode]
) -> list[Range]:
    """The loop variables that run along one axis of the tensor and one of the tile, and do nothing else."""
    found = []
    for item in ranges:
        points = [axis.start for axis in (*places, *own) if axis.range is not item]
        used = {name for text in points for name in _names(text)} | {n.value for node in asked for n in names_in(node)}
        along = [sum(axis.range is item for axis in axes) for axes in (places, own)]
        if along == [1, 1] and item.name not in used and item.start.is_zero:
            found.append(item)
    return found


def _text(operand: Operand, axes: Sequence[Axis], tiles: Sequence[Range]) -> str:
    parts = []
    for axis, size in zip(axes, operand.buffer.shape, strict=True):
        item = axis.range
        if item is None:
            parts.append(axis.start)
        elif item not in tiles:
            parts.append(item.name if axis.lo.is_zero else f"{summand(axis.start)} + {item.name}")
        elif axis.lo.is_zero and item.extent == size:
            parts.append(":")
        else:
            extent = extent_text(item)
            parts.append(f"0:{extent}" if axis.lo.is_zero else f"{axis.start} : {summand(axis.start)} + {extent}")
    return ", ".join(parts)
