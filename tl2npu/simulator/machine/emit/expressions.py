"""Expressions of scalars and of lanes.

Outside of a ``T.Parallel``, and inside for what does not differ between lanes, an expression is plain Python: integers
are Python's, wrapped to their type where they could leave it. Inside, it is an array that broadcasts over the lanes.
Operands that C would not evaluate (the right side of ``and``, a branch not taken) are evaluated under a mask.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Load, Unary, Var
from tl2npu.simulator.ir.interval import interval
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.machine.emit.state import State
from tl2npu.simulator.operators.gpu_atomics import previous


def wrap(value: int, bits: int, signed: bool) -> int:
    """A Python integer as a register of ``bits`` holds it."""
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def truncdiv(x: Any, y: Any) -> Any:
    """The quotient rounded towards zero, as in C."""
    return (x - truncmod(x, y)) // y


def truncmod(x: Any, y: Any) -> Any:
    """The remainder with the sign of the dividend, as in C."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return np.fmod(x, y)
    rest = abs(x) % abs(y)
    return rest if x >= 0 else -rest


def popcount(x: Any, bits: int) -> Any:
    """The number of bits that are set."""
    x = _raw(x, bits)
    count = np.zeros(x.shape, np.int64)
    for shift in range(0, bits, 8):
        count += _BITS_OF_BYTE[(x >> np.uint64(shift)) & np.uint64(255)]
    return count[()]


def clz(x: Any, bits: int) -> Any:
    """The number of leading zero bits."""
    x = _raw(x, bits)
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = x >> np.uint64(step)
        wide = high != 0
        length += np.where(wide, step, 0)
        x = np.where(wide, high, x)
    return (bits - length - (x != 0))[()]


def _raw(x: Any, bits: int) -> Any:
    """The bits as an unsigned array."""
    return np.asarray(x).astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


_BITS_OF_BYTE = np.array([bin(n).count("1") for n in range(256)], np.int64)


_FLOAT_OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_FUNCTIONS = {"max": "maximum", "min": "minimum", "abs": "absolute"}
_GPU_FUNCTIONS = {"max": "number_maximum", "min": "number_minimum", "round": "nearbyint"}
"""On a GPU the extremum of a NaN and a number is the number, and halves round to even (codegen_cuda.cc)."""
_COMPARE = {"<": "less", "<=": "less_equal", "==": "equal"}
_WRAPPING = {"+", "-", "*", "<<"}


class Expressions(State):
    """The code of expressions."""

    def view(self, value: Region | Load, kind: str) -> str:
        """The code of a region as a view; defined with the operators."""
        raise NotImplementedError

    def element(self, e: Load) -> str:
        """The code of an element for each lane; defined with the windows."""
        raise NotImplementedError

    def code(self, value: Any) -> str:
        """The Python code of an expression."""
        if isinstance(value, bool):
            return repr(value)
        if isinstance(value, int):
            return repr(value) if value >= 0 else f"({value})"
        if isinstance(value, float):
            if value != value:
                return "NAN"
            return ("INF" if value > 0 else "(-INF)") if math.isinf(value) else f"({value!r})"
        if not isinstance(value, Expr):
            raise TraceError(f"{type(value).__name__} where a scalar value is needed")
        return getattr(self, f"of_{type(value).__name__}")(value)  # type: ignore[no-any-return]

    def typed(self, value: Any, dtype: str) -> str:
        """The code of an operand of a float operation; a Python number becomes a constant of the type."""
        if isinstance(value, (int, float)):
            return self.constant(self.arithmetic.number(value, dtype))
        return self.code(value)

    def whole(self, value: Any, dtype: str) -> str:
        """The code of an operand of an integer operation; a Python number is wrapped to the type."""
        if isinstance(value, int) and not isinstance(value, bool) and dtypes.is_integer(dtype):
            value = wrap(value, dtypes.bits(dtype), dtype.startswith("int"))
        return self.code(value)

    def of_Var(self, e: Var) -> str:
        if e not in self.names:
            raise TraceError(f"the variable {e.name} is used outside of the loop or branch that defines it")
        return self.names[e]

    def of_Const(self, e: Const) -> str:
        if not dtypes.is_float(e.dtype):
            return self.code(e.value)
        return self.constant(self.arithmetic.number(e.value, e.dtype))

    def of_Binary(self, e: Binary) -> str:
        if e.op in ("and", "or"):
            return self._connective(e)
        operand = e.left if isinstance(e.left, Expr) else e.right
        if isinstance(operand, Expr) and dtypes.is_float(operand.dtype):
            return self._float_binary(e, operand.dtype)
        kind = operand.dtype if isinstance(operand, Expr) else e.dtype
        if (
            e.op in ("//", "%")
            and self.truncates
            and not (self._is_at_least(e.left, 0) and self._is_at_least(e.right, 1))
        ):
            return self._truncated(e.op, self.whole(e.left, kind), self.whole(e.right, kind))
        code = f"({self.whole(e.left, kind)} {e.op} {self.whole(e.right, kind)})"
        return self._wrapped(e, code) if e.op in _WRAPPING else code

    def _is_at_least(self, value: Any, bound: int) -> bool:
        """Known of an integer."""
        if isinstance(value, Expr) and value.dtype.startswith("uint") and bound == 0:
            return True
        found = interval(value, self.ranges)
        return found is not None and found[0] >= bound

    def _truncated(self, op: str, left: str, right: str) -> str:
        """The quotient or the remainder of C."""
        self.space.update({"_truncdiv": truncdiv, "_truncmod": truncmod})
        return f"_trunc{'div' if op == '//' else 'mod'}({left}, {right})"

    def _wrapped(self, e: Binary, code: str) -> str:
        """Python's integers have no end: a result that may leave its type is wrapped."""
        if self.spans(e) or not dtypes.is_integer(e.dtype):
            return code
        bits, signed = dtypes.bits(e.dtype), e.dtype.startswith("int")
        found = interval(e, self.ranges)
        if found is not None and all(wrap(end, bits, signed) == end for end in found):
            return code
        self.space["_wrap"] = wrap
        return f"_wrap({code}, {bits}, {signed})"

    def _float_binary(self, e: Binary, kind: str) -> str:
        left, right = self.typed(e.left, kind), self.typed(e.right, kind)
        if e.op in _FLOAT_OPS:
            return f"A.{_FLOAT_OPS[e.op]}({left}, {right})"
        if e.op in ("<", "<=", "=="):
            return f"A.{_COMPARE[e.op]}({left}, {right})"
        if e.op in (">", ">="):
            return f"A.{_COMPARE['<' + e.op[1:]]}({right}, {left})"
        if e.op == "!=":
            return f"np.logical_not(A.equal({left}, {right}))"
        raise UnsupportedOperator(f"{e.op!r} of two {kind} values has no meaning in the simulator")

    def _connective(self, e: Binary) -> str:
        """``and`` and ``or``: the right side is not evaluated where the left one decides."""
        if not self.spans(e.left):
            return f"({self.code(e.left)} {e.op} {self.code(e.right)})"
        if not any(isinstance(part, Load) for part in walk(e.right)):
            return f"np.logical_{e.op}({self.code(e.left)}, {self.code(e.right)})"
        name, before = self.fresh("c"), self.mask
        self.mask = self.both(name if e.op == "and" else f"np.logical_not({name})")
        right = self.code(e.right)
        self.mask = before
        return f"np.logical_{e.op}({name} := {self.truth(e.left)}, {right})"

    def of_Unary(self, e: Unary) -> str:
        inner = self.code(e.value)
        if e.op == "not":
            return f"np.logical_not({inner})" if self.spans(e) else f"(not {inner})"
        if e.op == "-":
            return f"A.neg({inner})"
        if e.dtype == "bool":
            return f"np.logical_not({inner})" if self.spans(e) else f"(not {inner})"
        code = f"(~{inner})"
        if self.spans(e) or e.dtype.startswith("int"):
            return code
        self.space["_wrap"] = wrap
        return f"_wrap({code}, {dtypes.bits(e.dtype)}, False)"

    def of_Cast(self, e: Cast) -> str:
        inner = self.code(e.value)
        source = e.value.dtype if isinstance(e.value, Expr) else "int32"
        if dtypes.is_float(source) or dtypes.is_float(e.dtype):
            code = f"A.cast({inner}, {e.dtype!r})"
            if dtypes.is_float(e.dtype) or self.spans(e):
                return code
            return f"bool({code})" if e.dtype == "bool" else f"int({code})"
        if self.spans(e):
            return f"np.asarray({inner}).astype({self.constant(dtypes.numpy_dtype(e.dtype))})"
        if e.dtype == "bool":
            return f"bool({inner})"
        if source != "bool" and (dtypes.bits(e.dtype) < dtypes.bits(source) or source[0] != e.dtype[0]):
            self.space["_wrap"] = wrap
            return f"_wrap({inner}, {dtypes.bits(e.dtype)}, {e.dtype.startswith('int')})"
        return f"int({inner})"

    def of_Call(self, e: Call) -> str:
        if e.name == "if_then_else":
            return self._choice(e)
        if e.name == "atomic":
            return self._atomic(e)
        if e.name in ("any_of", "all_of"):
            region: Any = e.args[0]
            return f"bool(np.{e.name[:3]}({self.nonzero(region.dtype, self.view(region, 'r'))}))"
        if e.name == "likely":
            return self.code(e.args[0])
        if e.name == "reinterpret":
            return self._reinterpret(e)
        kinds = [a.dtype if isinstance(a, Expr) else "float32" if isinstance(a, float) else "int32" for a in e.args]
        if not any(dtypes.is_float(k) for k in kinds[:2]):
            return self._integer_call(e, [self.code(a) for a in e.args])
        name = _FUNCTIONS.get(e.name, e.name)
        if self.gpu and e.name in _GPU_FUNCTIONS:
            name = _GPU_FUNCTIONS[e.name]
        if not hasattr(self.arithmetic, name):
            raise UnsupportedOperator(f"T.{e.name} has no meaning in the simulator")
        kind = next((a.dtype for a in e.args if isinstance(a, Expr)), "float32")
        return f"A.{name}({', '.join(self.typed(a, kind) for a in e.args)})"

    def _atomic(self, e: Call) -> str:
        """An atomic update that gives what was there before; inside of a ``T.Parallel`` one after the other."""
        target, value, kind = e.args
        assert isinstance(target, Load)
        self.space["_previous"] = previous
        buffer, index = self.buffer(target.buffer), self.tuple(target.indices)
        place = f"(X, {target.buffer.number}, {buffer}, {index}, {self.site})"
        lanes = [f"np.shape({self.names[v]})" for v, axis in self.lanes.items() if axis >= 0]
        shape = f"np.broadcast_shapes({', '.join(lanes)})" if lanes else "()"
        typed = self.typed(value, e.dtype) if dtypes.is_float(e.dtype) else self.code(value)
        code = f"_previous(A, {kind!r}, {place}, {typed}, {self.mask or 'None'}, {e.dtype!r}, {shape})"
        return code if lanes else f"int({code})" if dtypes.is_integer(e.dtype) else f"{code}[()]"

    def _reinterpret(self, e: Call) -> str:
        """The same bits as another type. Only numbers have bits."""
        source = e.args[0].dtype if isinstance(e.args[0], Expr) else "int32"
        code = f"A.reinterpret({self.code(e.args[0])}, {source!r}, {e.dtype!r})"
        if self.spans(e) or dtypes.is_float(e.dtype):
            return code
        return f"bool({code})" if e.dtype == "bool" else f"int({code})"

    def _integer_call(self, e: Call, args: list[str]) -> str:
        spans = self.spans(e)
        if e.name in ("max", "min"):
            return f"np.{e.name}imum({args[0]}, {args[1]})" if spans else f"{e.name}({', '.join(args)})"
        if e.name in ("abs", "fabs"):
            return f"abs({args[0]})"
        if e.name == "ceildiv":
            if self.truncates and not self._is_at_least(e.args[0], 0):
                return self._truncated("//", f"({args[0]} + {args[1]} - 1)", args[1])
            return f"(-(-{args[0]} // {args[1]}))"
        if e.name == "pow":
            return f"({args[0]} ** {args[1]})"
        if e.name in ("isnan", "isinf", "isfinite"):
            return str(e.name == "isfinite")
        if e.name in ("floor", "ceil", "round", "trunc", "nearbyint"):
            return args[0]
        self.space.update({"_popcount": popcount, "_clz": clz})
        if e.name in ("truncdiv", "truncmod"):
            return self._truncated("//" if e.name == "truncdiv" else "%", args[0], args[1])
        if e.name in ("popcount", "clz"):
            code = f"_{e.name}({args[0]}, {dtypes.bits(e.dtype)})"
            return code if spans else f"int({code})"
        raise UnsupportedOperator(f"T.{e.name} of integers has no meaning in the simulator")

    def _choice(self, e: Call) -> str:
        condition, yes, no = e.args
        if not self.spans(condition):
            return f"({self._branch(yes, e.dtype)} if {self.code(condition)} else {self._branch(no, e.dtype)})"
        name, before = self.fresh("c"), self.mask
        branches = []
        for branch, test in ((yes, name), (no, f"np.logical_not({name})")):
            self.mask = f"({before} & {test})" if before else f"({test})"
            branches.append(self._branch(branch, e.dtype))
        self.mask = before
        where = "A" if dtypes.is_float(e.dtype) else "np"
        return f"{where}.where({name} := {self.truth(condition)}, {branches[0]}, {branches[1]})"

    def _branch(self, value: Any, dtype: str) -> str:
        return self.typed(value, dtype) if dtypes.is_float(dtype) else self.code(value)

    def of_Load(self, e: Load) -> str:
        name, number = self.buffer(e.buffer), e.buffer.number
        if self.spans(e):
            return self.element(e)
        if self.mask:
            code = f"X.gather({number}, {name}, {self.tuple(e.indices)}, np.any({self.mask}), {self.site})"
        else:
            code = f"X.load({number}, {name}, {self.tuple(e.indices)}, {self.site})"
        if dtypes.is_integer(e.dtype):
            return f"int({code})"
        return f"bool({code})" if e.dtype == "bool" else code
