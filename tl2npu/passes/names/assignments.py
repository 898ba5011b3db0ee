"""Names taken out of the assignments that bind them, also out of ``a, b = x, y``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, element_pairs
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in

NodeT = TypeVar("NodeT", bound=cst.CSTNode)


def bound(node: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The names that ``name = value``, ``name: type = value`` or ``a, b = x, y`` binds, each with its value.

    Nothing for other statements.
    """
    if type(node) is cst.AnnAssign:
        target, value = node.target, node.value
    elif type(node) is cst.Assign and len(node.targets) == 1:
        target, value = node.targets[0].target, node.value
    else:
        return
    if value is None:
        return
    for left, right in element_pairs(target, value) or [(target, value)]:
        if type(left) is cst.Name:
            yield left.value, right


def take_out(edits: Edits, node: cst.BaseSmallStatement, names: Collection[str]) -> None:
    """Take names out of an assignment, and remove it if nothing is left; their values must not do anything."""
    target = node.targets[0].target if isinstance(node, cst.Assign) else None
    pairs = element_pairs(target, node.value) if isinstance(node, cst.Assign) and target is not None else None
    kept = [pair for pair in pairs or () if not (isinstance(pair[0], cst.Name) and pair[0].value in names)]
    if not kept:
        edits.remove(node)
        return
    assert isinstance(node, cst.Assign)
    assert isinstance(target, (cst.Tuple, cst.List))
    assert isinstance(node.value, (cst.Tuple, cst.List))
    if len(kept) == 1:
        edits.replace(target, kept[0][0])
        edits.replace(node.value, kept[0][1])
        return
    staying = {id(part) for pair in kept for part in pair}
    for element in (*target.elements, *node.value.elements):
        if id(element.value) not in staying:
            edits.remove(element)


def needed(assignments: Sequence[NodeT], statements: Sequence[cst.CSTNode]) -> list[NodeT]:
    """The assignments that some statements need, directly or through others."""
    used = {name.value for statement in statements for name in names_in(statement)}
    found: list[NodeT] = []
    for one in reversed(assignments):
        if assigned_names(one) & used:
            found.insert(0, one)
            used |= mentioned(one)
    return found
