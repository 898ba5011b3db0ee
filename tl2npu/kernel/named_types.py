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
_Value = tuple[str, cst.BaseExpression]
"""What a name is given, behind the function whose parameter the name is."""


def named_types(module: cst.Module, within: cst.FunctionDef | None = None) -> Mapping[str, frozenset[str]]:
    """The element types, by their one names, that the file gives names: defaults, assignments, arguments.

    ``within``: a function whose parameters are its own, whatever others of the same name are given.
    """
    return _Types(_by_name(module), within)


class _Types(Mapping[str, frozenset[str]]):
    """Most names are never asked for: the texts of their values are made for those that are."""

    def __init__(self, given: Mapping[str, Sequence[_Value]], within: cst.FunctionDef | None) -> None:
        self._given = given
        self._own, self._owners = frozenset[str](), frozenset[str]()
        if within is not None:
            self._own = frozenset(param.name.value for param in (*_params(within), *within.params.kwonly_params))
            self._owners = frozenset({"", within.name.value})

    def __getitem__(self, name: str) -> frozenset[str]:
        values = [value for owner, value in self._given[name] if name not in self._own or owner in self._owners]
        texts = [text for text in map(code, values) if len(text) < _LONGEST]
        return frozenset(plain(text.strip("\"'").rsplit(".", 1)[-1]) for text in texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def named_floats(module: cst.Module) -> frozenset[str]:
    """The names that the file gives Python floats and nothing else."""
    given = _by_name(module)
    found: set[str] = set()
    while more := {name for name, values in given.items() if all(is_float(one, found) for _, one in values)} - found:
        found |= more
    return frozenset(found)


@remembered
def _by_name(module: cst.Module) -> dict[str, list[_Value]]:
    given: dict[str, list[_Value]] = {}
    for owner, name, value in _given(module):
        given.setdefault(name, []).append((owner, value))
    return given


def _given(module: cst.Module) -> Iterator[tuple[str, str, cst.BaseExpression]]:
    """Names and what they are given: by defaults, arguments and assignments; each with the function whose parameter the
    name is, empty where that cannot be told.

    ``dtype=torch.int32`` of a function that is not of the file says nothing of the file's names.
    """
    functions = {node.name.value: node for node in nodes_of(module, cst.FunctionDef)}
    for call in nodes_of(module, cst.Call):
        called = call.func.value if isinstance(call.func, cst.Name) else ""
        if called in functions:
            placed = takewhile(lambda arg: arg.keyword is None and not arg.star, call.args)
            for param, arg in zip(_params(functions[called]), placed, strict=False):
                yield called, param.name.value, arg.value
        if isinstance(call.func, cst.Attribute) and not functions.keys() & _named(call):
            continue
        for arg in call.args:
            if arg.keyword is not None:
                yield called if called in functions else "", arg.keyword.value, arg.value
    for function in nodes_of(module, cst.FunctionDef):
        for param in (*_params(function), *function.params.kwonly_params):
            if param.default is not None:
                yield function.name.value, param.name.value, param.default
    for node in nodes_of(module, cst.Assign):
        for name in _only_target(node):
            yield "", name.value, node.value


def _params(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """Those that positional arguments go to."""
    return *function.params.posonly_params, *function.params.params


def _named(call: cst.Call) -> set[str]:
    """The function of a call by its last name, and what it is handed: ``partial(factory, dtype="int8")``."""
    assert isinstance(call.func, cst.Attribute)
    return {call.func.attr.value, *(arg.value.value for arg in call.args if isinstance(arg.value, cst.Name))}


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
