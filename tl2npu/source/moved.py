"""Edits inside of one function: which nodes around it stand for which in the tree before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import child_fields


@dataclass(frozen=True, eq=False)
class Moved:
    """A function that was edited inside, in its body or its parameters, and nothing else of the file.

    ``old`` and ``new``: the function before and after. ``now``: by the id of a function around it before, and of
    ``old``, what it is after.
    """

    old: cst.FunctionDef
    new: cst.FunctionDef
    now: Mapping[int, cst.FunctionDef]

    @classmethod
    def of(cls, before: Index, after: Index, function: cst.FunctionDef, edited: Iterable[cst.CSTNode]) -> Moved | None:
        """The move of ``function``; None if something outside of it is different, or if it stands in a class."""
        if not all(_inside(before, function, node) for node in edited):
            return None
        chain: list[cst.CSTNode] = [function, *before.ancestors(function)]
        now: dict[int, cst.FunctionDef] = {}
        new: cst.CSTNode = after.module
        for above, below in zip(reversed(chain), list(reversed(chain))[1:], strict=False):
            found = _counterpart(above, below, new)
            if found is None or isinstance(found, cst.ClassDef):
                return None
            if isinstance(below, cst.FunctionDef) and isinstance(found, cst.FunctionDef):
                now[id(below)] = found
            new = found
        return cls(function, new, now) if isinstance(new, cst.FunctionDef) else None


def _inside(index: Index, function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """True for a node in the body or in the parameters of a function."""
    below = node
    for above in index.ancestors(node):
        if above is function:
            return below is function.body or below is function.params
        below = above
    return False


def _counterpart(old: cst.CSTNode, below: cst.CSTNode, new: cst.CSTNode) -> cst.CSTNode | None:
    """What stands in ``new`` where ``below`` stands in ``old``; None unless all else in them is the same."""
    if type(old) is not type(new):
        return None
    found: cst.CSTNode | None = None
    for name in child_fields(type(old)):
        was, is_now = getattr(old, name), getattr(new, name)
        if was is below:
            found = is_now
        elif type(was) in (tuple, list):
            if len(was) != len(is_now):
                return None
            for one, other in zip(was, is_now, strict=True):
                if one is below:
                    found = other
                elif one is not other:
                    return None
        elif was is not is_now and isinstance(was, cst.CSTNode):
            return None
    return found
