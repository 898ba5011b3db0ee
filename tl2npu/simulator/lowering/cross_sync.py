"""Automatic CV sync: flags between the core that writes a workspace and the one that reads it.

The i-th access of the cube core to a workspace is paired with the i-th of the vector cores; the set stands behind the
writer, the wait before the reader, both outside of the inner loops up to where both cores have turned equally often
(legacy-to-developer 2.3, ascend_combinecv.cc:347-585). Nothing makes a writer wait for the reader of the value before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Expr
from tl2npu.simulator.ir.stmt import For, Op, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.memories import buffer_of
from tl2npu.simulator.lowering.places import Place, insert_after, insert_before, path

WORD = "workspace"
"""What the name of a tensor in global memory has to contain to be synchronised."""


@dataclass(eq=False)
class Point:
    """One access to a workspace by one core's program."""

    body: list[Stmt]
    stmt: Op
    buffer: Buffer
    writes: bool
    places: list[Place]

    @property
    def loops(self) -> list[For]:
        """The loops around it, outermost first."""
        return [p.stmt for p in self.places[:-1] if isinstance(p.stmt, For)]

    def level(self, depth: int) -> Place:
        """The place of the loop number ``depth``, or of the statement itself where there is none."""
        nest = [p for p in self.places[:-1] if isinstance(p.stmt, For)]
        return nest[depth] if depth < len(nest) else self.places[-1]


def synchronise(cube: list[Stmt], vector: list[Stmt], guarded: set[int]) -> None:
    """Insert the flags into both programs, in place.

    ``guarded``: numbers of workspaces whose writer also waits until the value before was read: what an author takes
    for granted, and the compiler does not do. Raises SimulatorError as the compiler does: unequal numbers of accesses,
    both sides writing or reading, extents that cannot be compared.
    """
    sides = (_points(cube), _points(vector))
    names = sorted({p.buffer.name for side in sides for p in side})
    flag = 0
    for name in names:
        mine, theirs = ([p for p in side if p.buffer.name == name] for side in sides)
        if not mine:
            continue  # only the vector cores use it: the compiler inserts nothing
        if len(mine) != len(theirs):
            raise SimulatorError(
                f"Mismatch in sync points between cube and vec for workspace {name}: cube has {len(mine)}, vec has "
                f"{len(theirs)}",
                mine[0].stmt.site,
            )
        for left, right in zip(mine, theirs, strict=True):
            if left.writes == right.writes:
                raise SimulatorError(
                    f"Inconsistent read/write operations for workspace {name}: cube core and vector cores both "
                    f"{'write' if left.writes else 'read'} it (the other statement is at {right.stmt.site})",
                    left.stmt.site,
                )
            depths = meeting(left.loops, right.loops, name)
            writer, reader = (left, right) if left.writes else (right, left)
            at = dict(zip((id(left), id(right)), depths, strict=True))
            _insert(writer, at[id(writer)], reader, at[id(reader)], flag, left.buffer.number in guarded)
            flag += 1


def _insert(writer: Point, writer_depth: int, reader: Point, reader_depth: int, flag: int, guarded: bool) -> None:
    after, before = writer.level(writer_depth), reader.level(reader_depth)
    pipe = "fix" if _memory(writer.stmt) == "l0c" else "mte3"
    if guarded:
        free = 1000 + flag
        insert_after(before, [_flag("set_cross_flag", "mte2", free, reader)])
        insert_before(after, [_flag("wait_cross_flag", pipe, free, writer)])
        reader.body.insert(0, _flag("set_cross_flag", "mte2", free, reader))
    insert_after(after, [_flag("set_cross_flag", pipe, flag, writer)])
    insert_before(before, [_flag("wait_cross_flag", "mte2", flag, reader)])


def _memory(stmt: Op) -> str:
    source = buffer_of(stmt.args.get("src"))
    return source.memory if source is not None else ""


def _flag(name: str, pipe: str, flag: int, point: Point) -> Op:
    args: dict[str, Any] = {"pipe": pipe, "flag": flag}
    if name == "set_cross_flag":
        args["mode"] = 2
    return Op(name, args, site=point.stmt.site)


def _points(body: list[Stmt]) -> list[Point]:
    found = []
    for stmt in statements(body):
        if isinstance(stmt, Op) and stmt.name in ("copy", "tile.atomic_add"):
            for name in ("dst", "src"):
                buffer = buffer_of(stmt.args.get(name))
                if buffer is not None and buffer.memory == "global" and WORD in buffer.name:
                    found.append(Point(body, stmt, buffer, name == "dst", path(body, stmt)))
                    break
    return found


def meeting(cube: list[For], vector: list[For], name: str = "") -> tuple[int, int]:
    """How many loops of each side stay around the flags (FindTargetLoopDepth).

    Loops with an extent that is not constant count as one turn where both sides have a loop of that name at that
    depth. Raises SimulatorError for any other such loop.
    """
    if not cube and not vector:
        return 0, 0
    shared = {
        _called(a)
        for a, b in zip(cube, vector, strict=False)
        if isinstance(a.extent, Expr) and _called(a) == _called(b)
    }
    counts = [[_turns(loop, shared, name) for loop in side] for side in (cube, vector)]
    total, index, paired = [1, 1], [0, 0], [0, 0]
    last = 1
    while index[0] < len(counts[0]) or index[1] < len(counts[1]):
        moved = False
        for side, other in ((0, 1), (1, 0)):
            while index[side] < len(counts[side]) and (total[side] <= total[other] or counts[side][index[side]] == 1):
                if total[0] == total[1]:
                    paired, last = list(index), total[0]
                total[side] *= counts[side][index[side]]
                index[side] += 1
                moved = True
                if side == 1 and total[1] == last:
                    paired[1] = index[1]
        if not moved:
            break
    if total[0] == total[1]:
        paired = list(index)
    return paired[0], paired[1]


def _called(loop: For) -> str:
    """The variable as the source calls it."""
    return loop.var.hint or loop.var.name


def _turns(loop: For, shared: set[str], name: str) -> int:
    if _called(loop) in shared:
        return 1
    if isinstance(loop.extent, Expr):
        raise SimulatorError(
            f"the hand-over through {name} is in a loop over {_called(loop)} whose number of turns is not constant and "
            "which the other core does not share (the compiler stops: GetLoopIterTimes only works with constant loop "
            "sizes)",
            loop.site,
        )
    return int(loop.extent)
