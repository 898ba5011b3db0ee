"""TL431: loops of the two cores that hand a tile over in every run become one loop.

Ascend C runs the loop of the cube core beside that of the vector cores; the i-th run of one takes what the i-th run of
the other gives. Taken as one program, the first loop would overwrite the tile until only its last value is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import copy_side, reads
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Kernel, Loop, Side, Stmt, blocks, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.from_ascend.order import sides
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in

_KINDS = ("serial", "pipelined", "unroll")


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two loops of one body, the first above the second."""

    first: Loop
    second: Loop
    between: Sequence[Stmt]


def loops(job: Job) -> None:
    """Fuse what must be fused; raises :class:`Blocked` where that cannot be done."""
    while True:
        pair = _pair(job.kernel)
        if pair is None:
            return
        _fuse(job, pair)


def _pair(kernel: Kernel) -> _Pair | None:
    around: dict[int, tuple[Loop, ...]] = {
        id(stmt): tuple(one for one in parents if isinstance(one, Loop))
        for stmt, parents in walk_with_parents(kernel.body)
    }
    for copy in kernel.walk():
        if not isinstance(copy, Copy) or copy_side(copy.src.buffer.memory, copy.dst.buffer.memory) is not Side.BOTH:
            continue
        for reader in kernel.walk():
            if reader is copy or not any(operand.buffer is copy.dst.buffer for operand in reads(reader)):
                continue
            giving, taking = _apart(around[id(copy)], around[id(reader)])
            if giving is None or taking is None or _collects(copy, giving):
                continue
            return _siblings(kernel, giving, taking)
    return None


def _apart(giving: tuple[Loop, ...], taking: tuple[Loop, ...]) -> tuple[Loop | None, Loop | None]:
    """The outermost loops that the two do not share."""
    count = 0
    while count < min(len(giving), len(taking)) and giving[count] is taking[count]:
        count += 1
    return (giving[count] if count < len(giving) else None, taking[count] if count < len(taking) else None)


def _collects(copy: Copy, loop: Loop) -> bool:
    """Every run of the loop brings another part of the tile."""
    names = {name for item in loop.ranges for name in item.var.variables()}
    return any(dim.lo.depends_on(name) for dim in copy.dst.dims or () for name in names)


def _siblings(kernel: Kernel, one: Loop, other: Loop) -> _Pair:
    for body in blocks(kernel.body):
        places = [place for place, stmt in enumerate(body) if stmt is one or stmt is other]
        if len(places) == 2:
            first, second = body[places[0]], body[places[1]]
            assert isinstance(first, Loop)
            assert isinstance(second, Loop)
            return _Pair(first, second, body[places[0] + 1 : places[1]])
    raise Blocked("TL437", other.node, "the loops that transfer a tile are at different levels")


def _fuse(job: Job, pair: _Pair) -> None:
    first, second = pair.first, pair.second
    same = (
        first.kind in _KINDS
        and second.kind in _KINDS
        and len(first.ranges) == len(second.ranges) == 1
        and first.ranges[0].start == second.ranges[0].start
        and first.ranges[0].extent == second.ranges[0].extent
        and first.ranges[0].step == second.ranges[0].step
    )
    upper, lower = first.node, second.node
    if not same or first.via or second.via or not isinstance(upper, cst.For) or not isinstance(lower, cst.For):
        raise Blocked("TL437", lower, "cannot prove that the loops that transfer a tile have the same trip count")
    if not isinstance(upper.body, cst.IndentedBlock) or not isinstance(lower.body, cst.IndentedBlock):
        raise Blocked("TL437", lower, "the loops that transfer a tile in every iteration cannot be merged")
    own = sides(first)
    if len(own) != 1 or own & sides(second) or any(own & sides(stmt) for stmt in pair.between):
        raise Blocked("TL437", lower, "the loops that transfer a tile in every iteration cannot be merged")
    assigned = _bound(first) & _bound(second) - {first.ranges[0].name, second.ranges[0].name}
    if assigned:
        raise Blocked("TL437", lower, f"both loops assign `{min(assigned)}`")
    if first.ranges[0].name != second.ranges[0].name:
        _rename(job, upper, lower)
        return
    edits = Edits(job.file.index)
    block = lower.body.with_changes(body=[*upper.body.body, *lower.body.body])
    edits.remove(upper)
    edits.replace(lower, lower.with_changes(body=block, leading_lines=[*upper.leading_lines, *lower.leading_lines]))
    job.change("TL431", lower, "merged the loops: the cores transfer a tile in every iteration")
    job.apply(edits)


def _rename(job: Job, upper: cst.For, lower: cst.For) -> None:
    """Give both loops one variable."""
    one, other = code(upper.target), code(lower.target)
    inside = mentioned(upper), mentioned(lower)
    if one not in inside[1] and one != "_":
        new = one
    elif other not in inside[0] and other != "_":
        new = other
    else:
        new = Names(job).fresh("turn", "turn_id")
    edits = Edits(job.file.index)
    for loop, old in ((upper, one), (lower, other)):
        for name in names_in(loop) if old != new else ():
            if name.value == old:
                edits.replace(name, cst.Name(new))
    job.apply(edits)


def _bound(loop: Loop) -> set[str]:
    """Names that are bound in the loop."""
    return {
        name.value
        for stmt in walk(loop.body)
        if isinstance(stmt.node, (cst.Assign, cst.For))
        for target in ([stmt.node.target] if isinstance(stmt.node, cst.For) else [t.target for t in stmt.node.targets])
        for name in names_in(target)
        if not isinstance(target, cst.Subscript)
    }
