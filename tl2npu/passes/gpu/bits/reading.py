"""Reads the integers of a ``T.Parallel`` body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code, without_parentheses
from tl2npu.kernel.model import Operand
from tl2npu.kernel.ranges.reach import Reach, parents_of
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.gpu.bits.integers import (
    INT32,
    Integer,
    Known,
    NoInteger,
    bits_of,
    combined,
    converted,
    interval,
    inverted,
    leaf,
)
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.reading import Reading
from tl2npu.passes.job import Job
from tl2npu.source.signs import BITWISE, sign_of
from tl2npu.source.tree import names_in, nodes_of

WIDTH = "__width__"
"""Stands for the type that all integers of a nest are computed in."""
_LIMITS = (0, 1, 3, 7, 15, 31, 255, 65535)
_CONST = ("tvm.tir.const", "tvm.tirx.const", "tvm.tir.expr.const", "tilelang.language.const")
FUNCTIONS = {
    "shift_left": "<<",
    "shift_right": ">>",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "floordiv": "//",
    "floormod": "%",
}


class Integers:
    """The integers of one nest; ``local`` holds those that names inside of it stand for."""

    def __init__(self, job: Job, nest: Nest) -> None:
        self.names = job.file.names
        self.evaluator = job.located.evaluator
        self.local: dict[str, Integer] = {}
        self.reading = Reading(job, nest)
        inner = nest.loops[-1]
        self._bounds = Reach(job.kernel, self.evaluator).bounds(parents_of(job.kernel, inner), inner)
        self.loads: list[Operand] = []

    def read(self, node: cst.BaseExpression, env: Env, certain: bool = False) -> Integer:
        """The value of an expression; raises :class:`NoInteger`. ``certain``: by its place it can be no float."""
        node = without_parentheses(node)
        if isinstance(node, cst.Name) and node.value in self.local:
            return self.local[node.value]
        operand = self.evaluator.operand(node, env)
        if operand is not None:
            return self._load(operand, node)
        plain = self._plain(node, env, certain)
        if plain is not None:
            return plain
        if isinstance(node, cst.BinaryOperation):
            sign = sign_of(node.operator)
            inside = certain or sign in BITWISE
            left, right = self.read(node.left, env, inside), self.read(node.right, env, inside)
            return combined(sign, left, right, self._known(sign, left, right))
        if isinstance(node, cst.UnaryOperation):
            value = self.read(node.expression, env, certain or isinstance(node.operator, cst.BitInvert))
            if isinstance(node.operator, cst.BitInvert) and not value.plain:
                return inverted(value)
            if isinstance(node.operator, cst.Minus):
                return combined("-", leaf("0", value.dtype, 0, 0), value)
        if isinstance(node, cst.Call):
            return self._call(node, env, certain)
        raise NoInteger(code(node))

    def of_float(self, node: cst.BaseExpression, env: Env) -> tuple[str, Integer] | None:
        """The float type of ``T.reinterpret(dtype, bits)``, and the bits; None for anything else."""
        node = without_parentheses(node)
        if not isinstance(node, cst.Call) or self._short(node) != "reinterpret":
            return None
        dtype, value = self._reinterpreted(node, env)
        if element_types.is_integer(dtype) or not element_types.is_known(dtype):
            return None
        bits = self.read(value, env, True)
        width = {"float16": 16, "bfloat16": 16, "float32": 32}.get(dtype)
        if width != bits_of(bits.dtype):
            raise NoInteger(code(node))
        return dtype, bits

    def _load(self, operand: Operand, node: cst.BaseExpression) -> Integer:
        buffer = operand.buffer
        if operand.dims is None or not buffer.is_tile or operand.loads:
            raise NoInteger(code(node))
        dtype = element_types.plain(buffer.dtype)
        low, high = interval(dtype)
        self.loads.append(operand)
        names = frozenset(name.value for name in names_in(node)) & self.local.keys()
        return replace(leaf(f"T.cast({code(node)}, {WIDTH})", dtype, low, high, loads=True), names=names)

    def _plain(self, node: cst.BaseExpression, env: Env, certain: bool) -> Integer | None:
        """A number, or arithmetic of loop variables, block indices and sizes: it stays as it is written."""
        if isinstance(node, cst.Integer):
            value = node.evaluated_value
            return leaf(node.value, "int32" if INT32[0] <= value <= INT32[1] else "uint32", value, value, plain=True)
        if nodes_of(node, cst.Call) or self.evaluator.loads(node, env):
            return None
        if any(name.value in self.local for name in names_in(node)):
            return None
        sym = self.evaluator.sym(node, env)
        moving = bool(self.reading.axes_of(sym))
        if not (certain or self.reading.is_integer_number(node, env)):
            return None
        plain = not moving and not self.reading.is_dynamic(node, sym, env)
        low, high = self._limits(sym)
        return leaf(code(node), "int32", low, high, plain=plain, sym=sym)

    def _limits(self, sym: Sym) -> tuple[int, int]:
        """The interval of an expression of indices and sizes, as far as it is proved."""
        if not self._bounds.is_not_negative(sym):
            return INT32
        fits = (limit for limit in _LIMITS if self._bounds.is_not_negative(const(limit) - sym))
        return 0, next(fits, INT32[1])

    def _known(self, sign: str, left: Integer, right: Integer) -> Known | None:
        if left.sym is None or right.sym is None or sign not in ("+", "-", "*"):
            return None
        sym = {"+": left.sym + right.sym, "-": left.sym - right.sym, "*": left.sym * right.sym}[sign]
        return *self._limits(sym), sym

    def _call(self, node: cst.Call, env: Env, certain: bool) -> Integer:
        short = self._short(node)
        values = [arg.value for arg in node.args if arg.keyword is None]
        if len(values) != len(node.args):
            raise NoInteger(code(node))
        if short == "astype" and len(values) == 1 and isinstance(node.func, cst.Attribute):
            return self._cast(node.func.value, values[0], env)
        if short == "reinterpret" and len(values) == 2:
            kind, inner = self._reinterpreted(node, env)
            found = self.read(inner, env, True)
            if bits_of(kind) != bits_of(found.dtype):
                raise NoInteger(code(node))
            return replace(converted(found, kind), of_bits=True)
        if short in ("cast", "Cast") and len(values) == 2:
            value, dtype = values if short == "cast" else values[::-1]
            return self._cast(value, dtype, env)
        if short == "const" and len(values) == 2:
            return self._const(values[0], self._dtype(values[1], env), env)
        if short in FUNCTIONS and len(values) == 2:
            inside = certain or FUNCTIONS[short] in BITWISE
            left, right = (self.read(value, env, inside) for value in values)
            return combined(FUNCTIONS[short], left, right)
        if element_types.is_integer(short) and len(values) == 1:
            return self._cast(values[0], cst.SimpleString(f'"{short}"'), env)
        raise NoInteger(code(node))

    def _short(self, node: cst.Call) -> str:
        """The name of a function of the language or of TVM; that of a method ``astype``."""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype":
            return "astype"
        resolved = self.names.resolve(node.func) or ""
        own = resolved in _CONST or resolved.startswith(("tilelang.language.", "tvm.tir.", "tvm.tirx."))
        return resolved.rsplit(".", 1)[-1] if own else ""

    def _cast(self, value: cst.BaseExpression, dtype: cst.BaseExpression, env: Env) -> Integer:
        return replace(converted(self.read(value, env), self._dtype(dtype, env)), plain=False)

    def _const(self, value: cst.BaseExpression, dtype: str, env: Env) -> Integer:
        low, high = interval(dtype)
        found = self.read(value, env, True)
        if not found.plain:
            raise NoInteger(code(value))
        if not found.fits((low, high)):  # TVM takes no other number
            found = replace(found, low=low, high=high)
        return replace(found, dtype=dtype, plain=False)

    def _reinterpreted(self, node: cst.Call, env: Env) -> tuple[str, cst.BaseExpression]:
        """The type and the value: TVM has the type first, the language has it last."""
        if len(node.args) != 2 or any(arg.keyword is not None for arg in node.args):
            raise NoInteger(code(node))
        first, last = (arg.value for arg in node.args)
        for dtype, value in ((first, last), (last, first)):
            found = self._dtype(dtype, env)
            if element_types.is_known(found):
                return found, value
        raise NoInteger(code(node))

    def _dtype(self, node: cst.BaseExpression, env: Env) -> str:
        return element_types.plain(self.evaluator.dtype(node, env))


def uses(value: Integer, local: dict[str, Integer]) -> Iterator[str]:
    """The local names that a value needs, those that they need themselves first."""
    for name in sorted(value.names, key=list(local).index):
        yield from uses(local[name], local)
        yield name
