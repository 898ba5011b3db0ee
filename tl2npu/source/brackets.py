"""A value that goes over several lines needs brackets where it becomes a statement's own.

An argument of a call may be broken anywhere, since the call's brackets hold it together. Moved out of the call, the
same text is no statement any more.
"""

from __future__ import annotations

import ast
import operator
from typing import TypeVar

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import SubclassesOf

Node = TypeVar("Node", bound=cst.CSTNode)

_IS_STATEMENT = SubclassesOf(cst.BaseSuite, cst.BaseStatement, cst.BaseSmallStatement)
_IS_PART = SubclassesOf(cst.BaseExpression, cst.BaseElement, cst.BaseSlice, cst.SubscriptElement, cst.Arg)
_HELD: dict[type, str] = {
    cst.Assign: "value",
    cst.AugAssign: "value",
    cst.AnnAssign: "value",
    cst.Expr: "value",
    cst.Return: "value",
    cst.Assert: "test",
    cst.If: "test",
    cst.While: "test",
    cst.For: "iter",
    cst.WithItem: "item",
}
"""What of a statement ends with its line: the field that holds it."""


def held_together(node: cst.CSTNode, known: Index, above: cst.CSTNode | None = None) -> cst.CSTNode:
    """The node, with brackets around a value that would break its statement. ``above``: where an expression goes.

    Statements of the tree that is edited, ``known``, are as they should be.
    """
    if _IS_STATEMENT[type(node)] and node in known:
        return node
    if type(node) is cst.SimpleStatementLine or type(node) is cst.IndentedBlock:
        body = [held_together(inner, known) for inner in node.body]
        return node if all(map(operator.is_, body, node.body)) else node.with_changes(body=body)
    node = held(node)
    if isinstance(node, (cst.BaseCompoundStatement, cst.Else)):
        blocks = {field: getattr(node, field, None) for field in ("body", "orelse")}
        new = {field: held_together(block, known) for field, block in blocks.items() if block is not None}
        return node if all(new[field] is blocks[field] for field in new) else node.with_changes(**new)
    if type(above) in _HELD and isinstance(node, cst.BaseExpression) and _is_broken(node):
        return _bracketed(node)
    return node


def held(node: Node) -> Node:
    """A statement whose value goes over several lines has brackets around it."""
    if isinstance(node, cst.With) and not isinstance(node.lpar, cst.LeftParen):
        items = [held(item) for item in node.items]
        return node if all(map(operator.is_, items, node.items)) else node.with_changes(items=items)
    field = _HELD.get(type(node))
    value = getattr(node, field) if field is not None else None
    if field is None or value is None or not _is_broken(value):
        return node
    return node.with_changes(**{field: _bracketed(value)})


def one_piece(node: cst.CSTNode, text: str) -> str:
    """The text of an expression, or of a part of one, as it may stand anywhere: on one line where brackets that are not
    its own held its lines together, and in brackets where a comment or a string needs the lines.
    """
    if "\n" not in text or not _IS_PART[type(node)] or not _falls_apart(text):
        return text
    if not any(mark in text for mark in ("#", '"""', "'''")):
        return " ".join(line.strip() for line in text.splitlines())
    return f"({text})" if isinstance(node, cst.BaseExpression) else text


def _falls_apart(text: str) -> bool:
    """True for an expression that would be no single one if it stood in no brackets: `a\\n- b` is two statements."""
    try:
        return len(ast.parse(text).body) > 1
    except SyntaxError:
        return True


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_closed(node: cst.BaseExpression) -> bool:
    """True for `a.b(...)[...]`, whose brackets hold what is in them together; it spares most nodes to be printed."""
    front: cst.BaseExpression | None = node
    while front is not None and not front.lpar and type(front) is not cst.Name:
        front = _in_front(front)
    return front is not None


def _in_front(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the brackets at the end of an expression, or the name there, directly follow."""
    if type(node) is cst.Call:
        return node.func if node.whitespace_after_func.empty else None
    if type(node) is cst.Subscript:
        return node.value if node.whitespace_after_value.empty else None
    if type(node) is cst.Attribute:
        return node.value if _is_tight(node.dot) else None
    return None


def _is_tight(dot: cst.Dot) -> bool:
    return dot.whitespace_before.empty and dot.whitespace_after.empty


def _is_broken(node: cst.BaseExpression) -> bool:
    if node.lpar or isinstance(node, (cst.Name, cst.BaseNumber)) or _is_closed(node):
        return False
    text = cst.Module(body=()).code_for_node(node)
    return "\n" in text and _falls_apart(text)
