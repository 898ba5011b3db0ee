"""TL413: operands in global memory are loaded before a ``T.Parallel`` that computes with them, and stored behind it.

Vector operations work on tensors on the chip; the code generator takes a slice of an operand in global memory for one
of those. A plain load or store of elements is a copy, and stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Let, Loop, Memory, Operand, Store
from tl2npu.kernel.regions import Lets, Region, region
from tl2npu.kernel.regions import extent_text as extent_of
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import covers, is_vector, outer_loops
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text, last_allocation
from tl2npu.source.tree import replaced


def stage(job: Job) -> None:
    """Give every such operand a tile; loops with statements of other kinds run element by element and stay."""
    plan, names = Plan(job), Names(job)
    for loop in outer_loops(job):
        if all(isinstance(inner, (Store, Let)) for inner in loop.body):
            _Work(job, loop, plan, names).carry_out()
    plan.apply()


class _Work:
    """The operands of one loop."""

    def __init__(self, job: Job, loop: Loop, plan: Plan, names: Names) -> None:
        self._job, self._loop, self._plan, self._names = job, loop, plan, names
        self._lets = Lets({s.name: s.value.node for s in loop.body if isinstance(s, Let)})
        self._tiles: dict[tuple[object, ...], str] = {}
        self._written = {operand.buffer for stmt in loop.body for operand in writes(stmt)}

    def carry_out(self) -> None:
        if (text := self._as_copy()) is not None:
            self._plan.replace(self._loop.node, parse(self._job, text, self._loop.node))
            self._job.change("TL413", self._loop.node, "wrote the loop as a copy")
            return
        for stmt in self._loop.body:
            if not isinstance(stmt, (Store, Let)):
                continue
            value = stmt.value
            if isinstance(stmt, Store) and value.node in [load.node for load in value.loads] and not stmt.augmented:
                continue  # a copy
            ranges = self._loop.ranges
            if isinstance(stmt, Store) and not is_vector(stmt, ranges, target=not self._can_store(stmt)):
                continue
            new = {id(load.node): node for load in value.loads if (node := self._loaded(stmt, load)) is not None}
            target = stmt.target if isinstance(stmt, Store) else None
            if target is not None and target.buffer.memory is Memory.GM:
                assert isinstance(stmt, Store)
                if stmt.augmented:
                    raise Blocked("TL413", stmt.node, f"the loop adds to `{target.buffer.name}` in global memory")
                new[id(target.node)] = self._stored(stmt, target)
            if new:
                line = replaced(stmt.node, new)
                assert isinstance(line, cst.BaseSmallStatement)
                self._plan.replace(stmt.node, [cst.SimpleStatementLine([line])])

    def _as_copy(self) -> str | None:
        """The copy that the loop is, if it moves rows of a tensor from or to a whole tile, unchanged."""
        stmt = self._loop.body[0] if len(self._loop.body) == 1 else None
        if not isinstance(stmt, Store) or stmt.augmented or len(stmt.value.loads) != 1:
            return None
        (load,) = stmt.value.loads
        outer, tile = (load, stmt.target) if load.buffer.memory is Memory.GM else (stmt.target, load)
        found = self._region(stmt, outer)
        if load.node is not stmt.value.node or outer.buffer.memory is not Memory.GM or found is None:
            return None
        same = element_type(self._job, outer.buffer) == element_type(self._job, tile.buffer)
        in_order = [item.var for item in found.ranges] == [dim.lo for dim in tile.dims or ()]
        if not (same and in_order and found.in_rows and covers(tile, self._loop.ranges)):
            return None
        sides = [found.text(slices=True), tile.buffer.name]
        return f"T.copy({', '.join(sides if outer is load else reversed(sides))})\n"

    def _can_store(self, stmt: Store) -> bool:
        """The store goes to a part of a tensor that a copy can fill."""
        if stmt.target.buffer.memory is not Memory.GM or stmt.augmented:
            return False
        found = self._region(stmt, stmt.target)
        return found is not None and len(found.ranges) == len(self._loop.ranges)

    def _loaded(self, stmt: Store | Let, load: Operand) -> cst.BaseExpression | None:
        if load.buffer.memory is not Memory.GM:
            return None
        found = self._region(stmt, load)
        if found is None or not found.ranges:
            return None
        if load.buffer in self._written:
            raise Blocked("TL413", stmt.node, f"the loop reads and writes `{load.buffer.name}` in global memory")
        if not found.in_rows:
            raise Blocked(
                "TL413", stmt.node, f"these elements of `{load.buffer.name}` are a row apart, so no copy can load them"
            )
        key = found.key()
        if key not in self._tiles:
            self._tiles[key] = self._tile(found)
            text = f"T.copy({found.text(slices=True)}, {self._tiles[key]})\n"
            self._plan.before(self._loop.node, parse(self._job, text, self._loop.node))
            self._job.change(
                "TL413", stmt.node, f"loaded `{load.buffer.name}` into `{self._tiles[key]}` before the loop"
            )
        return self._element(self._tiles[key], found)

    def _stored(self, stmt: Store, target: Operand) -> cst.BaseExpression:
        found = self._region(stmt, target)
        if found is None or len(found.ranges) != len(self._loop.ranges):
            raise Blocked(
                "TL413", stmt.node, f"these elements of `{target.buffer.name}` are not a region that a copy can store"
            )
        tile = self._tile(found)
        text = f"T.copy({tile}, {found.text(slices=True)})\n"
        self._plan.after(self._loop.node, parse(self._job, text, self._loop.node))
        self._job.change("TL413", stmt.node, f"stored `{target.buffer.name}` from `{tile}` after the loop")
        return self._element(tile, found)

    def _region(self, stmt: Store | Let, operand: Operand) -> Region | None:
        return region(operand, self._loop.ranges, self._lets, self._job.file.evaluator, stmt.env)

    def _element(self, tile: str, found: Region) -> cst.BaseExpression:
        return cst.parse_expression(f"{tile}[{', '.join(item.name for item in found.ranges)}]")

    def _tile(self, found: Region) -> str:
        base = found.buffer.name
        name = self._names.fresh(f"{base}_shared", f"{base.lower()}_tile")
        shape = shape_text(self._job.kernel, [extent_of(item).strip("()") for item in found.ranges])
        text = f"{name} = T.alloc_shared({shape}, {dtype_text(found.buffer)})\n"
        last = last_allocation(self._job, self._loop)
        if last is not None:
            self._plan.after(last.node, parse(self._job, text, last.node))
        else:
            self._plan.before(self._first(), parse(self._job, text, self._loop.node))
        return name

    def _first(self) -> cst.CSTNode:
        """The first statement of the launch, as the plan names it."""
        first = self._job.kernel.launched.node.body.body[0]
        simple = isinstance(first, cst.SimpleStatementLine) and len(first.body) == 1
        return first.body[0] if simple and isinstance(first, cst.SimpleStatementLine) else first
