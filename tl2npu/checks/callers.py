"""Concrete sizes: the factory run on what its callers in the file, or its defaults, give."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.checks.concrete import Known, Unknown, evaluate, pairs, run
from tl2npu.kernel.factory import FileKernels, Located, calls
from tl2npu.source.names import Names
from tl2npu.source.tree import children

Values = dict[str, int]

_LIMIT = 16
_SYMBOLIC = ("symbolic", "dynamic", "dyn", "var")


def values_of(file: FileKernels, located: Located) -> tuple[Values, ...]:
    """What each readable call of the factory makes of its names; what the defaults make of them if there is none."""
    module: Known = {}
    run(file.index.module.body, module, file.names)
    if located.factory is None:
        return (_integers(module),)
    node = located.factory.node
    found: list[Values] = []
    for call in calls(file.index.module):
        if isinstance(call.func, cst.Name) and call.func.value == node.name.value and len(found) < _LIMIT:
            bound = _bind(node, call, module, file.names)
            if bound is not None:
                values = _in_factory(node, bound, module, file.names)
                if values not in found:
                    found.append(values)
    return tuple(found) or (_in_factory(node, _bind_defaults(node, module, file.names), module, file.names),)


def _params(node: cst.FunctionDef) -> list[cst.Param]:
    return [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]


def _bind_defaults(node: cst.FunctionDef, module: Known, names: Names) -> Known:
    bound: Known = {}
    for param in _params(node):
        if param.default is not None:
            _try(param.name.value, param.default, bound, module, names)
    return bound


def _try(name: str, node: cst.BaseExpression, into: Known, known: Known, names: Names) -> None:
    try:
        into[name] = evaluate(node, known, names)
    except Unknown:
        into.pop(name, None)


def _bind(node: cst.FunctionDef, call: cst.Call, module: Known, names: Names) -> Known | None:
    """The parameters that a call gives known values; None for a call with stars."""
    bound = _bind_defaults(node, module, names)
    order = [param.name.value for param in (*node.params.posonly_params, *node.params.params)]
    position = 0
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None:
            _try(arg.keyword.value, arg.value, bound, module, names)
        elif position < len(order):
            _try(order[position], arg.value, bound, module, names)
            position += 1
        else:
            return None
    return bound


def _in_factory(node: cst.FunctionDef, bound: Known, module: Known, names: Names) -> Values:
    params = {param.name.value for param in _params(node)}
    known = {name: value for name, value in module.items() if name not in params} | bound
    run(node.body.body, known, names)
    return _integers(known)


def _integers(known: Known) -> Values:
    return {name: int(value) for name, value in known.items() if isinstance(value, int)}


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
                    found |= _symbolic_targets(small, file.names)
    if located.factory is not None:
        node = located.factory.node
        order = [param.name.value for param in (*node.params.posonly_params, *node.params.params)]
        for call in calls(file.index.module):
            if not (isinstance(call.func, cst.Name) and call.func.value == node.name.value):
                continue
            for i, arg in enumerate(call.args):
                name = arg.keyword.value if arg.keyword else order[i] if i < len(order) else ""
                value = arg.value
                if _is_symbolic(value, file.names) or (isinstance(value, cst.Name) and value.value in found):
                    found.add(name)
    return frozenset(found - {""})


def _symbolic_targets(small: cst.CSTNode, names: Names) -> set[str]:
    if not isinstance(small, cst.Assign):
        return set()
    found: set[str] = set()
    for item in small.targets:
        for target, value in pairs(item.target, small.value):
            if isinstance(target, cst.Name) and _is_symbolic(value, names):
                found.add(target.value)
    return found


def _is_symbolic(node: cst.CSTNode, names: Names) -> bool:
    if isinstance(node, cst.Call):
        resolved = names.resolve(node.func) or ""
        if resolved.startswith("tilelang.") and resolved.rsplit(".", 1)[-1] in _SYMBOLIC:
            return True
    if isinstance(node, cst.Subscript):
        return (names.resolve(node.value) or "").endswith(".dyn")
    parts = (child for child in children(node) if isinstance(child, (cst.BaseExpression, cst.Arg)))
    return any(_is_symbolic(part, names) for part in parts)
