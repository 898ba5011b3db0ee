"""What the assertions of a factory say of its sizes: ``assert N % 16 == 0``, ``if N % 16: raise ...``."""

from __future__ import annotations

import math

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.source.tree import nodes_of


def multiples(file: FileKernels, located: Located) -> dict[str, int]:
    """Names of the functions around a kernel, each with a number that it is asserted to be a multiple of."""
    found: dict[str, int] = {}
    around = [node for node in file.index.ancestors(located.node) if isinstance(node, cst.FunctionDef)]
    for function in around:
        for node in nodes_of(function, cst.Assert, cst.If):
            if isinstance(node, cst.Assert):
                tests = _conjuncts(node.test)
            elif isinstance(node, cst.If) and node.orelse is None and _raises(node):
                tests = [test for part in _disjuncts(node.test) if (test := _negated(part)) is not None]
            else:
                continue
            for test in tests:
                pair = _multiple(test)
                if pair is not None:
                    found[pair[0]] = math.lcm(found.get(pair[0], 1), pair[1])
    return found


def _raises(node: cst.If) -> bool:
    last = body_of(node)[-1]
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise)


def _conjuncts(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return [*_conjuncts(test.left), *_conjuncts(test.right)]
    return [test]


def _disjuncts(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_disjuncts(test.left), *_disjuncts(test.right)]
    return [test]


def _negated(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``N % 16 == 0`` of ``N % 16 != 0``, ``N % 16 > 0`` and ``N % 16``."""
    if isinstance(test, cst.BinaryOperation):
        left: cst.BaseExpression = test
    elif (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and isinstance(test.comparisons[0].operator, (cst.NotEqual, cst.GreaterThan))
        and _is_zero(test.comparisons[0].comparator)
    ):
        left = test.left
    else:
        return None
    return cst.Comparison(left, [cst.ComparisonTarget(cst.Equal(), cst.Integer("0"))])


def _multiple(test: cst.BaseExpression) -> tuple[str, int] | None:
    """``N`` and 16 of ``N % 16 == 0`` or ``not N % 16``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        rest: cst.BaseExpression = test.expression
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        if not isinstance(only.operator, cst.Equal) or not _is_zero(only.comparator):
            return None
        rest = test.left
    else:
        return None
    if not isinstance(rest, cst.BinaryOperation) or not isinstance(rest.operator, cst.Modulo):
        return None
    if isinstance(rest.left, cst.Name) and isinstance(rest.right, cst.Integer) and rest.right.evaluated_value > 0:
        return rest.left.value, rest.right.evaluated_value
    return None


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.evaluated_value == 0
