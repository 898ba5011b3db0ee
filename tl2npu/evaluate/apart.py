"""Loops in order whose turns have nothing to do with each other: they are evaluated as lanes, all turns at once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.source.tree import nodes_of, remembered


@remembered
def nest_of(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A loop, and the loops that are all that a loop has in it, down to one with other statements; see :func:`apart`.

    Only loops over numbers of a plain name count.
    """
    found: list[cst.CSTNode] = []
    while isinstance(node, cst.For) and isinstance(node.target, cst.Name):
        found.append(node)
        inner = body_of(node)
        if len(inner) != 1:
            break
        node = inner[0]
    return found


@remembered
def apart(node: cst.CSTNode) -> list[str]:
    """Names that a nest of loops binds, if every turn stores elements of its own in tensors that no turn reads.

    Empty for any other. Its stores have every variable of the nest as a whole index; each other name is bound before
    it is used, by the same turn; no operator stands in it.
    """
    nest = nest_of(node)
    if not nest:
        return []
    variables = [loop.target.value for loop in nest if isinstance(loop, cst.For) and isinstance(loop.target, cst.Name)]
    bound, stored = list(variables), set[str]()
    last = cst.ensure_type(nest[-1], cst.For)
    bounds = {name.value for loop in nest[1:] if isinstance(loop, cst.For) for name in nodes_of(loop.iter, cst.Name)}
    if bounds & set(variables) or len(set(variables)) < len(variables):
        return []
    for part in _statements(last):
        target = part.targets[0].target if isinstance(part, cst.Assign) and len(part.targets) == 1 else None
        if isinstance(target, cst.Name):
            bound.append(target.value)
        elif isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and _has_all(target, variables):
            stored.add(target.value.value)
        else:
            return []
    if not stored or not _in_order(last, set(variables), set(bound), stored):
        return []
    return bound


def _statements(loop: cst.For) -> Iterator[cst.CSTNode]:
    for line in body_of(loop):
        yield from line.body if isinstance(line, cst.SimpleStatementLine) else [line]


def _has_all(target: cst.Subscript, variables: list[str]) -> bool:
    indices = [e.slice.value for e in target.slice if isinstance(e.slice, cst.Index)]
    names = {index.value for index in indices if isinstance(index, cst.Name)}
    return len(indices) == len(target.slice) and names >= set(variables)


def _in_order(loop: cst.For, known: set[str], bound: set[str], stored: set[str]) -> bool:
    """Whether names are bound before they are used, and nothing that is stored is read."""
    for part in _statements(loop):
        assert isinstance(part, cst.Assign)
        target = part.targets[0].target
        used = {name.value for name in nodes_of(part.value, cst.Name) if isinstance(name, cst.Name)}
        if isinstance(target, cst.Subscript):
            used |= {n.value for e in target.slice for n in nodes_of(e, cst.Name) if isinstance(n, cst.Name)}
        if used & stored or used & (bound - known):
            return False
        if isinstance(target, cst.Name):
            known = known | {target.value}
    return True
