"""A small interpreter for the statements of a factory, with integers, floats, strings and bools.

What it does not know it forgets. Nothing of the user's code is executed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.factories import shapes
from tl2npu.kernel.factories.command_line import CommandLine, is_parser, parsed, with_option
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.source.literals import number_of, text_of
from tl2npu.source.names import Names
from tl2npu.source.signs import ARITHMETIC, COMPARISONS, COMPUTED, sign_of

Known = dict[str, object]

_ROUND: Mapping[str, Callable[[float], int]] = {"int": int, "floor": math.floor, "ceil": math.ceil}


class Unknown(Exception):
    """The value of an expression cannot be told."""


UNKNOWN = object()
"""A value that is given, but cannot be told."""


def evaluate(node: cst.BaseExpression, known: Known, names: Names) -> object:
    """The Python value of an expression; raises :class:`Unknown`."""
    if type(node) is cst.Name:
        return _name(node.value, known)
    if type(node) is cst.SimpleString:
        return text_of(node)
    if type(node) is cst.Integer or type(node) is cst.Float:
        return number_of(node)
    if type(node) is cst.BinaryOperation:
        return _binary(node, known, names)
    if type(node) is cst.Call:
        return _call(node, known, names)
    if type(node) is cst.Attribute:
        return _attribute(node, known, names)
    if type(node) is cst.UnaryOperation:
        return _unary(node, known, names)
    if type(node) is cst.Comparison and len(node.comparisons) == 1:
        target = node.comparisons[0]
        return _compare(target.operator, evaluate(node.left, known, names), target.comparator, known, names)
    if type(node) is cst.BooleanOperation:
        left = evaluate(node.left, known, names)
        taken = bool(left) == isinstance(node.operator, cst.Or)
        return left if taken else evaluate(node.right, known, names)
    if type(node) is cst.IfExp:
        return evaluate(node.body if evaluate(node.test, known, names) else node.orelse, known, names)
    if type(node) is cst.Tuple or type(node) is cst.List:
        return tuple(_elements(node.elements, known, names))
    if type(node) is cst.Subscript:
        return _item(node, known, names)
    raise Unknown


def _elements(nodes: Sequence[cst.BaseElement | cst.Arg], known: Known, names: Names) -> Iterator[object]:
    """The values of the elements of a sequence or of positional arguments; ``*shape`` is as many as it has."""
    for node in nodes:
        value = value_of(node.value, known, names)
        if type(node) is not cst.StarredElement and not (type(node) is cst.Arg and node.star):
            yield value
        elif isinstance(value, tuple):
            yield from value
        else:
            raise Unknown


def _item(node: cst.Subscript, known: Known, names: Names) -> object:
    holder, index = evaluate(node.value, known, names), node.slice[0].slice
    place = evaluate(index.value, known, names) if isinstance(index, cst.Index) and len(node.slice) == 1 else None
    if not isinstance(holder, tuple) or not isinstance(place, int) or not -len(holder) <= place < len(holder):
        raise Unknown
    if holder[place] is UNKNOWN:
        raise Unknown
    return holder[place]


def _tensor(node: cst.Call, known: Known, names: Names) -> object:
    """What a call gives of tensors: a new one, one of the same shape, or its sizes; None for another call."""
    if shapes.FOLLOWED not in known:
        return None
    args = [arg for arg in node.args if arg.keyword is None]
    holder = node.func.value if isinstance(node.func, cst.Attribute) else None
    if isinstance(holder, (cst.Name, cst.Call)):
        tensor = value_of(holder, known, names)
        if isinstance(tensor, shapes.Shaped) and isinstance(node.func, cst.Attribute):
            return tensor.asked(node.func.attr.value, [value_of(arg.value, known, names) for arg in args])
    made = shapes.maker(names.resolve(node.func) or "")
    words = {arg.keyword.value: value_of(arg.value, known, names) for arg in node.args if arg.keyword is not None}
    return None if made is None else made(list(_elements(args, known, names)), words)


def value_of(node: cst.BaseExpression, known: Known, names: Names) -> object:
    """The same, or :data:`UNKNOWN`."""
    try:
        return evaluate(node, known, names)
    except Unknown:
        return UNKNOWN


def _name(name: str, known: Known) -> object:
    if name in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[name]
    if name not in known:
        raise Unknown
    return known[name]


def _attribute(node: cst.Attribute, known: Known, names: Names) -> object:
    holder = node.value
    options = known.get(holder.value) if isinstance(holder, cst.Name) else None
    if isinstance(holder, cst.Call):
        options = parsed(holder, known, lambda inner: value_of(inner, known, names))
    if isinstance(options, CommandLine):
        if not options.is_parsed or node.attr.value not in options.values:
            raise Unknown
        return options.values[node.attr.value]
    if node.attr.value == "shape":
        tensor = evaluate(holder, known, names)
        if isinstance(tensor, shapes.Shaped):
            return tensor.shape
        raise Unknown
    return _dtype(node, names)


def _dtype(node: cst.Attribute, names: Names) -> str:
    """``T.float16``, the element type, by its name."""
    module, _, name = (names.resolve(node) or "").rpartition(".")
    if module != "tilelang.language" or name not in ITEM_SIZE:
        raise Unknown
    return name


def _unary(node: cst.UnaryOperation, known: Known, names: Names) -> object:
    value = evaluate(node.expression, known, names)
    if isinstance(node.operator, cst.Not):
        return not value
    if isinstance(value, (int, float)) and isinstance(node.operator, (cst.Minus, cst.Plus)):
        return -value if isinstance(node.operator, cst.Minus) else value
    raise Unknown


def _binary(node: cst.BinaryOperation, known: Known, names: Names) -> object:
    left, right = evaluate(node.left, known, names), evaluate(node.right, known, names)
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        raise Unknown
    sign = sign_of(node.operator)
    if sign in ARITHMETIC:
        try:
            return COMPUTED[sign](left, right)
        except (ZeroDivisionError, OverflowError):
            raise Unknown from None
    small = isinstance(left, int) and isinstance(right, int) and 0 <= right <= 64
    if not small or sign not in ("**", "<<", ">>") or (sign == "**" and abs(left) > 1024):
        raise Unknown
    return COMPUTED[sign](left, right)


def _compare(head: cst.BaseCompOp, left: object, right_node: cst.BaseExpression, known: Known, names: Names) -> bool:
    if isinstance(head, (cst.In, cst.NotIn)) and isinstance(right_node, (cst.Tuple, cst.List, cst.Set)):
        found = any(left == evaluate(item.value, known, names) for item in right_node.elements)
        return found == isinstance(head, cst.In)
    right = evaluate(right_node, known, names)
    if isinstance(head, (cst.Is, cst.IsNot)):
        return (left is right) == isinstance(head, cst.Is)
    sign = sign_of(head)
    ordered = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if sign not in COMPARISONS or (sign not in ("==", "!=") and not ordered):
        raise Unknown
    return bool(COMPUTED[sign](left, right))


def _call(node: cst.Call, known: Known, names: Names) -> object:
    if isinstance(node.func, cst.Attribute):
        if is_parser(names.resolve(node.func)):
            return CommandLine()
        options = parsed(node, known, lambda inner: value_of(inner, known, names))
        if options is not None:
            return options
    found = _tensor(node, known, names)
    if found is not None:
        return found
    if any(arg.keyword is not None or arg.star for arg in node.args):
        raise Unknown
    resolved = names.resolve(node.func) or ""
    bare = node.func.value if isinstance(node.func, cst.Name) and node.func.value not in known else ""
    short = resolved.rsplit(".", 1)[-1] if resolved.startswith(("tilelang.", "math.")) else bare
    values = [evaluate(arg.value, known, names) for arg in node.args]
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(numbers) != len(values):
        raise Unknown
    whole = [int(value) for value in numbers]
    if short in ("ceildiv", "cdiv") and len(whole) == 2 and whole[1]:
        return -(-whole[0] // whole[1])
    if short in ("floordiv", "floormod") and len(whole) == 2 and whole[1]:
        return whole[0] // whole[1] if short == "floordiv" else whole[0] % whole[1]
    if short == "next_power_of_2" and len(whole) == 1:
        return 1 << max(0, whole[0] - 1).bit_length()
    if short in ("min", "max") and numbers:
        return min(numbers) if short == "min" else max(numbers)
    if short == "abs" and len(numbers) == 1:
        return abs(numbers[0])
    if short in _ROUND and len(numbers) == 1:
        return _ROUND[short](numbers[0])
    raise Unknown


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
            except Unknown:
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
    except Unknown:
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
            except Unknown:
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
