"""A copy of some code in which names stand for other expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.kernel.bindings import target_names
from tl2npu.kernel.expressions import code
from tl2npu.passes.writing.fold import rebuild
from tl2npu.source.tree import child_fields, names_in, nodes_of, walk

_CLOSED = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BaseNumber, cst.SimpleString, cst.List, cst.Dict)
_OPEN_PARENTS = (
    *(cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget),
    *(cst.Attribute, cst.Subscript, cst.Call, cst.IfExp, cst.StarredElement, cst.Await),
)


class Unclear(Exception):
    """A use of a name that cannot be replaced; carries the node."""

    def __init__(self, node: cst.CSTNode, why: str) -> None:
        super().__init__(why)
        self.node = node


def substituted(node: cst.CSTNode, values: Mapping[str, cst.BaseExpression]) -> cst.CSTNode:
    """The node with every name in ``values`` replaced; raises :class:`Unclear`. Equal parts stay the same objects."""
    if not any(name.value in values for name in names_in(node)):
        return node
    if type(node) is cst.Name:
        new = values[node.value]
        if node.lpar and type(new) is cst.Name:
            return new.with_changes(lpar=node.lpar, rpar=node.rpar)
        return new
    if type(node) is cst.Subscript and type(node.value) is cst.Name and node.value.value in values:
        target = values[node.value.value]
        inner = node.with_changes(
            slice=[cst.ensure_type(substituted(e, values), cst.SubscriptElement) for e in node.slice]
        )
        if type(target) is cst.Subscript:
            raise Unclear(node, f"`{node.value.value}` is a part of a buffer and is indexed here")
        return inner.with_changes(value=closed(target))
    if type(node) is cst.BinaryOperation:
        left, right = substituted(node.left, values), substituted(node.right, values)
        assert isinstance(left, cst.BaseExpression)
        assert isinstance(right, cst.BaseExpression)
        return _operation(node, left, right)
    if isinstance(node, (cst.Lambda, cst.BaseComp)) and _binds(node) & set(values):
        raise Unclear(node, "a lambda or comprehension binds the same name")
    changes: dict[str, cst.CSTNode | list[cst.CSTNode]] = {}
    for field in child_fields(type(node)):
        value = getattr(node, field)
        if isinstance(value, cst.CSTNode):
            if (type(node) is cst.Attribute and field == "attr") or (type(node) is cst.Arg and field == "keyword"):
                continue
            changes[field] = _child(node, value, values)
        elif isinstance(value, (tuple, list)):
            changes[field] = [_child(node, item, values) for item in value]
    return node.with_changes(**changes)


def _operation(node: cst.BinaryOperation, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BaseExpression:
    """The operation with new operands; a 0 that was put in does not stay."""
    if type(node.operator) is cst.Add and not node.lpar:
        if left is not node.left and code(left) == "0":
            return right
        if right is not node.right and code(right) == "0":
            return left
    return rebuild(node, left, right)


def _child(parent: cst.CSTNode, node: cst.CSTNode, values: Mapping[str, cst.BaseExpression]) -> cst.CSTNode:
    new = substituted(node, values)
    if new is not node and type(node) is cst.Name and isinstance(new, cst.BaseExpression):
        if isinstance(parent, _OPEN_PARENTS):
            return closed(new)
        place = isinstance(new, (cst.Name, cst.Subscript, cst.Attribute))
        if isinstance(parent, (cst.AugAssign, cst.AssignTarget)) and not place:
            raise Unclear(node, f"`{node.value}` is assigned to")
    return new


def closed(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression as an operand: in parentheses unless it needs none."""
    if node.lpar or (isinstance(node, _CLOSED) and not (isinstance(node, cst.BaseNumber) and "-" in str(node))):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _binds(node: cst.Lambda | cst.BaseComp) -> set[str]:
    if type(node) is cst.Lambda:
        return {param.name.value for param in node.params.params}
    return {name.value for part in nodes_of(node, cst.CompFor) for name in names_in(part.target)}


def reads(node: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """Every use of a name in some code."""
    return (found for found in names_in(node) if found.value == name)


def loop_targets(node: cst.CSTNode) -> set[str]:
    """Names that are only bound as variables of loops below a node."""
    looped = {name.value for found in nodes_of(node, cst.For) for name in names_in(found.target)}
    return looped - {name for found in walk(node) if type(found) is not cst.For for name in _bound_by(found)}


def bound_names(node: cst.CSTNode) -> set[str]:
    """Every name that some code binds."""
    return {name for found in walk(node) for name in _bound_by(found)}


def _bound_by(node: cst.CSTNode) -> set[str]:
    if isinstance(node, (cst.For, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr)):
        return target_names(node.target)
    if type(node) is cst.FunctionDef:
        return {node.name.value}
    return target_names(node.name) if type(node) is cst.AsName else set()
