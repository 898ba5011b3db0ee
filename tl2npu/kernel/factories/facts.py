"""What the place of a kernel in its factory says about the factory's conditions."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.bindings import body_of, target_names
from tl2npu.source.index import Index
from tl2npu.source.tree import nodes_of

_BINDING: tuple[type[cst.CSTNode], ...] = (
    cst.Param,
    cst.AssignTarget,
    cst.AnnAssign,
    cst.NamedExpr,
    cst.For,
    cst.AugAssign,
    cst.CompFor,
    cst.AsName,
)


def facts(index: Index, kernel: cst.FunctionDef) -> dict[str, bool]:
    """Names of the factory whose truth follows from where the kernel stands."""
    found: dict[str, bool] = {}
    below: cst.CSTNode = kernel
    functions = [kernel]
    for above in index.ancestors(kernel):
        if isinstance(above, cst.If):
            _note(found, above.test, below is not above.orelse)
        elif isinstance(above, cst.IndentedBlock):
            for sibling in above.body[: next(n for n, part in enumerate(above.body) if part is below)]:
                if isinstance(sibling, cst.If) and sibling.orelse is None and _leaves(sibling):
                    _note(found, sibling.test, False)
        elif isinstance(above, cst.FunctionDef):
            functions.append(above)
        below = above
    around = functions[-1]
    return {name: value for name, value in found.items() if _bindings(around, name) <= 1}


def _note(found: dict[str, bool], test: cst.BaseExpression, value: bool) -> None:
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, value = test.expression, not value
    if isinstance(test, cst.Name):
        found.setdefault(test.value, value)


def _leaves(node: cst.If) -> bool:
    """The function is left at the end of the block."""
    last = body_of(node)[-1]
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Return, cst.Raise))


def _bindings(around: cst.FunctionDef, name: str) -> int:
    """How often a name gets a value: as a parameter, or by an assignment; loops give it many."""
    count = 0
    for node in nodes_of(around, *_BINDING):
        if isinstance(node, cst.Param):
            count += node.name.value == name
        elif isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr)):
            count += name in target_names(node.target)
        elif isinstance(node, (cst.For, cst.AugAssign, cst.CompFor)):
            count += 2 * (name in target_names(node.target))
        else:
            assert isinstance(node, cst.AsName)
            count += 2 * (name in target_names(node.name))
    return count
