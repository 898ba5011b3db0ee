"""The line of a part of a statement, from the tree of the cheap parser: nothing has to be printed for it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import pairwise

import libcst as cst


def line_beside(
    statement: cst.CSTNode, node: cst.CSTNode, parents: Mapping[int, cst.CSTNode], python: ast.stmt
) -> int | None:
    """The line where ``node`` begins, if it can be told from ``python``, the same statement in the other tree.

    Both are gone down side by side, to the node or to a part around it that is all on one line.
    """
    value = node.value if isinstance(node, cst.Arg) and node.keyword is None else node
    if getattr(value, "lpar", ()) or isinstance(value, cst.GeneratorExp):
        return None  # parentheses are no part of what `ast` sees, but for those of a generator in a call
    chain = [node]
    while chain[-1] is not statement:
        chain.append(parents[id(chain[-1])])
    chain.reverse()
    place: ast.AST | None = python
    for above, below in pairwise(chain):
        if isinstance(above, cst.FunctionDef) and below is above.name:
            return python.lineno if "\\" not in above.whitespace_after_def.value else None
        place = _part(above, below, place)
        if place is None:
            return None
        if place is python or (isinstance(below, cst.Param) and below is not node):
            continue  # `ast.arg` has no default
        line = getattr(place, "lineno", None)
        if line is not None and (below is node or line == getattr(place, "end_lineno", None)):
            return int(line)
    return None


def _part(above: cst.CSTNode, below: cst.CSTNode, place: ast.AST | None) -> ast.AST | None:
    """What ``below``, a child of ``above``, is in the other tree; ``place`` is what ``above`` is there."""
    if isinstance(place, ast.FunctionDef):
        if isinstance(above, cst.FunctionDef):
            return place if below is above.params else _beside(above.decorators, below, place.decorator_list)
        if isinstance(above, cst.Parameters):
            known = [*above.posonly_params, *above.params, *above.kwonly_params]
            return _beside(known, below, [*place.args.posonlyargs, *place.args.args, *place.args.kwonlyargs])
    if isinstance(place, ast.arg) and isinstance(above, cst.Param):
        return place.annotation if below is above.annotation else place if below is above.name else None
    if isinstance(above, (cst.Decorator, cst.Annotation)):
        return place
    if isinstance(above, cst.Arg):
        return place.value if isinstance(place, ast.keyword) and below is not above.keyword else place
    if isinstance(above, cst.Expr) and isinstance(place, ast.Expr):
        return place.value
    if isinstance(above, cst.Call) and isinstance(place, ast.Call):
        if below is above.func:
            return place.func
        named = [arg for arg in above.args if arg.keyword is not None or arg.star == "**"]
        return _beside(named, below, place.keywords) or _beside(
            [arg for arg in above.args if not any(arg is other for other in named)], below, place.args
        )
    return None


def _beside(nodes: Sequence[cst.CSTNode], node: cst.CSTNode, others: Sequence[ast.AST]) -> ast.AST | None:
    at = next((at for at, one in enumerate(nodes) if one is node), None)
    return None if at is None or len(nodes) != len(others) else others[at]
