"""Expressions of a traced kernel.

An expression carries its element type; types are matched, with a ``Cast`` where needed, when an expression is built,
as TVM does. Python numbers stay Python numbers until they meet an expression. Plain integers that can be computed
while tracing are computed, so that a factory's constants never become expressions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from tl2npu.simulator.ir import dtypes

if TYPE_CHECKING:
    from tl2npu.simulator.ir.buffer import Buffer

Value = Union["Expr", int, float, bool]


class Expr:
    """The base of all expressions; arithmetic on it builds larger ones."""

    dtype: str
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return binary("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return binary("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return binary("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return binary("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return binary("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return binary("%", other, self)

    def __and__(self, other: Any) -> Any:
        return binary("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return binary("&", other, self)

    def __or__(self, other: Any) -> Any:
        return binary("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return binary("|", other, self)

    def __xor__(self, other: Any) -> Any:
        return binary("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return binary("^", other, self)

    def __lshift__(self, other: Any) -> Any:
        return binary("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return binary("<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return binary(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return binary(">>", other, self)

    def __pow__(self, other: Any) -> Any:
        return call("pow", self, other)

    def __neg__(self) -> Any:
        return binary("-", 0, self) if dtypes.is_integer(self.dtype) else Unary("-", plain(self), self.dtype)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return call("abs", self)

    def __invert__(self) -> Any:
        return Unary("~", plain(self), self.dtype)

    def __lt__(self, other: Any) -> Any:
        return binary("<", self, other)

    def __le__(self, other: Any) -> Any:
        return binary("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return binary(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return binary(">=", self, other)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, (Expr, int, float)):
            return binary("==", self, other)
        return NotImplemented

    def __ne__(self, other: Any) -> Any:
        if isinstance(other, (Expr, int, float)):
            return binary("!=", self, other)
        return NotImplemented

    def equal(self, other: Any) -> Any:
        """TVM's spelling of ``==``."""
        return binary("==", self, other)

    def astype(self, dtype: Any) -> Any:
        """The value converted to another element type."""
        return cast(str(dtype), self)

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of an expression that is known only when the kernel runs was asked while it was traced; "
            "inside a prim_func or macro use `if`, `and`, `or`, `not` directly"
        )

    def __index__(self) -> int:
        raise TypeError("an expression that is known only when the kernel runs was used as a Python integer")


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A loop variable, a block index, a bound value, a symbolic extent.

    ``name`` is its own in the kernel, ``hint`` what the source calls it: the compiler compares loops by that.
    """

    name: str
    dtype: str = "int32"
    hint: str = ""

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A number with a given element type, ``T.float16(0)``."""

    value: Any
    dtype: str


@dataclass(frozen=True, eq=False)
class Binary(Expr):
    """Two operands of one element type; comparisons give ``bool``."""

    op: str
    left: Value
    right: Value
    dtype: str


@dataclass(frozen=True, eq=False)
class Unary(Expr):
    """``-``, ``~``, ``not``."""

    op: str
    value: Value
    dtype: str


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A function of scalars: ``exp``, ``max``, ``if_then_else`` (lazy in its branches)."""

    name: str
    args: tuple[Value, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """A value converted; floats round to nearest even, float to integer truncates."""

    value: Value
    dtype: str


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """One element of a buffer. As the operand of a tile operator it stands for an address (a start index)."""

    buffer: Buffer
    indices: tuple[Value, ...]

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The element type of the buffer."""
        return self.buffer.dtype

    @property
    def scope(self) -> Callable[[], str]:
        """As TVM: ``x.scope()``."""
        return self.buffer.scope


_COMPARE = {"<", "<=", ">", ">=", "==", "!="}
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def plain(value: Any) -> Any:
    """A Python number for an integer or Boolean constant expression and for NumPy scalars, else the value itself."""
    if isinstance(value, Const) and not dtypes.is_float(value.dtype):
        return value.value
    if isinstance(value, Load) and type(value) is not Load:
        return Load(value.buffer, value.indices)  # the name of a variable stands for its value
    if not isinstance(value, (Expr, int, float, str)) and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def dtype_of(value: Value) -> str:
    """The element type of a value; a bare Python number has the default one of its class."""
    if isinstance(value, Expr):
        return value.dtype
    if isinstance(value, bool):
        return "bool"
    return "float32" if isinstance(value, float) else "int32" if -(2**31) <= value < 2**31 else "int64"


def cast(dtype: str, value: Value) -> Value:
    """The value as ``dtype``; nothing is built where it has that type already."""
    dtype = dtypes.canonical(dtype)
    value = plain(value)
    if not isinstance(value, Expr):
        return Const(float(value) if dtypes.is_float(dtype) else dtypes.whole(value, dtype), dtype)
    if value.dtype == dtype:
        return value
    if isinstance(value, Const) and not (dtypes.is_float(value.dtype) and math.isnan(value.value)):
        number = dtypes.numpy_dtype(value.dtype).type(value.value)
        if dtypes.is_float(dtype):
            return Const(float(number), dtype)
        if math.isfinite(float(number)):
            return Const(dtypes.whole(float(number) if dtypes.is_float(value.dtype) else value.value, dtype), dtype)
    return Cast(value, dtype)


def match(left: Value, right: Value) -> tuple[Value, Value, str]:
    """Both values in their common element type, and that type."""
    if isinstance(left, Expr) and isinstance(right, Expr):
        dtype = dtypes.promote(left.dtype, right.dtype)
        return cast(dtype, left), cast(dtype, right), dtype
    symbolic, number = (left, right) if isinstance(left, Expr) else (right, left)
    dtype = dtype_of(symbolic)
    if isinstance(number, float) and dtypes.promote(dtype, "float32") != dtype:  # a Python float is a float32
        dtype = "float32"
        return cast(dtype, left), cast(dtype, right), dtype
    if dtype == "bool" and not isinstance(number, bool):
        dtype = "int32"
        return cast(dtype, left), cast(dtype, right), dtype
    if dtypes.is_integer(dtype) and not dtypes.holds(dtype, int(number)):
        dtype = dtypes.promote(dtype, dtype_of(number))
        whole = dtypes.whole(number, dtype)
        return (cast(dtype, left), whole, dtype) if symbolic is left else (whole, cast(dtype, right), dtype)
    return left, right, dtype


_NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1, "//": 1}


def binary(op: str, left: Any, right: Any) -> Any:
    """``left op right``; computed at once for Python numbers. Raises TypeError, and ZeroDivisionError as TVM does."""
    left, right = plain(left), plain(right)
    for value in (left, right):
        if not isinstance(value, (Expr, int, float)):
            raise TypeError(f"{op!r} between {_kind(left)} and {_kind(right)}: {_kind(value)} is not a number")
    if not isinstance(left, Expr) and not isinstance(right, Expr):
        return _PYTHON[op](left, right)
    if op in ("and", "or"):
        return _connective(op, left, right)
    number = right.value if isinstance(right, Const) else right
    if op in ("/", "//", "%") and not isinstance(number, Expr) and number == 0:
        raise ZeroDivisionError("the compiler divides by no constant 0")
    if (folded := _fold(op, left, right)) is not None:
        return folded
    if op in _COMPARE and isinstance(number, float) and dtypes.is_float(dtype_of(left)):
        return Binary(op, left, right, "bool")  # the parser of the Ascend branch takes the number for the other's type
    left, right, dtype = match(left, right)
    if op == "/" and not dtypes.is_float(dtype):
        left, right, dtype = cast("float32", left), cast("float32", right), "float32"
    if isinstance(left, Const) and isinstance(right, Const) and not dtypes.is_float(dtype):
        return _PYTHON[op](left.value, right.value)
    if dtypes.is_float(dtype) and (folded := _fold_floats(op, left, right, dtype)) is not None:
        return folded
    return Binary(op, left, right, "bool" if op in _COMPARE else dtype)


def _connective(op: str, left: Value, right: Value) -> Value:
    for value, other in ((left, right), (right, left)):
        if not isinstance(value, Expr):
            neutral = bool(value) is (op == "and")
            return other if neutral else bool(value)
    return Binary(op, left, right, "bool")


def _fold(op: str, left: Value, right: Value) -> Value | None:
    """Neutral elements of integer arithmetic, which keep index expressions small."""
    if not all(dtypes.is_integer(dtype_of(v)) for v in (left, right)):
        return None
    if isinstance(right, int):
        if right == 0 and op in ("+", "-", "<<", ">>"):
            return left
        if right == 1 and op in ("*", "//"):
            return left
        if (right == 0 and op == "*") or (right == 1 and op == "%"):
            return 0
    if isinstance(left, int):
        if left == 0 and op == "+":
            return right
        if left == 1 and op == "*":
            return right
        if left == 0 and op in ("*", "//", "%"):
            return 0
    return None


def _fold_floats(op: str, left: Value, right: Value, dtype: str) -> Value | None:
    """Neutral elements of float arithmetic (TVM: src/arith/const_fold.h); ``x * 0.0`` is 0.0 there, too."""
    first, second = (v.value if isinstance(v, Const) else None if isinstance(v, Expr) else v for v in (left, right))
    if second is not None and second == _NEUTRAL.get(op):
        return left
    if op in ("+", "*") and first is not None and first == _NEUTRAL[op]:
        return right
    return Const(0.0, dtype) if (first == 0 and op in ("*", "/")) or (second == 0 and op == "*") else None


def _kind(value: Any) -> str:
    return f"the buffer {value.name}" if hasattr(value, "name") and hasattr(value, "shape") else type(value).__name__


def negate(value: Any) -> Any:
    """``not value``."""
    value = plain(value)
    return Unary("not", value, "bool") if isinstance(value, Expr) else not value


_INTEGER_RESULT = {"ceildiv", "truncdiv", "truncmod", "popcount", "clz"}
_BOOL_RESULT = {"isnan", "isinf", "isfinite", "likely"}


def call(name: str, *args: Any) -> Any:
    """A scalar function; operands of ``max``, ``min``, ``pow`` and the branches of a choice are matched."""
    values = [plain(a) for a in args]
    if name == "if_then_else":
        condition, yes, no = values
        if not isinstance(condition, Expr):
            return yes if condition else no
        if isinstance(yes, Expr) or isinstance(no, Expr):
            yes, no, dtype = match(yes, no)
        else:
            dtype = "float32" if isinstance(yes, float) or isinstance(no, float) else dtype_of(yes)
            yes, no = cast(dtype, yes), cast(dtype, no)
        return Call(name, (condition, yes, no), dtype)
    if not any(isinstance(v, Expr) for v in values):
        folded = _numbers(name, values)
        if folded is not None:
            return folded
    if name in ("max", "min") and len(values) > 2:
        return call(name, call(name, *values[:-1]), values[-1])
    if (
        name in ("max", "min", "pow", "ceildiv", "truncdiv", "truncmod", "atan2", "copysign", "fmod")
        and len(values) == 2
    ):
        left, right, dtype = match(values[0], values[1])
        return Call(name, (left, right), dtype)
    dtype = dtype_of(values[0])
    if (
        name not in _INTEGER_RESULT
        and name not in ("abs", "max", "min", "likely", "clamp")
        and name not in _BOOL_RESULT
    ):
        if not dtypes.is_float(dtype):
            dtype = "float32"
        values = [cast(dtype, v) if i == 0 else v for i, v in enumerate(values)]
    return Call(name, tuple(values), "bool" if name in _BOOL_RESULT else dtype)


def _numbers(name: str, values: list[Any]) -> Any:
    """A function of Python numbers, where the answer does not depend on a rounding."""
    if name == "ceildiv":
        return -(-values[0] // values[1])
    if name == "max":
        return max(values)
    if name == "min":
        return min(values)
    if name == "abs":
        return abs(values[0])
    if name == "truncdiv":
        return _quotient(values[0], values[1])
    if name == "truncmod":
        return values[0] - values[1] * _quotient(values[0], values[1])
    if name == "pow":
        return values[0] ** values[1]
    plain_functions = {
        "exp": math.exp,
        "log": math.log,
        "log2": math.log2,
        "log10": math.log10,
        "sqrt": math.sqrt,
        "exp2": lambda x: 2.0**x,
        "rsqrt": lambda x: 1.0 / math.sqrt(x),
        "floor": math.floor,
        "ceil": math.ceil,
    }
    return plain_functions[name](values[0]) if name in plain_functions else None


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero."""
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole
