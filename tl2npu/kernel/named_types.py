"""The element types that names of a file stand for: ``accum_dtype`` of a factory's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code, where_installed
from tl2npu.kernel.model import Kernel, Op
from tl2npu.kernel.numbers import is_float
from tl2npu.source.tree import nodes_of, remembered

_LONGEST = 40
_Value = tuple[str, cst.BaseExpression, str]
"""What a name is given, behind the function whose parameter the name is, and in which function that is written."""


def named_types(module: cst.Module, within: cst.FunctionDef | None = None) -> NamedTypes:
    """The element types, by their one names, that the file gives names: defaults, assignments, arguments.

    ``within``: a function whose parameters are its own, whatever others of the same name are given.
    """
    return NamedTypes(_by_name(module), _functions(module), within)


class NamedTypes(Mapping[str, frozenset[str]]):
    """The types by name. Most names are never asked for: the texts of their values are made for those that are."""

    def __init__(
        self,
        given: Mapping[str, Sequence[_Value]],
        functions: Mapping[str, cst.FunctionDef],
        within: cst.FunctionDef | None,
    ) -> None:
        self._given, self._functions, self._within = given, functions, within

    def __getitem__(self, name: str) -> frozenset[str]:
        return frozenset(plain(text.strip("\"'").rsplit(".", 1)[-1]) for text in self.as_written(name))

    def as_written(self, name: str) -> frozenset[str]:
        """The same as the file has it: ``"float32"`` in its quotes; none for a name that the file gives nothing."""
        return frozenset(self._found(name, self._within, self._given.get(name, ()), set()))

    def _found(
        self, name: str, within: cst.FunctionDef | None, values: Sequence[_Value], seen: set[tuple[str, str]]
    ) -> Iterator[str]:
        """What a name stands for in a function; what the function hands on under a name is looked up where it does."""
        own = within is not None and name in _named_params(within)
        for owner, value, giver in values:
            if own and within is not None and owner not in ("", within.name.value):
                continue
            text, function = code(value), self._functions.get(giver)
            if function is not None and text in _named_params(function) and text in self._given:
                if (giver, text) not in seen:
                    seen.add((giver, text))
                    yield from list(self._found(text, function, self._given[text], seen)) or [text]
            elif len(text) < _LONGEST:
                yield text

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def named_floats(module: cst.Module) -> frozenset[str]:
    """The names that the file gives Python floats and nothing else."""
    given = _by_name(module)
    found: set[str] = set()
    while more := {name for name, values in given.items() if all(is_float(one, found) for _, one, _ in values)} - found:
        found |= more
    return frozenset(found)


@remembered
def _by_name(module: cst.Module) -> dict[str, list[_Value]]:
    given: dict[str, list[_Value]] = {}
    for owner, name, value, giver in _given(module):
        given.setdefault(name, []).append((owner, where_installed(value), giver))
    return given


@remembered
def _functions(module: cst.Module) -> dict[str, cst.FunctionDef]:
    return {node.name.value: node for node in nodes_of(module, cst.FunctionDef)}


def _given(module: cst.Module) -> Iterator[tuple[str, str, cst.BaseExpression, str]]:
    """Names and what they are given: by defaults, arguments and assignments; each with the function whose parameter the
    name is, empty where that cannot be told, and the one in which that is written.

    ``dtype=torch.int32`` of a function that is not of the file says nothing of the file's names.
    """
    functions = _functions(module)
    inside = {id(call): name for name, node in functions.items() for call in nodes_of(node.body, cst.Call)}
    for call in nodes_of(module, cst.Call):
        giver = inside.get(id(call), "")
        called = call.func.value if isinstance(call.func, cst.Name) else ""
        if called in functions:
            placed = takewhile(lambda arg: arg.keyword is None and not arg.star, call.args)
            for param, arg in zip(_params(functions[called]), placed, strict=False):
                yield called, param.name.value, arg.value, giver
        if isinstance(call.func, cst.Attribute) and not functions.keys() & _named(call):
            continue
        for arg in call.args:
            if arg.keyword is not None:
                yield called if called in functions else "", arg.keyword.value, arg.value, giver
    for function in nodes_of(module, cst.FunctionDef):
        for param in (*_params(function), *function.params.kwonly_params):
            if param.default is not None:
                yield function.name.value, param.name.value, param.default, ""
    for node in nodes_of(module, cst.Assign):
        for name in _only_target(node):
            yield "", name.value, node.value, ""


def _named_params(function: cst.FunctionDef) -> frozenset[str]:
    return frozenset(param.name.value for param in (*_params(function), *function.params.kwonly_params))


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
