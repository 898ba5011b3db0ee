"""A value that goes over several lines needs brackets where it becomes a statement's own.

An argument of a call may be broken anywhere, since the call's brackets hold it together. Moved out of the call, the
same text is no statement any more.
"""

from __future__ import annotations

import ast
import operator

import libcst as cst

from tl2npu.source.index import Index

_HOLDERS = (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Expr, cst.Return)


def held_together(node: cst.CSTNode, known: Index, above: cst.CSTNode | None = None) -> cst.CSTNode:
    """The node, with brackets around a value that would break its statement. ``above``: where an expression goes.

    Statements of the tree that is edited, ``known``, are as they should be.
    """
    if isinstance(node, (cst.BaseSuite, cst.BaseStatement, cst.BaseSmallStatement)) and node in known:
        return node
    if isinstance(node, (cst.SimpleStatementLine, cst.IndentedBlock)):
        body = [held_together(inner, known) for inner in node.body]
        return node if all(map(operator.is_, body, node.body)) else node.with_changes(body=body)
    if isinstance(node, cst.BaseCompoundStatement):
        block = held_together(node.body, known)
        return node if block is node.body else node.with_changes(body=block)
    if isinstance(node, _HOLDERS) and node.value is not None:
        value = held_together(node.value, known, node)
        return node if value is node.value else node.with_changes(value=value)
    if isinstance(above, _HOLDERS) and isinstance(node, cst.BaseExpression) and _is_broken(node):
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def _is_broken(node: cst.BaseExpression) -> bool:
    if node.lpar or isinstance(node, (cst.Name, cst.BaseNumber)):
        return False
    text = cst.Module(body=()).code_for_node(node)
    if "\n" not in text:
        return False
    try:
        return len(ast.parse(text).body) > 1  # `a\n- b` is two statements
    except SyntaxError:
        return True
