"""Concrete sizes: the factory run on what its callers in the file, or its defaults, give."""

from __future__ import annotations

import libcst as cst

from tl2npu.checks.concrete import Known, Unknown, evaluate, run
from tl2npu.kernel.factory import FileKernels, Located, calls
from tl2npu.source.names import Names

Values = dict[str, int]

_LIMIT = 16


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
