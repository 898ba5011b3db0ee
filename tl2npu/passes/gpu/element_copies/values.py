"""What a stored value is made of: a choice, a cast, a load."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Operand, Store
from tl2npu.kernel.ranges.reach import choice_of

_CASTS = ("tilelang.language.cast", "tilelang.language.Cast")
_OF_A_CAST = 2


@dataclass(frozen=True, eq=False)
class Choice:
    """``value`` where ``cond`` holds, else ``other``; without a condition just ``value``."""

    value: cst.BaseExpression
    cond: cst.BaseExpression | None = None
    other: cst.BaseExpression | None = None


def choice(stmt: Store, evaluator: Evaluator) -> Choice:
    """The value of a store, a choice at its top taken apart."""
    node = without_casts(stmt.value.node, stmt, evaluator)
    parts = choice_of(node, evaluator)
    return Choice(node) if parts is None else Choice(parts[1], parts[0], parts[2])


def load_of(node: cst.BaseExpression, stmt: Store, evaluator: Evaluator) -> Operand | None:
    """The element that an expression reads and does nothing else with."""
    inner = without_casts(node, stmt, evaluator)
    if not isinstance(inner, cst.Subscript):
        return None
    return evaluator.operand(inner, stmt.env)


def without_casts(node: cst.BaseExpression, stmt: Store, evaluator: Evaluator) -> cst.BaseExpression:
    """The expression below a cast to the type of what is stored to, which a store makes anyway."""
    while isinstance(node, cst.Call):
        name = evaluator.names.resolve(node.func)
        args = [arg.value for arg in node.args]
        if name in _CASTS and len(args) == _OF_A_CAST:
            value, dtype = (args[0], args[1]) if name.endswith("cast") and not _is_type(args[0]) else (args[1], args[0])
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype" and name is None and args:
            value, dtype = node.func.value, args[0]
        else:
            break
        if evaluator.dtype(dtype, stmt.env) != stmt.target.buffer.dtype:
            break
        node = value
    return node


def _is_type(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString)
