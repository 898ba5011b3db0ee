"""What the names of a ``for`` over written-out values are, turn by turn: ``for M, N in [(64, 64), (100, 72)]``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.factories.concrete import Known, Unknown, evaluate
from tl2npu.kernel.factories.factory import FileKernels


def turns(file: FileKernels, call: cst.CSTNode, known: Known) -> Iterator[Known]:
    """What is known in every turn of the loops around a call; as it was, where nothing tells."""
    loops: list[cst.For] = []
    for above in file.index.ancestors(call):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.For):
            loops.append(above)
    yield from _expanded(file, loops[::-1], known)


def _expanded(file: FileKernels, loops: list[cst.For], known: Known) -> Iterator[Known]:
    if not loops:
        yield known
        return
    first, *rest = loops
    target: cst.BaseExpression = first.target
    source = first.iter
    counted = isinstance(source, cst.Call) and isinstance(source.func, cst.Name) and source.func.value == "enumerate"
    if isinstance(source, cst.Call) and counted and source.args:
        source = source.args[0].value
        target = target.elements[1].value if isinstance(target, cst.Tuple) and len(target.elements) == 2 else source
    items = _items(file, source)
    if items is None:
        yield from _expanded(file, rest, known)
        return
    bound = [inner for item in items if _bind(file, target, item, inner := dict(known))]
    for inner in bound or [known]:
        yield from _expanded(file, rest, inner)


def _items(file: FileKernels, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The values that are written out, also behind a name that is bound once."""
    if isinstance(node, cst.Name):
        stores = [
            statement.value
            for statement in file.index.statements
            if isinstance(statement, cst.Assign)
            and any(isinstance(t.target, cst.Name) and t.target.value == node.value for t in statement.targets)
        ]
        return _items(file, stores[0]) if len(stores) == 1 and not isinstance(stores[0], cst.Name) else None
    if isinstance(node, (cst.List, cst.Tuple)):
        return [element.value for element in node.elements]
    return None


def _bind(file: FileKernels, target: cst.BaseExpression, value: cst.BaseExpression, known: Known) -> bool:
    if isinstance(target, cst.Tuple):
        parts = _items(file, value) if isinstance(value, (cst.List, cst.Tuple)) else None
        if parts is None or len(parts) != len(target.elements):
            return False
        return all(_bind(file, one.value, part, known) for one, part in zip(target.elements, parts, strict=True))
    if not isinstance(target, cst.Name):
        return False
    try:
        known[target.value] = evaluate(value, known, file.names)
    except Unknown:
        known.pop(target.value, None)
    return True
