"""The element types that names of a file stand for: ``accum_dtype`` of a factory's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Kernel, Op
from tl2npu.kernel.numbers import is_float
from tl2npu.source.tree import nodes_of, remembered

_LONGEST = 40


def named_types(module: cst.Module) -> Mapping[str, frozenset[str]]:
    """The element types, by their one names, that the file gives names: defaults, assignments, arguments."""
    return _Types(_by_name(module))


class _Types(Mapping[str, frozenset[str]]):
    """Most names are never asked for: the texts of their values are made for those that are."""

    def __init__(self, given: Mapping[str, Sequence[cst.BaseExpression]]) -> None:
        self._given = given

    def __getitem__(self, name: str) -> frozenset[str]:
        texts = [text for text in map(code, self._given[name]) if len(text) < _LONGEST]
        return frozenset(plain(text.strip("\"'").rsplit(".", 1)[-1]) for text in texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def named_floats(module: cst.Module) -> frozenset[str]:
    """The names that the file gives Python floats and nothing else."""
    given = _by_name(module)
    found: set[str] = set()
    while more := {name for name, values in given.items() if all(is_float(value, found) for value in values)} - found:
        found |= more
    return frozenset(found)


@remembered
def _by_name(module: cst.Module) -> dict[str, list[cst.BaseExpression]]:
    given: dict[str, list[cst.BaseExpression]] = {}
    for name, value in _given(module):
        given.setdefault(name, []).append(value)
    return given


def _given(module: cst.Module) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Names and what they are given: by defaults, arguments and assignments."""
    functions = {node.name.value: node.params for node in nodes_of(module, cst.FunctionDef)}
    for call in nodes_of(module, cst.Call):
        params = functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        if params is not None:
            placed = takewhile(lambda arg: arg.keyword is None and not arg.star, call.args)
            for param, arg in zip((*params.posonly_params, *params.params), placed, strict=False):
                yield param.name.value, arg.value
    for param in nodes_of(module, cst.Param):
        if param.default is not None:
            yield param.name.value, param.default
    for arg in nodes_of(module, cst.Arg):
        if arg.keyword is not None:
            yield arg.keyword.value, arg.value
    for node in nodes_of(module, cst.Assign):
        for name in _only_target(node):
            yield name.value, node.value


def product_types(kernel: Kernel, types: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Names of types that are float32 in this file and in any other use: L0C holds 32-bit sums only."""
    products = {
        operand.buffer.dtype
        for stmt in kernel.walk()
        if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM
        for name, operand in stmt.operands
        if name == "C"
    }
    return frozenset(name for name in products if types.get(name) == frozenset({"float32"}))


def _only_target(node: cst.Assign) -> list[cst.Name]:
    """The name that an assignment gives a value to, if that is all it does."""
    target = node.targets[0].target
    return [target] if len(node.targets) == 1 and type(target) is cst.Name else []
