"""The configurations that an autotuner tries, as far as the text gives them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.factories.concrete import Known, evaluate
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.constants import NoValue
from tl2npu.source.tree import argument, nodes_of

AUTOTUNE = ("tilelang.autotune", "tilelang.autotuner.autotune")
"""Decorators that tune what a factory makes."""
_LIMIT = 256
_LISTING = (cst.Assign, cst.Arg, cst.DictElement)


@dataclass(frozen=True, eq=False)
class Config:
    """One configuration: the dict, or the function that makes them all, and the parameters that it sets."""

    node: cst.CSTNode
    values: Known


def configs_of(file: FileKernels, factory: cst.FunctionDef, module: Known) -> list[Config]:
    """The configurations of ``@autotune(configs=...)``: written out, or as lists of values of which all are combined.

    A function counts for the lists in it that are named like parameters of the factory, however it combines them.
    """
    params = {p.name.value for p in (*factory.params.params, *factory.params.kwonly_params)}
    for decorator in factory.decorators:
        call = decorator.decorator
        if not isinstance(call, cst.Call) or not (file.names.resolve(call.func) in AUTOTUNE or _is_own(file, call)):
            continue
        given = argument(call, "configs", 0)
        if given is not None:
            return list(itertools.islice(_read(file, given, params, module), _LIMIT))
    return []


def _is_own(file: FileKernels, call: cst.Call) -> bool:
    """True for a decorator of the file itself that takes ``configs``."""
    name = call.func.value if isinstance(call.func, cst.Name) else ""
    return any("configs" in {p.name.value for p in own.params.params} for own in file.names.functions.get(name, ()))


def _read(file: FileKernels, node: cst.BaseExpression, params: set[str], module: Known) -> Iterator[Config]:
    if isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            values = {name: value for name, value in entries(file, element.value, module) if name in params}
            if values:
                yield Config(element.value, values)
        return
    target = node.func if isinstance(node, cst.Call) else node
    if not isinstance(target, cst.Name):
        return
    for statement in file.index.module.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == target.value:
            yield from _combined(file, statement, params, module)
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                for name, listed in named_lists(small):
                    if name == target.value:
                        yield from _read(file, listed, params, module)


def _combined(file: FileKernels, function: cst.FunctionDef, params: set[str], module: Known) -> Iterator[Config]:
    lists: dict[str, list[object]] = {}
    for node in nodes_of(function.body, *_LISTING):
        for name, values in named_lists(node):
            if name in params:
                lists.setdefault(name, _numbers(file, values, module))
    chosen = {name: values for name, values in lists.items() if values}
    for combination in itertools.product(*chosen.values()) if chosen else ():
        yield Config(function, dict(zip(chosen, combination, strict=True)))


def named_lists(node: cst.CSTNode) -> Iterator[tuple[str, cst.List | cst.Tuple]]:
    """``block = [64, 128]``, ``dict(block=[64, 128])``, ``{"block": [64, 128]}``."""
    value = node.value if isinstance(node, _LISTING) else None
    if not isinstance(value, (cst.List, cst.Tuple)):
        return
    if isinstance(node, cst.Assign):
        yield from ((t.target.value, value) for t in node.targets if isinstance(t.target, cst.Name))
    elif isinstance(node, cst.Arg) and node.keyword is not None:
        yield node.keyword.value, value
    elif isinstance(node, cst.DictElement) and isinstance(node.key, cst.SimpleString):
        yield str(node.key.evaluated_value), value


def _numbers(file: FileKernels, node: cst.List | cst.Tuple, module: Known) -> list[object]:
    found: list[object] = []
    for element in node.elements:
        try:
            found.append(evaluate(element.value, module, file.names))
        except NoValue:
            return []
    return found


def entries(file: FileKernels, node: cst.BaseExpression, module: Known) -> Iterator[tuple[str, object]]:
    """Names and values of ``{"block": 64}`` or ``dict(block=64)``."""
    pairs: list[tuple[str, cst.BaseExpression]] = []
    if isinstance(node, cst.Dict):
        pairs = [
            (str(item.key.evaluated_value), item.value)
            for item in node.elements
            if isinstance(item, cst.DictElement) and isinstance(item.key, cst.SimpleString)
        ]
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        pairs = [(arg.keyword.value, arg.value) for arg in node.args if arg.keyword is not None]
    for name, value in pairs:
        try:
            yield name, evaluate(value, module, file.names)
        except NoValue:
            continue
