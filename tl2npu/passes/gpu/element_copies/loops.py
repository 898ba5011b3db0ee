"""One element-wise loop with operands in global memory."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, touches, writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Let, Loop, Memory, Op, Opaque, Stmt, Store, walk
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.regions import Region
from tl2npu.passes.gpu.element_copies.gathers import is_operand, row_loop
from tl2npu.passes.gpu.element_copies.inside import Tests
from tl2npu.passes.gpu.element_copies.stores import LoopStores
from tl2npu.passes.gpu.element_copies.strided import Place, column_of, load_column
from tl2npu.passes.gpu.element_copies.values import Choice, choice, load_of
from tl2npu.passes.gpu.element_copies.writing import Item
from tl2npu.passes.writing.numbers import literal
from tl2npu.source.tree import walk as nodes


class LoopWork(LoopStores):
    """Takes the operands in global memory out of one loop."""

    def carry_out(self) -> bool:
        """Rewrite the loop; False if nothing could be done."""
        self._refuse()
        items = list(self._items(self.loop.body, ()))
        self._collect(items)
        for number, item in enumerate(items):
            if id(item.stmt) in self.gone:
                continue
            if isinstance(item.stmt, Store):
                self._store(item, items[:number], items[number + 1 :])
            elif isinstance(item.stmt, Op) and item.stmt.op.kind is Kind.ATOMIC:
                self._add(item, item.stmt, items[number + 1 :])
            elif not isinstance(item.stmt, Let):
                self._loads(item.stmt.node, item)
        for item in items:
            if isinstance(item.stmt, Let) and self._still_read(item.stmt.name, items):
                self._loads(item.stmt.value.node, item)
        for item in items:
            for branch, _ in item.branches:
                self._loads(branch.cond.node, item)
        self._write(items)
        return bool(self.plan)

    # -- reading ----------------------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        seen: set[str] = set()
        for stmt in walk(self.loop.body):
            nested = isinstance(stmt, (Loop, Opaque)) or (isinstance(stmt, Op) and stmt.op.kind is not Kind.ATOMIC)
            operands = (*reads(stmt, deep=True), *writes(stmt, deep=True)) if nested else ()
            if any(operand.buffer.memory is Memory.GM for operand in operands):
                raise Blocked("TL170", stmt.node, "global memory is accessed in a nested statement of `T.Parallel`")
            if isinstance(stmt, Let):
                if stmt.name in seen or not isinstance(stmt.node, (cst.Assign, cst.AnnAssign)):
                    raise Blocked("TL170", stmt.node, f"`{stmt.name}` changes inside the loop")
                seen.add(stmt.name)

    def _items(self, body: Sequence[Stmt], branches: tuple[tuple[Branch, bool], ...]) -> list[Item]:
        found: list[Item] = []
        for stmt in body:
            if isinstance(stmt, Branch):
                found += self._items(stmt.then, (*branches, (stmt, True)))
                found += self._items(stmt.orelse, (*branches, (stmt, False)))
            else:
                found.append(Item(stmt, branches))
        return found

    # -- statements -------------------------------------------------------------------------------------------------

    def _store(self, item: Item, earlier: Sequence[Item], later: Sequence[Item]) -> None:
        stmt = item.stmt
        assert isinstance(stmt, Store)
        if stmt.target.buffer.memory is Memory.GM:
            self._store_to_global(item, stmt, later)
        elif not (self._pure_load(item, stmt, earlier, later) or self._row_loads(item, stmt, earlier)):
            self._loads(stmt.value.node, item)
            self._loads(stmt.target.node, item)

    def _pure_load(self, item: Item, stmt: Store, earlier: Sequence[Item], later: Sequence[Item]) -> bool:
        """``tile[i, j] = A[start + i, ...]``, perhaps guarded, becomes a copy."""
        chosen = choice(stmt, self.evaluator)
        found = self._load_region(chosen, stmt)
        if stmt.augmented or found is None or not self._whole(stmt.target, found.ranges):
            return False
        if any(touches(other.stmt, stmt.target.buffer) for other in earlier):
            return False
        tests = self._tests(found, bool(item.branches) or chosen.cond is not None)
        if tests:
            return self._load_of_what_lies_inside(item, stmt, chosen, found, tests)
        if not found.in_rows:
            return self._pure_column(item, stmt, chosen, found)
        pad = "0"
        others = self._alternative(item, chosen, later, found)
        if others is None:
            return False
        value, twins = others
        if value is not None:
            pad = literal(self.job, stmt.target.buffer, value)
        tile = stmt.target.buffer
        if _padding(pad) and is_operand(self.kernel, tile):
            return False  # L1 is padded with zeros only
        if self._copy_types(found.buffer, tile):
            self._before(f"T.copy({self._text(found)}, {tile.name}{_padding(pad)})")
        else:
            if pad.strip("-0.") != "":
                return False
            name = self._tile_for(found)
            self._before(f"T.copy({name}, {tile.name})")
        self.gone |= {id(stmt), *(id(twin.stmt) for twin in twins)}
        self.say("TL166", stmt.node, f"wrote a copy from `{found.buffer.name}` to `{tile.name}`")
        if item.branches or chosen.cond is not None:
            self.say("TL168", stmt.node, f"removed the guard: the copy is clamped at the end of `{found.buffer.name}`")
        return True

    def _load_of_what_lies_inside(self, item: Item, stmt: Store, chosen: Choice, found: Region, tests: Tests) -> bool:
        """A load that has to ask for itself, where it may stand for the condition as well."""
        tile = stmt.target.buffer
        if item.branches or is_operand(self.kernel, tile) or not self._copy_types(found.buffer, tile):
            return False
        if chosen.cond is not None:
            says_no_more = self._guard(chosen.cond, stmt.env).is_inside(found)
            if not says_no_more or chosen.other is None or not is_zero(chosen.other):
                return False
        self._load_inside(found, tile.name, tests, here=True)
        self.gone.add(id(stmt))
        return True

    def _pure_column(self, item: Item, stmt: Store, chosen: Choice, found: Region) -> bool:
        if item.branches or chosen.cond is not None or len(found.ranges) != 1:
            return False
        tile = Place(stmt.target.buffer.name, stmt.target.buffer.dtype)
        move = load_column(self.job, column_of(found), tile, found.ranges[0].name, self.names)
        self.allocations += move.tiles
        self._before("\n".join(move.lines))
        self.gone.add(id(stmt))
        self.say("TL169", stmt.node, move.told)
        return True

    def _load_region(self, chosen: Choice, stmt: Store) -> Region | None:
        load = load_of(chosen.value, stmt, self.evaluator)
        if load is None or load.buffer.memory is not Memory.GM:
            return None
        found = self._region(load, stmt.env)
        return None if found is None or not found.ranges else found

    def _alternative(
        self, item: Item, chosen: Choice, later: Sequence[Item], found: Region
    ) -> tuple[cst.BaseExpression | None, list[Item]] | None:
        """What the tile holds where the tensor ends, and the statements that say so; None if a copy cannot do it."""
        stmt = item.stmt
        assert isinstance(stmt, Store)
        guards = self._guards(item)
        if guards is None:
            return None
        if chosen.cond is not None:
            if item.branches or chosen.other is None or not self._constant(chosen.other, stmt):
                return None
            tail = self._guard(chosen.cond, stmt.env).is_tail(found)
            return (chosen.other, []) if tail and (is_zero(chosen.other) or len(found.ranges) == 1) else None
        if not guards:
            return None, []
        if len(guards) != 1 or not guards[0].is_tail(found):
            return None
        branch = item.branches[0][0]
        twins = [
            other
            for other in later
            if other.branches == ((branch, False),)
            and isinstance(other.stmt, Store)
            and other.stmt.target.buffer is stmt.target.buffer
        ]
        if len(twins) == 1 and isinstance(twins[0].stmt, Store):
            value = twins[0].stmt.value.node
            same = code(twins[0].stmt.target.node) == code(stmt.target.node) and not twins[0].stmt.augmented
            if same and self._constant(value, twins[0].stmt) and (is_zero(value) or len(found.ranges) == 1):
                return value, twins
            return None
        return (None, []) if not twins and self._only_writer(stmt) else None

    def _constant(self, node: cst.BaseExpression, stmt: Stmt) -> bool:
        env = stmt.env
        if self.evaluator.loads(node, env) or any(
            isinstance(name, cst.Name) and name.value in {item.name for item in self.ranges} for name in nodes(node)
        ):
            return False
        return isinstance(self.lets.expand(node), (cst.Integer, cst.Float, cst.UnaryOperation, cst.Call, cst.Name))

    def _only_writer(self, stmt: Store) -> bool:
        """Nothing else writes the tile: behind the end of the tensor it held nothing that was ever put there."""
        return not any(
            operand.buffer is stmt.target.buffer
            for other in self.kernel.walk()
            if other is not stmt
            for operand in writes(other)
        )

    def _row_loads(self, item: Item, stmt: Store, earlier: Sequence[Item]) -> bool:
        """Rows that an index picks, and columns of a tensor, one after another."""
        if stmt.augmented or not all(then for _, then in item.branches):
            return False
        tables = {load.buffer for load in reads(stmt)}
        changed = {access.buffer for other in earlier for access in writes(other.stmt)}
        if changed & tables or any(touches(other.stmt, stmt.target.buffer) for other in earlier):
            return False
        lines = row_loop(self, item.branches, stmt)
        if lines is None:
            return False
        self._before("\n".join(lines))
        self.gone.add(id(stmt))
        return True


def _padding(value: str) -> str:
    return "" if value in ("0", "0.0") else f", pad_value={value}"
