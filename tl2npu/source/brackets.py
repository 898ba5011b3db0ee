"""A value that goes over several lines needs brackets where it becomes a statement's own.

An argument of a call may be broken anywhere, since the call's brackets hold it together. Moved out of the call, the
same text is no statement any more.
"""

from __future__ import annotations

import ast
import operator
from typing import cast

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import SubclassesOf

_IS_STATEMENT = SubclassesOf(cst.BaseSuite, cst.BaseStatement, cst.BaseSmallStatement)
_HOLDS = SubclassesOf(cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Expr, cst.Return)


def held_together(node: cst.CSTNode, known: Index, above: cst.CSTNode | None = None) -> cst.CSTNode:
    """The node, with brackets around a value that would break its statement. ``above``: where an expression goes.

    Statements of the tree that is edited, ``known``, are as they should be.
    """
    if _IS_STATEMENT[type(node)] and node in known:
        return node
    if type(node) is cst.SimpleStatementLine or type(node) is cst.IndentedBlock:
        body = [held_together(inner, known) for inner in node.body]
        return node if all(map(operator.is_, body, node.body)) else node.with_changes(body=body)
    if isinstance(node, cst.BaseCompoundStatement):
        block = held_together(node.body, known)
        return node if block is node.body else node.with_changes(body=block)
    if _HOLDS[type(node)]:
        old = cast("cst.Return", node).value
        value = held_together(old, known, node) if old is not None else None
        return node if value is old else node.with_changes(value=value)
    if _HOLDS[type(above)] and isinstance(node, cst.BaseExpression) and _is_broken(node):
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


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
    if "\n" not in text:
        return False
    try:
        return len(ast.parse(text).body) > 1  # `a\n- b` is two statements
    except SyntaxError:
        return True
