"""``f.par_compile(configs)`` of an eager kernel: a list of the kernels that its factory makes.

The configurations name placeholders for the tensors, ``{"A": T.Tensor((1024, 512), T.float32), "block": 64}``. What the
factory takes is in their place, ``{"M": 1024, "K": 512, "block": 64}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.tree import mentioned, nodes_of

if TYPE_CHECKING:
    from tl2npu.passes.eager.extents import Axis
    from tl2npu.passes.eager.kernel import Plan

PARALLEL = "par_compile"


@dataclass(frozen=True, eq=False)
class Config:
    """Elements of a dictionary, each with what takes its place."""

    new: list[tuple[cst.BaseDictElement, list[cst.BaseDictElement]]]


def all_of(factory: cst.Name, call: cst.Call) -> cst.ListComp:
    """``[f(**config) for config in configs]``."""
    taken = mentioned(call)
    name = next(wish for wish in ("config", "options", "arguments", "config_of_kernel") if wish not in taken)
    text = f"[{factory.value}(**{name}) for {name} in configs]"
    made = cst.ensure_type(cst.parse_expression(text), cst.ListComp)
    return made.with_changes(for_in=made.for_in.with_changes(iter=call.args[0].value))


def displays(index: Index, call: cst.Call) -> list[cst.Dict] | None:
    """All dictionaries that the argument of the call lists; None if they are not written in this file, or not only for
    this call."""
    if len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
        return None
    value: cst.BaseExpression | None = call.args[0].value
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
        value = _returned(index, value.func)
    elif isinstance(value, cst.Name):
        value = _assigned(index, value)
    if isinstance(value, cst.ListComp):
        return [value.elt] if isinstance(value.elt, cst.Dict) else None
    if not isinstance(value, (cst.List, cst.Tuple)):
        return None
    found = [element.value for element in value.elements]
    dicts = [item for item in found if isinstance(item, cst.Dict)]
    return dicts if len(dicts) == len(found) else None


def _returned(index: Index, name: cst.Name) -> cst.BaseExpression | None:
    """What a function of the module returns, if it is called once."""
    functions = [f for f in index.module.body if isinstance(f, cst.FunctionDef) and f.name.value == name.value]
    if len(functions) != 1 or not _is_read_once(index, index.module, name) or functions[0].decorators:
        return None
    returns = nodes_of(functions[0].body, cst.Return)
    return returns[0].value if len(returns) == 1 else None


def _assigned(index: Index, name: cst.Name) -> cst.BaseExpression | None:
    """What a name stands for that is assigned once and used once, around the call."""
    scope = index.enclosing(name, cst.FunctionDef) or index.module
    found = [
        assign
        for assign in nodes_of(scope, cst.Assign)
        if len(assign.targets) == 1
        and isinstance(assign.targets[0].target, cst.Name)
        and assign.targets[0].target.value == name.value
    ]
    return found[0].value if len(found) == 1 and _is_read_once(index, scope, name) else None


def _is_read_once(index: Index, scope: cst.CSTNode, name: cst.Name) -> bool:
    uses = [use for use in visible_uses(scope, name.value) if not isinstance(index.parent(use), cst.FunctionDef)]
    return [id(use) for use in uses] == [id(name)]


def config_of(display: cst.Dict, plan: Plan, axes: Mapping[str, Sequence[Axis]]) -> Config | None:
    """The elements of a dictionary that change; None if one cannot be told."""
    elements: dict[str, cst.DictElement] = {}
    for element in display.elements:
        key = element.key if isinstance(element, cst.DictElement) else None
        if not isinstance(element, cst.DictElement) or not isinstance(key, cst.SimpleString):
            return None
        elements[str(text_of(key))] = element
    if len(elements) < len(display.elements):
        return None
    tensors = [item.name for item in plan.inputs]
    given = [name for name in tensors if name in elements]
    if plan.consts.keys() & elements.keys():
        return Config([]) if not given and plan.consts.keys() <= elements.keys() else None
    if given != tensors and plan.consts:
        return None
    extents: list[cst.BaseDictElement] = []
    for name in plan.consts:
        value = next((size for axis in axes.get(name) or () if (size := _extent(elements, axis)) is not None), None)
        if value is None:
            return None
        key = elements[given[0]].key
        assert isinstance(key, cst.SimpleString)
        quoted = key.with_changes(value=f"{key.quote}{name}{key.quote}")
        extents.append(cst.DictElement(quoted, value.deep_clone()))
    return Config([(elements[name], extents if place == 0 else []) for place, name in enumerate(given)])


def _extent(elements: Mapping[str, cst.DictElement], axis: Axis) -> cst.BaseExpression | None:
    """The size of an axis of a placeholder ``T.Tensor((M, K), dtype)`` or ``torch.empty(M, K)``."""
    value = elements[axis.tensor].value
    if axis.when is not None or not isinstance(value, cst.Call) or not value.args:
        return None
    shape = value.args[0].value
    if isinstance(shape, (cst.Tuple, cst.List)):
        sizes = [element.value for element in shape.elements]
    else:
        sizes = [arg.value for arg in value.args if arg.keyword is None]
        if not all(isinstance(size, (cst.Integer, cst.Name)) for size in sizes):
            return None
    called = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
    known = called in ("Tensor", "empty", "zeros", "ones", "rand", "randn")
    return sizes[axis.axis] if known and axis.axis < len(sizes) else None
