"""Expressions of ``T.Parallel`` bodies: what is computed per element, with the type and the reach of every part."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Operand
from tl2npu.kernel.numbers import value_of
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.signs import BITWISE, sign_of

Kind = Literal["load", "number", "index", "binary", "negative", "call", "cast", "select", "compare", "logic", "unknown"]


class Span(enum.Enum):
    """Which elements a load takes, seen from the loop ``for i, j in T.Parallel``."""

    TILE = "tile"  # x[i, j], all columns; in a loop over one axis x[i]
    ROW = "row"  # s[i]: one value per row
    COLUMN = "column"  # w[j]: one value per column
    POINT = "point"  # b[0]
    PART = "part"  # x[i, j + 8], or x[i, j] of a tile with more columns than the loop has
    OTHER = "other"  # x[j, i], x[i // 2, j], x[index[i], j]


@dataclass(frozen=True, eq=False)
class Expr:
    """One node.

    ``name``: the sign, the function, the type of a cast, ``and``/``or``/``not``. ``dtype``: empty for a number, which
    takes the type of what it meets. ``node``: the source, if this stands there just so. ``text``: that of a leaf.
    ``axes``: ``r`` and ``c`` where the value changes along the rows or the columns. ``dynamic``: a number that is
    known in the kernel only, not in Python. ``whole``: a load of a tile that holds whole numbers only, or such a
    number.
    """

    kind: Kind
    name: str = ""
    args: tuple[Expr, ...] = ()
    dtype: str = ""
    node: cst.BaseExpression | None = None
    text: str = ""
    load: Operand | None = None
    span: Span | None = None
    axes: frozenset[str] = frozenset()
    sym: Sym | None = None
    dynamic: bool = False
    whole: bool = False

    def walk(self) -> Iterator[Expr]:
        """This node and everything below it."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    @property
    def loads(self) -> Iterator[Expr]:
        """The buffer elements in it, left to right."""
        return (part for part in self.walk() if part.kind == "load")

    @property
    def buffers(self) -> frozenset[str]:
        """Names of the buffers that it reads."""
        return frozenset(part.name for part in self.loads)

    @property
    def is_number(self) -> bool:
        """True if it is the same for all elements and no element of a tile."""
        return self.kind == "number"

    @property
    def value(self) -> float | None:
        """The value of a literal number, None if it is not known."""
        return literal(self.text) if self.kind == "number" else None


FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The comparison with its sides exchanged."""
_LEVELS: dict[str, int] = {"+": 10, "-": 10, "*": 20, "/": 20, "//": 20, "%": 20, "&": 7, "|": 5, "<<": 8, ">>": 8}
_COMPARE, _NOT, _AND, _OR, _CONDITIONAL, _NEGATIVE, _ATOM = 4, 3, 2, 1, 0, 30, 40


_BEGINS_WITH_NUMBER = re.compile(r"[-+~(\s]*[\d.]")


@lru_cache(maxsize=1024)
def parsed(text: str) -> cst.BaseExpression:
    """An expression to look at; the same one for the same text, so never a part of a tree."""
    return cst.parse_expression(text)


@lru_cache(maxsize=1024)
def literal(text: str) -> float | None:
    """The value of the text of a plain number, with signs and powers of plain numbers."""
    if not _BEGINS_WITH_NUMBER.match(text):
        return None
    try:
        return value_of(cst.parse_expression(text.strip()))
    except cst.ParserSyntaxError:
        return None


def level_of(node: cst.BaseExpression) -> int:
    """How tightly the outermost operator of a source expression binds, its own parentheses left aside."""
    if isinstance(node, cst.BinaryOperation):
        return _LEVELS.get(sign_of(node.operator), 6 if isinstance(node.operator, cst.BitXor) else 35)
    if isinstance(node, cst.UnaryOperation):
        return _NOT if isinstance(node.operator, cst.Not) else _NEGATIVE
    if isinstance(node, cst.Comparison):
        return _COMPARE
    if isinstance(node, cst.BooleanOperation):
        return _AND if isinstance(node.operator, cst.And) else _OR
    if isinstance(node, (cst.IfExp, cst.Lambda)):
        return _CONDITIONAL
    return _ATOM


def show(expr: Expr, at_least: int = _CONDITIONAL) -> str:
    """The text, in parentheses where it binds less tightly than ``at_least``."""
    text, level = _shown(expr)
    if "#" in text:  # a comment between the lines: they stay as they are
        return f"({text})" if "\n" in text else text
    text = _on_one_line(text)
    return f"({text})" if level < at_least else text


def _on_one_line(text: str) -> str:
    """What stood in parentheses of its own may go over several lines; elsewhere it may not."""
    if "\n" not in text:
        return text
    text = re.sub(r"\s*\n\s*", " ", text)
    return re.sub(r"(?<=[(\[]) | (?=[)\]])", "", text)


def _shown(expr: Expr) -> tuple[str, int]:
    if expr.node is not None:
        bare = expr.node.with_changes(lpar=(), rpar=()) if expr.node.lpar else expr.node
        return code(bare), level_of(expr.node)
    if expr.kind == "binary":
        level = _LEVELS.get(expr.name, 6)
        left, right = expr.args
        if expr.name in BITWISE:  # nobody knows by heart how these bind beside others
            chain = left.kind == "binary" and left.name == expr.name
            return f"{show(left, level if chain else _NEGATIVE)} {expr.name} {show(right, _NEGATIVE)}", level
        return f"{show(left, level)} {expr.name} {show(right, level + 1)}", level
    if expr.kind == "negative":
        return f"-{show(expr.args[0], _NEGATIVE)}", _NEGATIVE
    if expr.kind == "call":
        return f"T.{expr.name}({', '.join(show(arg) for arg in expr.args)})", _ATOM
    if expr.kind == "compare":
        left, right = expr.args
        return f"{show(left, _COMPARE + 1)} {expr.name} {show(right, _COMPARE + 1)}", _COMPARE
    if expr.kind == "logic":
        if expr.name == "not":
            return f"not {show(expr.args[0], _NOT)}", _NOT
        level = _AND if expr.name == "and" else _OR
        return f" {expr.name} ".join(show(arg, level + 1) for arg in expr.args), level
    if expr.kind == "cast":
        return f"T.cast({show(expr.args[0])}, {expr.text})", _ATOM
    if expr.kind == "number":
        try:
            return expr.text, level_of(parsed(expr.text))
        except cst.ParserSyntaxError:
            return expr.text, _CONDITIONAL
    return expr.text, _ATOM


def number(text: str | float, *, dynamic: bool = False) -> Expr:
    """A number from its text, or a Python float."""
    if not isinstance(text, str):
        text = repr(float(text))
    node = parsed(text)
    if node.lpar:
        text = code(node.with_changes(lpar=(), rpar=()))
    return Expr("number", text=text, dynamic=dynamic)


def joined(*args: Expr) -> frozenset[str]:
    """The axes of several parts together."""
    return frozenset().union(*(arg.axes for arg in args))


def binary(sign: str, left: Expr, right: Expr) -> Expr:
    """``left sign right`` as a new expression; two literal numbers are computed.

    A negative number is not subtracted: the compiler prints `--1.0f` for `x[i, j] - -1.0`.
    """
    if sign == "-" and not left.is_number and right.value is not None and right.value < 0:
        sign, right = "+", number(show(right).lstrip("-"))
    if left.is_number and right.is_number:
        text = f"{show(left, _LEVELS[sign])} {sign} {show(right, _LEVELS[sign] + 1)}"
        return number(text, dynamic=left.dynamic or right.dynamic)
    return Expr("binary", sign, (left, right), left.dtype or right.dtype, axes=joined(left, right))


def negative(arg: Expr) -> Expr:
    """``-arg``."""
    if arg.kind == "negative":
        return arg.args[0]
    if arg.is_number:
        return number(f"-{show(arg, _NEGATIVE)}", dynamic=arg.dynamic)
    return Expr("negative", "-", (arg,), arg.dtype, axes=arg.axes)


def call(name: str, *args: Expr) -> Expr:
    """``T.name(args)`` as a new expression."""
    return Expr("call", name, args, next((a.dtype for a in args if a.dtype), ""), axes=joined(*args))


def cast(dtype: str, text: str, arg: Expr) -> Expr:
    """A conversion to an element type whose source text is ``text``."""
    return Expr("cast", dtype, (arg,), dtype, text=text, axes=arg.axes)


def with_args(expr: Expr, *args: Expr) -> Expr:
    """The same operation on other operands; the expression itself if they are the same."""
    if all(new is old for new, old in zip(args, expr.args, strict=True)):
        return expr
    values = args[1:] if expr.kind == "select" else args
    dtype = expr.dtype if expr.kind in ("cast", "compare", "logic") else next((a.dtype for a in values if a.dtype), "")
    return replace(expr, args=args, node=None, dtype=dtype, axes=joined(*args))


def with_part(expr: Expr, part: Expr, new: Expr) -> Expr:
    """The expression with another one in place of a part."""
    if expr is part:
        return new
    return with_args(expr, *(with_part(arg, part, new) for arg in expr.args)) if expr.args else expr


def same(left: Expr, right: Expr) -> bool:
    """Whether two expressions have the same text."""
    return show(left).replace(" ", "") == show(right).replace(" ", "")
