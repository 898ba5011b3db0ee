"""What ``pass_configs`` of a compilation says, however it is written."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.pass_configs import canonical_key
from tl2npu.kernel.factory import Compilation, FileKernels
from tl2npu.source.tree import names_in

COMBINE = "TL_ASCEND_AUTO_CV_COMBINE"
CV_SYNC = "TL_ASCEND_AUTO_CV_SYNC"
SYNC = "TL_ASCEND_AUTO_SYNC"
PLANNING = "TL_ASCEND_MEMORY_PLANNING"
ALL = (COMBINE, CV_SYNC, SYNC, PLANNING)
SINGLE_CORE = (COMBINE, SYNC, PLANNING)


@dataclass(eq=False)
class Configs:
    """The pass_configs of one compilation: ``values`` by canonical key, None where a value cannot be read.

    ``literal`` is the dict to extend, ``shared`` tells whether other code uses it too, ``unknown`` whether it may hold
    keys that could not be read.
    """

    values: dict[str, bool | None] = field(default_factory=dict)
    literal: cst.Dict | None = None
    shared: bool = False
    unknown: bool = False

    @property
    def all_off(self) -> bool:
        """Every key that is given is False: the Expert-mode idiom, no decision about single passes."""
        return bool(self.values) and all(value is False for value in self.values.values())


def read_configs(file: FileKernels, compilation: Compilation, elsewhere: Container[str] = ()) -> Configs:
    """What a compilation's ``pass_configs`` says; ``elsewhere`` holds names used in parts of the file set aside."""
    result = Configs()
    node = compilation.kwargs.get("pass_configs")
    if node is None or (isinstance(node, cst.Name) and node.value == "None"):
        return result
    _read_value(file, node, result, 0)
    if isinstance(node, cst.Name) and node.value in elsewhere:
        result.shared = True
    return result


def _read_value(file: FileKernels, node: cst.BaseExpression, result: Configs, depth: int) -> None:
    if depth > 8:
        result.unknown = True
    elif isinstance(node, cst.Dict):
        if depth == 0 or result.literal is None:
            result.literal = node
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                _read_pair(file, element.key, element.value, result)
            elif isinstance(element, cst.StarredDictElement):
                _read_nested(file, element.value, result, depth)
    elif isinstance(node, cst.Name):
        _read_name(file, node.value, result, depth)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        _read_nested(file, node.left, result, depth)
        _read_nested(file, node.right, result, depth)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        for arg in node.args:
            if (arg.keyword is None and not arg.star) or arg.star == "**":
                _read_nested(file, arg.value, result, depth)
    else:
        result.unknown = True


def _read_nested(file: FileKernels, node: cst.BaseExpression, result: Configs, depth: int) -> None:
    inner = Configs()
    _read_value(file, node, inner, depth + 1)
    result.values.update(inner.values)
    result.unknown = result.unknown or inner.unknown


def _read_name(file: FileKernels, name: str, result: Configs, depth: int) -> None:
    """A name: its assignment, and whatever is put into the dict afterwards."""
    found = False
    for small in file.index.statements:
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = small.targets[0].target
            if isinstance(target, cst.Name) and target.value == name:
                found = True
                _read_value(file, small.value, result, depth + 1)
            elif (
                isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and target.value.value == name
            ):
                index = target.slice[0].slice
                if isinstance(index, cst.Index):
                    _read_pair(file, index.value, small.value, result)
        elif isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name) and small.target.value == name:
            if small.value is not None:
                found = True
                _read_value(file, small.value, result, depth + 1)
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            func = small.value.func
            if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value == name:
                if func.attr.value == "update" and len(small.value.args) == 1:
                    _read_nested(file, small.value.args[0].value, result, depth)
                else:
                    result.unknown = True
    result.unknown = result.unknown or not found
    uses = [n for n in names_in(file.index.module) if n.value == name]
    # the assignment itself and this compilation are two uses
    result.shared = result.shared or len(uses) > 2


def key_of(file: FileKernels, node: cst.BaseExpression) -> str | None:
    """The canonical name of a pass config key, from the enum or from its string."""
    if isinstance(node, cst.Attribute) and node.attr.value == "value":
        node = node.value
    if isinstance(node, (cst.SimpleString, cst.Name)):
        value = file.evaluator.static(node, file.module_env)
        if isinstance(value, str):
            return canonical_key(value)
    resolved = file.names.resolve(node)
    return canonical_key(resolved) if resolved else None


def _read_pair(file: FileKernels, key: cst.BaseExpression, value: cst.BaseExpression, result: Configs) -> None:
    name = key_of(file, key)
    if name is None:
        return
    known = file.evaluator.static(value, file.module_env)
    result.values[name] = known if isinstance(known, bool) else None
