"""What ``pass_configs`` of a compilation says, however it is written."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import cast

import libcst as cst

from tl2npu.dialects.pass_configs import canonical_key
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.tree import calls_in, mentioned, names_in, nodes_of

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
    sure: set[str] = field(default_factory=set)

    def is_on(self, key: str) -> bool:
        """The key is certainly True: nothing unread comes after it."""
        return self.values.get(key) is True and (not self.unknown or key in self.sure)

    @property
    def all_off(self) -> bool:
        """Every key that is given is False: the Expert-mode idiom, no decision about single passes."""
        return bool(self.values) and not self.unknown and all(value is False for value in self.values.values())


def read_configs(file: FileKernels, compilation: Compilation, elsewhere: Container[str] = ()) -> Configs:
    """What a compilation's ``pass_configs`` says; ``elsewhere`` holds names used in parts of the file set aside."""
    result = Configs()
    node = compilation.kwargs.get("pass_configs")
    if node is None or (isinstance(node, cst.Name) and node.value == "None"):
        return result
    if isinstance(node, cst.Name) and _is_argument(file, compilation.node, node.value):
        result.unknown = True
        return result
    _read_value(file, node, result, 0)
    if isinstance(node, cst.Name) and node.value in elsewhere:
        result.shared = True
    return result


def _is_argument(file: FileKernels, node: cst.CSTNode, name: str) -> bool:
    """True if a function around the compilation binds the name: it is not the module's."""
    for above in file.index.ancestors(node):
        if isinstance(above, cst.FunctionDef) and any(node is item.decorator for item in above.decorators):
            continue  # the decorated function itself
        if isinstance(above, cst.FunctionDef):
            params = (*above.params.posonly_params, *above.params.params, *above.params.kwonly_params)
            if any(param.name.value == name for param in params):
                return True
            if any(name in assigned_names(statement) for statement in above.body.body):
                return True
    return False


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
    elif _or_nothing(node):
        _read_nested(file, cast("cst.BooleanOperation", node).left, result, depth)
    else:
        result.unknown = True


def _or_nothing(node: cst.BaseExpression) -> bool:
    """``x or {}``: what ``x`` says, if it says anything."""
    is_or = isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
    return is_or and isinstance(node.right, cst.Dict) and not node.right.elements  # type: ignore[attr-defined]


def _read_nested(file: FileKernels, node: cst.BaseExpression, result: Configs, depth: int) -> None:
    inner = Configs()
    _read_value(file, node, inner, depth + 1)
    result.values.update(inner.values)
    if inner.unknown:
        result.unknown = True
        result.sure = inner.sure  # what comes behind what could not be read
    else:
        result.sure |= set(inner.values)


def _read_name(file: FileKernels, name: str, result: Configs, depth: int) -> None:
    """A name of the module: its assignment, and whatever is put into the dict afterwards."""
    found = False
    for statement in file.index.module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            if not isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and _may_change(statement, name):
                result.unknown = True  # changed under a condition or in a loop
                result.sure.clear()
            continue
        for small in statement.body:
            if isinstance(small, (cst.Assign, cst.AnnAssign)) and _is_plain(small, name):
                found = True
                if small.value is not None:
                    _read_value(file, small.value, result, depth + 1)
            elif name in mentioned(small) and not _read_change(file, small, name, result, depth):
                result.unknown = True
                result.sure.clear()
    result.unknown = result.unknown or not found
    uses = [n for n in names_in(file.index.module) if n.value == name]
    # the assignment itself and this compilation are two uses
    result.shared = result.shared or len(uses) > 2


def _is_plain(small: cst.Assign | cst.AnnAssign, name: str) -> bool:
    """``name = value`` and nothing else."""
    targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else [small.target]
    return len(targets) == 1 and isinstance(targets[0], cst.Name) and targets[0].value == name


def _read_change(file: FileKernels, small: cst.BaseSmallStatement, name: str, result: Configs, depth: int) -> bool:
    """``name[KEY] = value`` and ``name.update({...})``; False for any other statement that mentions the name."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and target.value.value == name:
            index = target.slice[0].slice
            if isinstance(index, cst.Index) and key_of(file, index.value) is not None:
                _read_pair(file, index.value, small.value, result)
                return True
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func = small.value.func
        if (
            isinstance(func, cst.Attribute)
            and isinstance(func.value, cst.Name)
            and func.value.value == name
            and func.attr.value == "update"
            and len(small.value.args) == 1
        ):
            _read_nested(file, small.value.args[0].value, result, depth)
            return True
    # reading it elsewhere changes nothing
    return not isinstance(small, (cst.Del, cst.AugAssign)) and not _calls_method(small, name)


def _may_change(block: cst.CSTNode, name: str) -> bool:
    """A compound statement binds the name, or may give the dict other keys; most only read it."""
    if name not in mentioned(block):
        return False
    parts: list[cst.CSTNode] = [part for node in nodes_of(block, cst.Assign) for part in node.targets]
    parts += [node.target for node in nodes_of(block, cst.AnnAssign)]
    parts += [node.target for node in nodes_of(block, cst.AugAssign)]
    parts += nodes_of(block, cst.Del)
    return name in assigned_names(block) or _calls_method(block, name) or any(name in mentioned(part) for part in parts)


def _calls_method(node: cst.CSTNode, name: str) -> bool:
    """``name.pop(...)``, ``name.clear()`` and the like, or the dict handed to a function that may change it."""
    for inner in calls_in(node):
        if isinstance(inner.func, cst.Attribute):
            owner = inner.func.value
            if isinstance(owner, cst.Name) and owner.value == name:
                return inner.func.attr.value not in ("get", "copy", "items", "keys", "values")
    return False


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
    result.sure.add(name)
