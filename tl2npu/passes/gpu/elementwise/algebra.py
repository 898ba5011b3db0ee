"""Expressions in the form that vector instructions have: what is equal, written with other operations.

Numbers and row vectors to the right, base two as base e with the factor put into a number, functions without an
instruction by others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.expressions import code
from tl2npu.passes.gpu.elementwise import functions
from tl2npu.passes.gpu.elementwise.reading import rebuilt
from tl2npu.passes.gpu.elementwise.tree import Expr, binary, call, literal, negative, number, parsed, same, show
from tl2npu.passes.gpu.elementwise.wholes import is_power_of_two, is_rounded_log2
from tl2npu.source.signs import sign_of
from tl2npu.source.tree import mentioned
from tl2npu.tile import expr as tile
from tl2npu.tile.meaning import parts_of

LN_2 = math.log(2.0)
LOG2_E = 1.0 / LN_2
_NEGATED = " * -1.0"
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_CLOSE = 1e-6
FOLDED = "__without_log2e"
"""Stands behind a folded name where its factor has been used: without it the name means its old value."""


class Algebra:
    """Rewrites expressions; ``folded`` are the names whose definition loses its factor log2(e).

    ``constants`` are the values of names that stand for a plain number, ``negative`` names that a call makes negative.
    ``seen`` holds the codes of what was rewritten.
    """

    def __init__(
        self,
        folded: frozenset[str] = frozenset(),
        constants: Mapping[str, float] | None = None,
        negative: frozenset[str] = frozenset(),
    ) -> None:
        self.folded = folded
        self.constants = constants or {}
        self.negative = negative
        self.seen: set[str] = set()

    def simplify(self, expr: Expr, alone: bool = True) -> Expr:
        """The expression with everything below it rewritten; the same object if nothing was.

        ``alone``: it is no operand beside a tile or a vector.
        """
        if not expr.args:
            return expr
        if is_power_of_two(expr):
            self.seen.add("TL112")
            return call(functions.POWER_OF_TWO, self.simplify(expr.args[-1]))
        if expr.kind == "call" and is_rounded_log2(expr):
            self.seen.add("TL112")
            return call(functions.LOG2_ROUNDED[expr.name], self.simplify(expr.args[0].args[0]))
        inside = expr.kind != "binary" or (alone and any(arg.is_number for arg in expr.args))
        args = [self.simplify(arg, inside) for arg in expr.args]
        if expr.kind == "binary" and (summed := _with_constant(expr, *args)) is not None:
            return self._binary(summed) if summed.kind == "binary" else summed
        found = rebuilt(expr, *args)
        if found.kind == "call":
            return self._call(found)
        return self._binary(found, alone) if found.kind == "binary" else found

    # -- functions --------------------------------------------------------------------------------------------------

    def _call(self, expr: Expr) -> Expr:
        name, args = expr.name, expr.args
        first = args[0]
        formula = parts_of(name)
        if formula is not None and formula.fits(is_leaf=first.kind in ("load", "number")):
            self.seen.add("TL142" if functions.without_base(name) else "TL152")
            return self.simplify(self.composed(formula.value, {"x": first}))
        if name == "abs" and element_types.is_integer(first.dtype):  # for floats alone there is an instruction
            self.seen.add("TL152")
            return self._call(call("max", first, binary("*", first, number("-1"))))
        if name == "clamp" and len(args) == 3:
            return self._call(call("min", self._call(call("max", first, args[1])), args[2]))
        if name == "pow" and len(args) == 2:
            return self._power(expr)
        if name in ("max", "min") and len(args) == 2 and not args[0].axes and args[1].axes:
            return call(name, args[1], args[0])
        return expr

    def composed(self, part: tile.Expr, known: Mapping[str, Expr]) -> Expr:
        """The expression of a formula, of the values that its names have."""
        if isinstance(part, tile.Load):
            return known[part.buffer]
        if isinstance(part, tile.Const):
            return number(float(part.value))
        assert isinstance(part, tile.Call)
        sides = [self.composed(arg, known) for arg in part.args]
        if part.op == "mul" and any(side.value is not None for side in sides):
            value, factor = sides if sides[1].value is not None else reversed(sides)
            return self.times(value, factor.value or 0.0)
        return binary(SIGNS[part.op], *sides) if part.op in SIGNS else call(part.op, *sides)

    def _power(self, expr: Expr) -> Expr:
        base, exponent = expr.args
        value = exponent.value
        if value == 1.0:
            return base
        if value in (2.0, 3.0) and base.kind == "load":
            self.seen.add("TL152")
            square = binary("*", base, base)
            return square if value == 2.0 else binary("*", square, base)
        if value in (0.5, -0.5):
            self.seen.add("TL152")
            return call("sqrt" if value == 0.5 else "rsqrt", base)
        if value == -1.0:
            self.seen.add("TL152")
            return binary("/", number("1.0"), base)
        return expr

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def _binary(self, expr: Expr, alone: bool = False) -> Expr:
        left, right = expr.args
        sign = expr.name
        if alone and left.axes == {"r"} and right.axes == {"c"}:
            together = self.factored(expr, alone) if sign in ("+", "-") else None
            return expr if together is None else self._binary(together)  # the row's is spread
        for one, other in ((left, right), (right, left)) if sign == "*" else ():
            if other.name == "/" and other.args[0].value == 1.0 and one.axes == other.args[1].axes:
                self.seen.add("TL141")  # a vector instruction has no number on the left
                return self._binary(binary("/", one, other.args[1]))
        if sign in ("+", "-") and "c" not in right.axes and right.kind not in ("load", "number"):
            together = self.factored(expr, alone)
            if together is not None:
                self.seen.add("TL141")
                return self._binary(together)
        if sign in ("+", "-") and right.kind == "negative" and "c" not in right.axes:
            self.seen.add("TL141")
            return self._binary(binary("-" if sign == "+" else "+", left, right.args[0]))
        if (other := binary(sign, left, right)).name != sign:
            self.seen.add("TL141")
            return self._binary(other)
        if sign == "-" and right.is_number and self.negative & mentioned(parsed(show(right))):
            self.seen.add("TL749")
            return self._binary(binary("+", left, negative(right)))
        if "c" in left.axes or "c" not in right.axes:
            return expr
        if sign in ("+", "*"):
            self.seen.add("TL141")
            return binary(sign, right, left)
        if sign == "-":
            self.seen.add("TL141")
            return binary("+", self.times(right, -1.0), left)
        return expr

    def factored(self, expr: Expr, alone: bool = False) -> Expr | None:
        """``a * f - b * f`` as ``(a - b) * f``; None if there is no common number."""
        left, right = expr.args
        for a, f in _products(left):
            for b, g in _products(right):
                if same(f, g):
                    return binary("*", self._binary(binary(expr.name, a, b), alone), f)
        return None

    def times(self, expr: Expr, factor: float) -> Expr:
        """``expr * factor``, the factor put into a number that is there already where possible."""
        if element_types.is_integer(expr.dtype):  # a factor with a point would make it float32
            return binary("*", expr, number(str(int(factor))))
        found = self._absorbed(expr, factor)
        if found is not None:
            return found
        return binary("*", expr, number(_short(factor)))

    def _absorbed(self, expr: Expr, factor: float) -> Expr | None:
        if expr.kind == "number":
            return self._scaled(expr, factor)
        if expr.kind == "negative":
            inner = self._absorbed(expr.args[0], factor)
            return None if inner is None else negative(inner)
        if expr.kind != "binary":
            return None
        left, right = expr.args
        if expr.name == "*":
            for value, other in ((right, left), (left, right)):
                if value.is_number:
                    scaled = self._scaled(value, factor)
                    return other if scaled.value == 1.0 else binary("*", other, scaled)
            for value, other in ((right, left), (left, right)):
                inner = self._absorbed(value, factor)
                if inner is not None:
                    return binary("*", other, inner) if value is right else binary("*", inner, other)
        if expr.name == "/" and (inner := self._absorbed(left, factor)) is not None:
            return binary("/", inner, right)
        if expr.name in ("+", "-"):
            together = self.factored(expr)
            if together is not None:
                return self._absorbed(together, factor)
            parts = [self._absorbed(arg, factor) for arg in expr.args]
            if parts[0] is None and parts[1] is None:
                return None
            whole = [
                binary("*", arg, number(_short(factor))) if part is None else part
                for part, arg in zip(parts, expr.args, strict=True)
            ]
            found = binary(expr.name, whole[0], whole[1])
            if None not in parts or _size(found) <= _size(expr) or FOLDED in show(found):
                return found
        return None

    def _scaled(self, value: Expr, factor: float) -> Expr:
        if value.value is not None:
            product = value.value * factor
            whole = round(product)
            return number(float(whole) if abs(product - whole) < _CLOSE * abs(product) else _short(product))
        if value.text in self.folded and factor == LN_2:
            return number(value.text + FOLDED, dynamic=value.dynamic)
        base = value.text.removesuffix(_NEGATED)
        known = self.constants.get(base, 0.0) * (factor if base == value.text else -factor)
        if abs(abs(known) - 1.0) < _CLOSE:
            return number("1.0" if known > 0 else "-1.0")
        rest = without_factor(value.text, 1.0 / factor) if factor > 0 else None
        if rest is not None:
            return number(rest, dynamic=value.dynamic)
        return number(f"{show(value, 20)} * {_short(factor)}", dynamic=value.dynamic)


def _with_constant(expr: Expr, left: Expr, right: Expr) -> Expr | None:
    """``(y - 1) + 1`` as ``y`` where the formula of a function ends in the first number, such as ``tanh``: that is
    nearer to what the author wrote, which has one rounding. A sum of the author keeps its order."""
    function, sides = ((expr.args[0], (left, right)), (expr.args[1], (right, left)))[expr.args[1].kind == "call"]
    formula, constant = sides
    if expr.name not in "+-" or function.kind != "call" or constant.value is None:
        return None
    if formula.kind != "binary" or formula.name not in "+-" or formula.args[1].value is None:
        return None
    rest, own = formula.args[0], formula.args[1].value * (1 if formula.name == "+" else -1)
    if expr.name == "-" and function is expr.args[1]:
        return binary("-", number(constant.value - own), rest)
    total = own + (constant.value if expr.name == "+" else -constant.value)
    return rest if total == 0.0 else binary("+" if total > 0 else "-", rest, number(abs(total)))


def _size(expr: Expr) -> int:
    return sum(part.kind == "binary" for part in expr.walk())


def _products(expr: Expr) -> list[tuple[Expr, Expr]]:
    """``(rest, number)`` for ``rest * number`` and ``number * rest``, also below a minus sign."""
    if expr.kind == "negative":
        return [(negative(rest), factor) for rest, factor in _products(expr.args[0])]
    if expr.kind != "binary" or expr.name != "*":
        return []
    left, right = expr.args
    found = [(left, right)] if right.is_number else []
    found += [(right, left)] if left.is_number else []
    for rest, factor in _products(left) if left.kind in ("negative", "binary") else []:
        found.append((binary("*", rest, right), factor))
    return found


def _short(value: float) -> str:
    return repr(float(value))


def factors(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The factors of a product, left to right."""
    if isinstance(node, cst.BinaryOperation) and sign_of(node.operator) == "*":
        return [*factors(node.left), *factors(node.right)]
    return [node]


@lru_cache(maxsize=1024)
def without_factor(text: str, factor: float) -> str | None:
    """The text of a product without its literal factor of that value; None if it has none or is nothing else."""
    if "*" not in text or not any(map(str.isdigit, text)):
        return None  # no product with a number in it
    try:
        parts = factors(cst.parse_expression(text))
    except cst.ParserSyntaxError:
        return None
    for position, part in enumerate(parts):
        value = literal(code(part))
        if value is not None and len(parts) > 1 and abs(value - factor) < _CLOSE * abs(factor):
            rest = parts[:position] + parts[position + 1 :]
            return " * ".join(code(one) for one in rest)
    return None
