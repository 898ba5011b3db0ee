"""Evaluates an integer expression without variables."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Unary


def number(value: Any) -> int:
    """The value. Raises SimulatorError if a variable or a memory access is left."""
    if not isinstance(value, Expr):
        return int(value)
    if isinstance(value, Const):
        return int(value.value)
    if isinstance(value, Binary):
        return int(expr._PYTHON[value.op](number(value.left), number(value.right)))
    if isinstance(value, Unary):
        inner = number(value.value)
        return -inner if value.op == "-" else int(not inner)
    if isinstance(value, Cast):
        return number(value.value)
    if isinstance(value, Call):
        if value.name == "if_then_else":
            return number(value.args[1] if number(value.args[0]) else value.args[2])
        found = expr._numbers(value.name, [number(a) for a in value.args])
        if found is not None:
            return int(found)
    raise SimulatorError(f"an extent cannot be computed: {value!r} is left in it")
