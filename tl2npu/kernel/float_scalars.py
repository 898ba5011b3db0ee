"""Which single values of a kernel are floats for certain: what TVM makes of elements, scalars and functions of floats.

An expression of integers beside one of them is computed in float32, and ``T.abs`` of one becomes ``tir.fabs``, which
nothing resolves.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.dialects.functions import IN_FLOATS, NAMES
from tl2npu.kernel.element_types import is_float, is_known, plain
from tl2npu.kernel.expressions import Evaluator, code
from tl2npu.kernel.model import Kernel, Let

_OF_ARGUMENTS = frozenset({"abs", "max", "min", "Max", "Min", "clamp", "pow", "power"})
_SELECTS = ("if_then_else", "Select")


class FloatScalars:
    """Asked of expressions of one kernel; ``is_float_buffer`` says which of its buffers hold floats."""

    def __init__(self, kernel: Kernel, evaluator: Evaluator, is_float_buffer: Callable[[str], bool]) -> None:
        """``is_float_buffer`` takes the element type of a buffer, as the source has it."""
        self._kernel, self._evaluator, self._is_float_type = kernel, evaluator, is_float_buffer
        self._names = {name for name, param in kernel.scalars.items() if self._is_declared(param)}
        for stmt in kernel.walk():
            if isinstance(stmt, Let) and stmt.name not in self._names and self.holds(stmt.value.node):
                self._names.add(stmt.name)

    def holds(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a float."""
        if isinstance(node, cst.Float):
            return True
        if isinstance(node, (cst.Name, cst.Subscript)):
            name = code(node.value if isinstance(node, cst.Subscript) else node)
            buffer = self._kernel.buffers.get(name)
            return name in self._names if buffer is None else self._is_float_type(buffer.dtype)
        if isinstance(node, cst.BinaryOperation):
            return isinstance(node.operator, cst.Divide) or self.holds(node.left) or self.holds(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self.holds(node.expression)
        if isinstance(node, cst.IfExp):
            return self.holds(node.body) or self.holds(node.orelse)
        return isinstance(node, cst.Call) and self._is_float_call(node)

    def _is_float_call(self, node: cst.Call) -> bool:
        name = self._short(node.func)
        values = [arg.value for arg in node.args]
        if name in ("cast", "Cast", "astype") and values:
            given = plain(code(values[0 if name == "Cast" else -1]).strip("\"'").rpartition(".")[2])
            return self._is_float_type(given)
        if is_known(plain(name)):
            return is_float(plain(name))
        if name in _SELECTS or NAMES.get(name, name) in _OF_ARGUMENTS:
            return any(map(self.holds, values[name in _SELECTS :]))
        return NAMES.get(name, name) in IN_FLOATS

    def _is_declared(self, param: cst.Param) -> bool:
        given = param.annotation.annotation if param.annotation is not None else None
        dtype = plain(self._short(given)) if given is not None else ""
        return is_known(dtype) and is_float(dtype)

    def _short(self, node: cst.BaseExpression) -> str:
        return (self._evaluator.names.resolve(node) or code(node)).rpartition(".")[2]
