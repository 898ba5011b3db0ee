"""Names that have a value only at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.bindings import element_pairs
from tl2npu.kernel.factory import FileKernels, Located, calls
from tl2npu.source.names import Names
from tl2npu.source.tree import children

_SYMBOLIC = ("symbolic", "dynamic", "dyn", "var")


def runtime_names(file: FileKernels, located: Located) -> frozenset[str]:
    """Names bound to ``T.symbolic(...)`` in the module or the factory, or given such a value where it is called."""
    found: set[str] = set()
    bodies: list[Sequence[cst.CSTNode]] = [file.index.module.body]
    if located.factory is not None:
        bodies.append(located.factory.node.body.body)
    for body in bodies:
        for statement in body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    found |= set(_symbolic_targets(small, file.names))
    if located.factory is not None:
        node = located.factory.node
        params = (*node.params.posonly_params, *node.params.params)
        order = [param.name.value for param in params]
        for param in (*params, *node.params.kwonly_params):
            if param.default is not None and _is_symbolic(param.default, file.names):
                found.add(param.name.value)
        for call in calls(file.index.module):
            if not (isinstance(call.func, cst.Name) and call.func.value == node.name.value):
                continue
            for i, arg in enumerate(call.args):
                name = arg.keyword.value if arg.keyword else order[i] if i < len(order) else ""
                value = arg.value
                if _is_symbolic(value, file.names) or (isinstance(value, cst.Name) and value.value in found):
                    found.add(name)
    return frozenset(found - {""})


def _symbolic_targets(small: cst.CSTNode, names: Names) -> Iterator[str]:
    if not isinstance(small, cst.Assign):
        return
    for item in small.targets:
        for target, value in element_pairs(item.target, small.value) or [(item.target, small.value)]:
            if not _is_symbolic(value, names):
                continue
            if isinstance(target, cst.Name):
                yield target.value
            elif isinstance(target, cst.Tuple):  # m, n = T.dynamic("m, n")
                yield from (e.value.value for e in target.elements if isinstance(e.value, cst.Name))


def _is_symbolic(node: cst.CSTNode, names: Names) -> bool:
    if isinstance(node, cst.Call):
        resolved = names.resolve(node.func) or ""
        if resolved.startswith("tilelang.") and resolved.rsplit(".", 1)[-1] in _SYMBOLIC:
            return True
    if isinstance(node, cst.Subscript):
        return (names.resolve(node.value) or "").endswith(".dyn")
    parts = (child for child in children(node) if isinstance(child, (cst.BaseExpression, cst.Arg)))
    return any(_is_symbolic(part, names) for part in parts)
