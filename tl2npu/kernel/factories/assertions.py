"""What the assertions of a factory say of its parameters: ``assert N % 16 == 0``, ``if N % 16: raise ...``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import conjuncts_of, without_parentheses
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.numbers import is_zero
from tl2npu.source.literals import text_of
from tl2npu.source.tree import nodes_of

_OPPOSITE: Mapping[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.GreaterThan: cst.LessThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
    cst.LessThan: cst.GreaterThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
}


def multiples(file: FileKernels, located: Located) -> dict[str, int]:
    """Names of the functions around a kernel, each with a number that it is asserted to be a multiple of."""
    found: dict[str, int] = {}
    for test in _tests(file, located):
        pair = _multiple(test)
        if pair is not None:
            found[pair[0]] = math.lcm(found.get(pair[0], 1), pair[1])
    return found


def divisions(file: FileKernels, located: Located) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What is asserted to be a multiple of what, of ``assert M % block_M == 0``, each without its own parentheses."""
    rests = (_rest(test) for test in _tests(file, located))
    return [(without_parentheses(r.left), without_parentheses(r.right)) for r in rests if r is not None]


def largest(file: FileKernels, located: Located) -> dict[str, int]:
    """Names of the functions around a kernel, each with the largest value that it is asserted to have."""
    found: dict[str, int] = {}
    for test in _tests(file, located):
        for name, most in _at_most(test):
            found[name] = min(found.get(name, most), most)
    return found


def types(file: FileKernels, located: Located) -> dict[str, str]:
    """Names of the functions around a kernel, each with the element type that it is asserted to have."""
    found: dict[str, str] = {}
    for test in _tests(file, located):
        if isinstance(test, cst.Comparison) and all(type(part.operator) is cst.Equal for part in test.comparisons):
            *names, last = (test.left, *(part.comparator for part in test.comparisons))
            dtype = text_of(last) if isinstance(last, cst.SimpleString) else None
            if isinstance(dtype, str):
                found |= {name.value: plain(dtype) for name in names if isinstance(name, cst.Name)}
    return found


def _tests(file: FileKernels, located: Located) -> Iterator[cst.BaseExpression]:
    """What holds behind the assertions of the functions around a kernel."""
    around = [node for node in file.index.ancestors(located.node) if isinstance(node, cst.FunctionDef)]
    for function in around:
        for node in nodes_of(function, cst.Assert, cst.If):
            if isinstance(node, cst.Assert):
                yield from conjuncts_of(node.test)
            elif isinstance(node, cst.If) and node.orelse is None and _raises(node):
                yield from (test for part in conjuncts_of(node.test, cst.Or) if (test := _negated(part)) is not None)


def _at_most(test: cst.BaseExpression) -> Iterator[tuple[str, int]]:
    """``M`` and 1024 of ``M <= 1024``, ``0 < M < 1025``, ``1024 >= M``."""
    if not isinstance(test, cst.Comparison):
        return
    left = test.left
    for target in test.comparisons:
        right, less = target.comparator, isinstance(target.operator, (cst.LessThan, cst.LessThanEqual))
        if less or isinstance(target.operator, (cst.GreaterThan, cst.GreaterThanEqual)):
            name, number = (left, right) if less else (right, left)
            strict = isinstance(target.operator, (cst.LessThan, cst.GreaterThan))
            if isinstance(name, cst.Name) and isinstance(number, cst.Integer):
                yield name.value, number.evaluated_value - strict
        left = right


def _raises(node: cst.If) -> bool:
    last = body_of(node)[-1]
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise)


def _negated(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``N % 16 == 0`` of ``N % 16 != 0``, ``N % 16 > 0`` and ``N % 16``; ``N <= 64`` of ``N > 64``."""
    only = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
    opposite = _OPPOSITE.get(type(only.operator)) if only is not None and not is_zero(only.comparator) else None
    if isinstance(test, cst.Comparison) and only is not None and opposite is not None:
        return cst.Comparison(test.left, [cst.ComparisonTarget(opposite(), only.comparator)])
    if isinstance(test, cst.BinaryOperation):
        left: cst.BaseExpression = test
    elif (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and isinstance(test.comparisons[0].operator, (cst.NotEqual, cst.GreaterThan))
        and is_zero(test.comparisons[0].comparator)
    ):
        left = test.left
    else:
        return None
    return cst.Comparison(left, [cst.ComparisonTarget(cst.Equal(), cst.Integer("0"))])


def _multiple(test: cst.BaseExpression) -> tuple[str, int] | None:
    """``N`` and 16 of ``N % 16 == 0`` or ``not N % 16``."""
    rest = _rest(test)
    if rest is None:
        return None
    if isinstance(rest.left, cst.Name) and isinstance(rest.right, cst.Integer) and rest.right.evaluated_value > 0:
        return rest.left.value, rest.right.evaluated_value
    return None


def _rest(test: cst.BaseExpression) -> cst.BinaryOperation | None:
    """``N % M`` of ``N % M == 0`` or ``not N % M``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        rest: cst.BaseExpression = test.expression
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        if not isinstance(only.operator, cst.Equal) or not is_zero(only.comparator):
            return None
        rest = test.left
    else:
        return None
    return rest if isinstance(rest, cst.BinaryOperation) and isinstance(rest.operator, cst.Modulo) else None
