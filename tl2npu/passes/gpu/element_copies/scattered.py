"""TL603: elements that lie anywhere in a tensor, read one by one into a tile before the loop that needs them.

Only the scalar unit finds them: it works out the indices of each, asks whether it is there, and reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Memory, Operand, Range, Stmt, walk
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.ranges.reach import choice_of
from tl2npu.kernel.regions import Axis, Region, extent_text
from tl2npu.passes.gpu.element_copies.gathers import Rows, rows_of, tests_of_rows
from tl2npu.passes.gpu.element_copies.guards import all_of
from tl2npu.passes.gpu.element_copies.operands import LoopOperands
from tl2npu.passes.gpu.element_copies.writing import Item
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import BITS, element_type
from tl2npu.source.tree import mentioned

_MOST_AXES = 2
_NARROWEST = 16


class ScatteredElements(LoopOperands):
    """Loads of elements that are no region of their tensor."""

    def __init__(self, job: Job, loop: Loop, parents: tuple[Stmt, ...]) -> None:
        super().__init__(job, loop, parents)
        self._under: dict[tuple[str, tuple[str, ...]], str] = {}
        """Elements that are read under conditions (text of the element, texts of the conditions)."""

    def _scattered(
        self, operand: Operand, item: Item, conditions: Sequence[cst.BaseExpression] = (), neutral: str | None = None
    ) -> str:
        """The element of a tile that holds the element of the tensor, 0 where a condition does not hold.

        ``neutral``: the sign of the infinity that stands there instead.
        """
        stmt, env = item.stmt, item.stmt.env
        buffer, nodes = operand.buffer, [dim.node for dim in operand.dims or ()]
        indices = [node for node in nodes if isinstance(node, cst.BaseExpression)]
        full = [self.lets.expand(node) for node in (*indices, *conditions)]
        used = [part for part in self.ranges if any(part.name in mentioned(node) for node in full)]
        text = f"`{code(operand.node)}` reads scattered elements of `{buffer.name}`"
        written = any(access.buffer is buffer for other in self.kernel.walk() for access in writes(other))
        tables = {load.buffer for node in full for load in self.evaluator.loads(node, env)}
        changing = tables & {access.buffer for other in walk(self.loop.body) for access in writes(other)}
        if len(indices) != len(buffer.shape) or not 0 < len(used) <= _MOST_AXES or written or changing:
            raise Blocked("TL170", stmt.node, text)
        rows = self._row_by_row(operand, item, conditions) if neutral is None and not item.branches else None
        if rows is not None:
            return rows
        if tables:
            names = ", ".join(f"`{table.name}`" for table in sorted(tables, key=lambda table: table.name))
            how = "write the loop with `T.serial`, and an `if` around the statement where rows may be missing"
            raise Blocked("TL170", stmt.node, f"{text}, at indices from {names}: {how}")
        if BITS.get(element_type(self.job, buffer), _NARROWEST) < _NARROWEST:
            raise Blocked("TL170", stmt.node, text)
        guards = tuple(code(branch.cond.node) for branch, then in item.branches if then)
        key = ("scattered", code(operand.node), *map(code, conditions), neutral)
        if not conditions and (code(operand.node), guards) in self._under:
            return self._under[code(operand.node), guards]
        if key not in self.tiles:
            self.tiles[key] = self._read_one_by_one(operand, indices, conditions, used, item, neutral)
            self.say("TL603", stmt.node, f"the elements of `{buffer.name}` are read one by one")
            self.job.note("TL603", stmt.node, f"{text}: the scalar unit reads them one by one (slow)")
        element = f"{self.tiles[key]}[{', '.join(part.name for part in used)}]"
        if conditions:
            self._under[code(operand.node), guards] = element
        return element

    def _row_by_row(self, operand: Operand, item: Item, conditions: Sequence[cst.BaseExpression]) -> str | None:
        """The element of a tile whose rows are parts of the tensor; None if they are not. Each row is loaded under the
        conditions, which must be of the row alone."""
        if len(self.ranges) != _MOST_AXES:
            return None
        row, column = self.ranges
        rows = rows_of(self, operand, row, column, item.stmt)
        of_elements = any(column.name in mentioned(self.lets.expand(node)) for node in conditions)
        if rows is None or not rows.picks or of_elements:
            return None
        key = ("rows", code(operand.node), *map(code, conditions))
        if key not in self.tiles:
            tile = self.tiles[key] = self.tile(
                Region(operand.buffer, (Axis(row.var, "0", row), Axis(column.var, "0", column)))
            )
            tests = tests_of_rows(self, item.stmt, rows, conditions)
            copy = f"T.copy({rows.part()}, {tile}[{row.name}, :])"
            body = [
                *self.own_words([*tests, rows.start()]),
                *([f"if {all_of(tests)}:", f"    {copy}"] if tests else [copy]),
            ]
            lines = [f"T.clear({tile})"] if tests else []
            self._before(
                "\n".join(
                    [*lines, f"for {row.name} in T.serial({extent_text(row)}):", *(f"    {line}" for line in body)]
                )
            )
            self.say("TL169", item.stmt.node, f"the rows of `{operand.buffer.name}` are loaded one by one")
        return f"{self.tiles[key]}[{row.name}, {column.name}]"

    def _read_one_by_one(
        self,
        operand: Operand,
        indices: list[cst.BaseExpression],
        conditions: Sequence[cst.BaseExpression],
        used: list[Range],
        item: Item,
        neutral: str | None,
    ) -> str:
        texts = [code(self.in_own_words(node, item.stmt)) for node in indices]
        rows = Rows(operand.buffer, texts, None, dict(enumerate(indices)))
        tests = tests_of_rows(self, item.stmt, rows, conditions)
        tile = self.tile(Region(operand.buffer, tuple(Axis(part.var, "0", part) for part in used)))
        start = f"T.clear({tile})"
        if neutral is not None:
            start = f'T.fill({tile}, {neutral}T.infinity("float32"))'  # the front end knows none of bfloat16
        lines, depth = [start] if tests else [], ""
        for part in used:
            lines.append(f"{depth}for {part.name} in T.serial({extent_text(part)}):")
            depth += "    "
        lines += [f"{depth}{line}" for line in self.own_words([*tests, *texts])]
        value = self.names.fresh(f"{operand.buffer.name.lower()}_value")
        place = f"{tile}[{', '.join(part.name for part in used)}]"
        inside = tests[len(conditions) :] if neutral is not None else []
        if tests[: len(tests) - len(inside)]:
            lines.append(f"{depth}if {all_of(tests[: len(tests) - len(inside)])}:")
            depth += "    "
        load = [f"{value} = {rows.part()}", f"{place} = {value}"]
        if inside:  # outside of the tensor it is 0, and counts
            load = [f"if {all_of(inside)}:", *(f"    {line}" for line in load), "else:", f"    {place} = 0.0"]
        self._before("\n".join([*lines, *(f"{depth}{line}" for line in load)]))
        return tile

    def _scattered_choice(self, node: cst.CSTNode, item: Item) -> str | None:
        """The same for ``T.if_then_else(condition, tensor[...], 0)``; None for anything else."""
        parts = choice_of(node, self.evaluator)
        if parts is None or not is_zero(parts[2]) or not isinstance(parts[1], cst.Subscript):
            return None
        env = item.stmt.env
        operand = self.evaluator.operand(parts[1], env)
        if operand is None or operand.buffer.memory is not Memory.GM or self._region(operand, env) is not None:
            return None
        condition = parts[0]
        known = dict(self.lets.items())
        while isinstance(condition, cst.Name) and condition.value in known:
            condition = known[condition.value]
        return self._scattered(operand, item, [condition])
