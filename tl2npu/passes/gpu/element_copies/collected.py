"""TL603: sums and extrema of scattered elements, ``if inside: v[i] = T.max(v[i], X[...])``.

An element that the condition leaves out is read as the value that changes nothing, 0 or an infinity. So the condition
is asked where the scalar unit reads the elements, and the vector core takes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Operand, Store
from tl2npu.kernel.regions import extent_text
from tl2npu.passes.gpu.element_copies.scattered import ScatteredElements
from tl2npu.passes.gpu.element_copies.writing import Item
from tl2npu.passes.writing.numbers import number_type
from tl2npu.source.tree import replaced

_SIGNS = {"max": "-", "min": ""}
_LANGUAGE = "tilelang.language."
_CASTS = ("cast", "Cast")


class CollectedElements(ScatteredElements):
    """Statements that take scattered elements together."""

    def _collect(self, items: Sequence[Item]) -> None:
        """Rewrite such statements, behind the loop."""
        for number, item in enumerate(items):
            stmt = item.stmt
            if not isinstance(stmt, Store) or not item.branches or not all(then for _, then in item.branches):
                continue
            others = [other.stmt for other in (*items[:number], *items[number + 1 :])]
            around = [branch for other in items for branch, _ in other.branches]
            if not any(a.operand.buffer is stmt.target.buffer for o in (*others, *around) for a in accesses(o)):
                self._collected(item, stmt)

    def _collected(self, item: Item, stmt: Store) -> None:
        parts = self._parts(stmt)
        conditions = [branch.cond.node for branch, _ in item.branches]
        if parts is None or not self._whole(stmt.target, self.ranges):
            return
        if any(self.evaluator.loads(self.lets.expand(node), stmt.env) for node in conditions):
            return
        name, value = parts
        known = dict(self.lets.items())
        while isinstance(value, cst.Name) and value.value in known:
            value = known[value.value]
        operand = self._element_in(value, stmt)
        if operand is None or self._region(operand, stmt.env) is not None:
            return
        if name in _SIGNS and number_type(self.job, operand.buffer) != "float":
            return  # integers have no infinity
        tile = self._scattered(operand, item, conditions, neutral=_SIGNS.get(name))
        target, text = code(stmt.target.node), code(replaced(value, {id(operand.node): cst.parse_expression(tile)}))
        new = f"{target} += {text}" if name == "+" else f"{target} = T.{name}({target}, {text})"
        names = ", ".join(part.name for part in self.ranges)
        extents = ", ".join(extent_text(part).strip("()") for part in self.ranges)
        self._after(f"for {names} in T.Parallel({extents}):\n    {new}")
        self.gone.add(id(stmt))

    def _parts(self, stmt: Store) -> tuple[str, cst.BaseExpression] | None:
        """How a statement joins a value with what its target holds, and the value."""
        target, value = code(stmt.target.node), stmt.value.node
        if isinstance(stmt.node, cst.AugAssign):
            return ("+", value) if isinstance(stmt.node.operator, cst.AddAssign) else None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            name, pair = "+", [value.left, value.right]
        elif isinstance(value, cst.Call):
            name = (self.evaluator.names.resolve(value.func) or "").removeprefix(_LANGUAGE)
            pair = [arg.value for arg in value.args]
        else:
            return None
        if name not in ("+", *_SIGNS) or len(pair) != 2 or target not in map(code, pair):
            return None
        return name, pair[1] if code(pair[0]) == target else pair[0]

    def _element_in(self, value: cst.BaseExpression, stmt: Store) -> Operand | None:
        """The element of global memory that a value is, but for casts."""
        while isinstance(value, cst.Call):
            name = (self.evaluator.names.resolve(value.func) or "").removeprefix(_LANGUAGE)
            inner = [arg.value for arg in value.args if isinstance(arg.value, (cst.Subscript, cst.Call))]
            if name not in _CASTS or len(inner) != 1:
                return None
            value = inner[0]
        operand = self.evaluator.operand(value, stmt.env) if isinstance(value, cst.Subscript) else None
        return operand if operand is not None and operand.buffer.memory is Memory.GM else None
