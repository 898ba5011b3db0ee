"""``with T.If(c):`` around ``with T.Then():`` and ``with T.Else():``, the builder's spelling of ``if c:``."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.source.names import Names
from tl2npu.source.tree import with_children

_NESTED_WITH = "# noqa: SIM117"


def as_if(node: cst.With, names: Names, whole: cst.With | None = None) -> cst.If | None:
    """The ``if`` that a ``with`` block stands for, None for any other block.

    ``whole`` is the block to take the text from, if parts of it were rewritten already.
    """
    taken = whole or node
    heads = [_builder(item, names) for item in node.items]
    first = node.items[0].item
    if heads[0] != "If" or not isinstance(first, cst.Call) or len(first.args) != 1:
        return None
    if first.args[0].keyword is not None or first.args[0].star:
        return None
    test = _after_space(first.args[0].value)
    if heads[1:] == ["Then"]:
        return cst.If(test, taken.body, leading_lines=taken.leading_lines)
    sides = _sides(node, names)
    if len(heads) > 1 or sides not in (["Then"], ["Then", "Else"]):
        return None
    arms = [arm for arm in taken.body.body if isinstance(arm, cst.With)]
    then = _with_lines(arms[0].body, arms[0].leading_lines)
    if isinstance(then, cst.IndentedBlock) and isinstance(taken.body, cst.IndentedBlock):
        comment = taken.body.header.comment
        if comment is not None and comment.value != _NESTED_WITH:
            then = then.with_changes(header=taken.body.header)
    orelse = cst.Else(arms[1].body, leading_lines=arms[1].leading_lines) if len(arms) > 1 else None
    return cst.If(test, then, orelse, leading_lines=taken.leading_lines)


def _after_space(node: cst.BaseExpression) -> cst.BaseExpression:
    """The condition behind the keyword: one that runs over several lines keeps its parentheses."""
    text = cst.Module(body=()).code_for_node(node)
    if "\n" in text and not node.lpar:
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def _builder(item: cst.WithItem, names: Names) -> str:
    if not isinstance(item.item, cst.Call) or item.asname is not None:
        return ""
    return names.operator(item.item.func)


def _sides(node: cst.With, names: Names) -> list[str]:
    return [
        _builder(arm.items[0], names) if isinstance(arm, cst.With) and len(arm.items) == 1 else ""
        for arm in node.body.body
    ]


def _with_lines(body: cst.BaseSuite, lines: Sequence[cst.EmptyLine]) -> cst.BaseSuite:
    """Comments above ``with T.Then():`` go above what it holds."""
    if not isinstance(body, cst.IndentedBlock) or not any(line.comment for line in lines):
        return body
    first = body.body[0]
    return body.with_changes(
        body=[first.with_changes(leading_lines=[*lines, *first.leading_lines]), *body.body[1:]]  # type: ignore[attr-defined]
    )


def rewritten(node: cst.CSTNode, names: Names) -> cst.CSTNode:
    """Every such block at and below a node as ``if``, the inner ones first."""
    if isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement)):
        return node
    new = with_children(node, lambda child: rewritten(child, names))
    if isinstance(node, cst.With) and isinstance(new, cst.With):
        return as_if(node, names, new) or new
    return new
