"""A small interpreter for the statements of a factory, with integers, floats, strings and bools.

What it does not know it forgets. Nothing of the user's code is executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.factories import shapes
from tl2npu.kernel.factories.command_line import CommandLine, is_parser, parsed, with_option
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.source.constants import UNKNOWN, Evaluator, Expression, NoValue, Reference, item
from tl2npu.source.names import Names

Known = dict[str, object]

_FUNCTIONS: Mapping[tuple[str, int], Callable[..., object]] = {
    **dict.fromkeys((("ceildiv", 2), ("cdiv", 2)), lambda one, other: -(-int(one) // int(other))),
    ("floordiv", 2): lambda one, other: int(one) // int(other),
    ("floormod", 2): lambda one, other: int(one) % int(other),
    ("next_power_of_2", 1): lambda number: 1 << max(0, int(number) - 1).bit_length(),
    ("abs", 1): abs,
    ("int", 1): int,
    ("floor", 1): math.floor,
    ("ceil", 1): math.ceil,
}
"""Functions of numbers, by name and number of arguments."""


def evaluate(node: cst.BaseExpression, known: Known, names: Names) -> object:
    """The Python value of an expression; raises :class:`NoValue`."""
    return _Factory(known, names).value(node)


def value_of(node: cst.BaseExpression, known: Known, names: Names) -> object:
    """The same, or :data:`UNKNOWN`."""
    return _Factory(known, names).element(node)


class _Factory(Evaluator):
    """Knows the names of a factory, options of the command line, sizes of tensors, and functions of numbers."""

    def __init__(self, known: Known, names: Names) -> None:
        self.known, self.names = known, names

    def element(self, node: Expression) -> object:
        try:
            return self.value(node)
        except NoValue:
            return UNKNOWN

    def reference(self, node: Reference) -> object:
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.Name) and node.value in self.known:
            return self.known[node.value]
        raise NoValue

    def _attribute(self, node: cst.Attribute) -> object:
        holder = node.value
        options = self.known.get(holder.value) if isinstance(holder, cst.Name) else None
        if isinstance(holder, cst.Call):
            options = parsed(holder, self.known, self.element)
        if isinstance(options, CommandLine):
            return item(options.values if options.is_parsed else {}, node.attr.value)
        if node.attr.value == "shape":
            tensor = self.value(holder)
            if isinstance(tensor, shapes.Shaped):
                return tensor.shape
            raise NoValue
        module, _, name = (self.names.resolve(node) or "").rpartition(".")
        if module != "tilelang.language" or name not in ITEM_SIZE:
            raise NoValue
        return name  # ``T.float16``, the element type

    def call(self, node: cst.Call | ast.Call) -> object:
        assert isinstance(node, cst.Call)
        if isinstance(node.func, cst.Attribute):
            if is_parser(self.names.resolve(node.func)):
                return CommandLine()
            options = parsed(node, self.known, self.element)
            if options is not None:
                return options
        found = self._tensor(node)
        if found is not None:
            return found
        if any(arg.keyword is not None or arg.star for arg in node.args):
            raise NoValue
        resolved = self.names.resolve(node.func) or ""
        bare = node.func.value if isinstance(node.func, cst.Name) and node.func.value not in self.known else ""
        short = resolved.rsplit(".", 1)[-1] if resolved.startswith(("tilelang.", "math.")) else bare
        numbers = [self.value(arg.value) for arg in node.args]
        if not numbers or not all(isinstance(value, (int, float)) for value in numbers):
            raise NoValue
        if short in ("min", "max"):
            return min(numbers) if short == "min" else max(numbers)
        try:
            return _FUNCTIONS[short, len(numbers)](*numbers)
        except (KeyError, ArithmeticError, ValueError):
            raise NoValue from None

    def _tensor(self, node: cst.Call) -> object:
        """What a call gives of tensors: a new one, one of the same shape, or its sizes; None for another call."""
        if shapes.FOLLOWED not in self.known:
            return None
        args = [arg for arg in node.args if arg.keyword is None]
        holder = node.func.value if isinstance(node.func, cst.Attribute) else None
        if isinstance(holder, (cst.Name, cst.Call)):
            tensor = self.element(holder)
            if isinstance(tensor, shapes.Shaped) and isinstance(node.func, cst.Attribute):
                return tensor.asked(node.func.attr.value, [self.element(arg.value) for arg in args])
        made = shapes.maker(self.names.resolve(node.func) or "")
        words = {arg.keyword.value: self.element(arg.value) for arg in node.args if arg.keyword is not None}
        return None if made is None else made(list(self.items(args)), words)


def run(statements: Sequence[cst.CSTNode], known: Known, names: Names) -> bool:
    """Carry out assignments and decidable branches, changing ``known``; False after a ``return`` or ``raise``."""
    for statement in statements:
        if type(statement) is cst.SimpleStatementLine:
            for small in statement.body:
                if type(small) is cst.Return or type(small) is cst.Raise:
                    return False
                _assign(small, known, names)
                if type(small) is cst.Assert:
                    _assert(small, known, names)
                elif type(small) is cst.Expr and type(small.value) is cst.Call:
                    _option(small.value, known, names)
        elif type(statement) is cst.If:
            if not _branch(statement, known, names):
                return False
        elif isinstance(statement, cst.BaseCompoundStatement):
            _forget(statement, known)
    return True


def _assert(small: cst.CSTNode, known: Known, names: Names) -> None:
    """``assert dim == 128``: behind it an unknown ``dim`` is 128."""
    test = small.test if type(small) is cst.Assert else None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return
    target = test.comparisons[0]
    if not isinstance(target.operator, cst.Equal):
        return
    for name, value in ((test.left, target.comparator), (target.comparator, test.left)):
        if isinstance(name, cst.Name) and name.value not in known:
            try:
                known[name.value] = evaluate(value, known, names)
            except NoValue:
                continue
            return


def _option(call: cst.Call, known: Known, names: Names) -> None:
    """``parser.add_argument(...)``: a default that cannot be told is an option that is not known."""
    found = with_option(call, known, lambda node: value_of(node, known, names))
    if found is not None:
        values = {name: value for name, value in found[1].values.items() if value is not UNKNOWN}
        known[found[0]] = CommandLine(values)


def _branch(statement: cst.If, known: Known, names: Names) -> bool:
    try:
        taken = bool(evaluate(statement.test, known, names))
    except NoValue:
        _forget(statement, known)
        return True
    if taken:
        return run(body_of(statement), known, names)
    if isinstance(statement.orelse, cst.If):
        return _branch(statement.orelse, known, names)
    return run(body_of(statement.orelse), known, names) if statement.orelse is not None else True


def _assign(small: cst.CSTNode, known: Known, names: Names) -> None:
    made: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    if type(small) is cst.Assign:
        for item in small.targets:
            made += pairs(item.target, small.value)
    elif type(small) is cst.AnnAssign and small.value is not None:
        made = [(small.target, small.value)]
    found: Known = {}
    for target, value in made:
        if isinstance(target, cst.Name):
            try:
                found[target.value] = evaluate(value, known, names)
            except NoValue:
                continue
        elif isinstance(target, (cst.Tuple, cst.List)):
            found |= _unpacked(target, value, known, names)
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            known.pop(target.value.value, None)  # args.block = 64
    _forget(small, known)
    known.update(found)


def _unpacked(target: cst.Tuple | cst.List, value: cst.BaseExpression, known: Known, names: Names) -> Known:
    """``M, N = x.shape``: what is known of either."""
    found = value_of(value, known, names)
    targets = [element.value.value for element in target.elements if isinstance(element.value, cst.Name)]
    if not isinstance(found, tuple) or not len(found) == len(targets) == len(target.elements):
        return {}
    return {name: item for name, item in zip(targets, found, strict=True) if item is not UNKNOWN}


def pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The single assignments of ``a, b = x, y``; any other assignment as it stands."""
    if type(target) is not cst.Tuple and type(target) is not cst.List:
        return [(target, value)]
    call = value.func if type(value) is cst.Call else None
    if type(call) is cst.Attribute and call.attr.value == "parse_known_args":
        return [(target.elements[0].value, value)]  # args, rest = parser.parse_known_args()
    if (type(value) is cst.Tuple or type(value) is cst.List) and len(target.elements) == len(value.elements):
        return [(a.value, b.value) for a, b in zip(target.elements, value.elements, strict=True)]
    return [(target, value)]


_bound = lru_cache(maxsize=4096)(assigned_names)
"""Remembered by node: a factory is run for every configuration of its autotuner."""


def _forget(node: cst.CSTNode, known: Known) -> None:
    for name in _bound(node):
        known.pop(name, None)
