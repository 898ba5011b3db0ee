"""Expressions on tiles: one typed tree for every dialect.

An expression gives the value of one element of a tile. The element's place are the axis variables ``@0``, ``@1``, ...
of :mod:`tl2npu.kernel.symbolic`; a leaf names the element of a buffer, a number, or an integer that the indices decide.
Element types are those of TileLang: ``float32``, ``bfloat16``, ``int32``, ``bool``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.kernel.symbolic import Sym, var


@dataclass(frozen=True)
class Const:
    """A number, or a bool."""

    value: float | int | bool
    dtype: str


@dataclass(frozen=True)
class Index:
    """An integer that is a function of sizes, loop variables and the element's place."""

    value: Sym
    dtype: str = "int32"


@dataclass(frozen=True)
class Load:
    """The element of a buffer at ``index``, one integer for each axis of the buffer."""

    buffer: str
    index: tuple[Sym, ...]
    dtype: str


@dataclass(frozen=True)
class Call:
    """An operator of :data:`OPERATORS` on expressions; ``cast`` converts to ``dtype``."""

    op: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True)
class Opaque:
    """A scalar that the IR does not understand: its text is kept, and it reads no buffer.

    ``weak``: a number of Python, which takes the type of what it meets.
    """

    text: str
    dtype: str
    weak: bool = False


Expr = Const | Index | Load | Call | Opaque

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
LOGIC = frozenset({"and", "or", "not"})
OPERATORS: Mapping[str, int] = {
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "floordiv", "mod", "truncdiv", "truncmod", "max", "min", "pow", "and", "or"), 2
    ),
    **dict.fromkeys(("bitand", "bitor", "bitxor", "shl", "shr"), 2),
    **dict.fromkeys(COMPARISONS, 2),
    **dict.fromkeys(("neg", "not", "bitnot", "cast", *FUNCTIONS), 1),
    **dict.fromkeys(("select", "fma"), 3),
}
"""Element-wise operators with the number of their operands; ``round``: halves to the even neighbour."""
BINARY: Mapping[str, tuple[str, int]] = {
    "or": ("or", 1),
    "and": ("and", 2),
    "lt": ("<", 4),
    "le": ("<=", 4),
    "gt": (">", 4),
    "ge": (">=", 4),
    "eq": ("==", 4),
    "ne": ("!=", 4),
    "bitor": ("|", 5),
    "bitxor": ("^", 6),
    "bitand": ("&", 7),
    "shl": ("<<", 8),
    "shr": (">>", 8),
    "add": ("+", 9),
    "sub": ("-", 9),
    "mul": ("*", 10),
    "div": ("/", 10),
    "floordiv": ("//", 10),
    "mod": ("%", 10),
}
"""Those that Python has a sign for: the sign, and how strongly it binds."""
UNARY = {"neg": "-", "bitnot": "~"}
OF_SIGN: Mapping[str, str] = {"**": "pow"} | {sign: name for name, (sign, _) in BINARY.items()}


def axis(number: int) -> Sym:
    """The variable of an axis: the element's place along it."""
    return var(f"@{number}")


def axis_of(name: str) -> int | None:
    """The axis that a variable stands for; None for any other name."""
    return int(name[1:]) if name.startswith("@") and name[1:].isdigit() else None


def identity(rank: int) -> tuple[Sym, ...]:
    """The place of an element as its index."""
    return tuple(axis(number) for number in range(rank))


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, outside first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def loads(expr: Expr) -> Iterator[Load]:
    """Every buffer element that the expression reads."""
    return (item for item in walk(expr) if isinstance(item, Load))


def rebuilt(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with parts replaced for which ``change`` gives something; what it gives is not looked into."""
    new = change(expr)
    if new is not None:
        return new
    if isinstance(expr, Call):
        return replace(expr, args=tuple(rebuilt(arg, change) for arg in expr.args))
    return expr


def with_integers(expr: Expr, change: Callable[[Sym], Sym]) -> Expr:
    """The expression with every integer in it changed: indices and values of indices."""

    def part(item: Expr) -> Expr | None:
        if isinstance(item, Index):
            return replace(item, value=change(item.value))
        if isinstance(item, Load):
            return replace(item, index=tuple(change(place) for place in item.index))
        return None

    return rebuilt(expr, part)


def substituted(expr: Expr, values: Mapping[str, Sym | int]) -> Expr:
    """The expression with variables of its integers replaced."""
    return with_integers(expr, lambda value: value.substitute(values))


def with_leading_index(expr: Expr, buffers: Collection[str], index: Sym) -> Expr:
    """The expression where these buffers have one more axis, the first, and are read at ``index`` of it."""

    def part(item: Expr) -> Expr | None:
        if isinstance(item, Load) and item.buffer in buffers:
            return replace(item, index=(index, *item.index))
        return None

    return rebuilt(expr, part)


def integers(expr: Expr) -> Iterator[Sym]:
    """Every integer in the expression: indices and values of indices."""
    for item in walk(expr):
        if isinstance(item, Index):
            yield item.value
        elif isinstance(item, Load):
            yield from item.index
