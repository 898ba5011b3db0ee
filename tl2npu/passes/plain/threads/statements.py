"""What single statements store, load and bind."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.source.tree import mentioned, nodes_of


def branches(statement: cst.If) -> Iterator[cst.CSTNode]:
    """The statements of a branch and of its ``else``."""
    other = statement.orelse
    blocks = [statement.body, *([other.body] if isinstance(other, cst.Else) else [])]
    for block in blocks:
        for line in block.body:
            if isinstance(line, cst.SimpleStatementLine):
                yield from line.body
            else:
                yield line
    if isinstance(other, cst.If):
        yield other


def bound_by(statement: cst.CSTNode) -> set[str]:
    """The names that a statement itself binds, and those inside not."""
    if isinstance(statement, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
        return names_bound(statement)
    return mentioned(statement.target) if isinstance(statement, cst.For) else set()


def names_bound(node: cst.CSTNode) -> set[str]:
    """The names that code binds; elements of tiles are none."""
    found: set[str] = set()
    for each in (node, *nodes_of(node, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For)):
        if isinstance(each, cst.Assign):
            targets = [target.target for target in each.targets]
        elif isinstance(each, (cst.AugAssign, cst.AnnAssign, cst.For)):
            targets = [each.target]
        else:
            continue
        found |= {target.value for target in targets if isinstance(target, cst.Name)}
    return found


def element_stored(statement: cst.CSTNode) -> cst.Subscript | None:
    """What a statement stores to, if it is one element."""
    if not isinstance(statement, (cst.Assign, cst.AugAssign)):
        return None
    target = statement.target if isinstance(statement, cst.AugAssign) else statement.targets[0].target
    plain = isinstance(target, cst.Subscript) and all(isinstance(item.slice, cst.Index) for item in target.slice)
    return target if isinstance(target, cst.Subscript) and plain else None


def stores(node: cst.CSTNode) -> list[cst.Assign | cst.AugAssign]:
    nodes = [node, *nodes_of(node, cst.Assign, cst.AugAssign)]
    return [n for n in dict.fromkeys(nodes) if isinstance(n, (cst.Assign, cst.AugAssign)) and target_of(n)]


def target_of(node: cst.Assign | cst.AugAssign) -> str:
    """The buffer that a store writes; empty for a name that is bound."""
    target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    return code(target.value) if isinstance(target, cst.Subscript) else ""


def loads(node: cst.CSTNode) -> list[cst.Subscript]:
    targets = {id(n.target if isinstance(n, cst.AugAssign) else n.targets[0].target) for n in stores(node)}
    return [sub for sub in nodes_of(node, cst.Subscript) if id(sub) not in targets]
