"""The element types that an expression of host code may give: names, choices, tables and functions are seen through."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.bindings import element_pairs
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import functions
from tl2npu.passes.job import Job
from tl2npu.source.literals import text_of
from tl2npu.source.named_by_call import returns
from tl2npu.source.tree import children

LIBRARY = {
    "tilelang.language.fp8.determine_fp8_type": "float8_e4m3fn",
    "tilelang.language.fp8.determine_torch_fp8_type": "float8_e4m3fn",
}
"""Functions of GPU TileLang that give a type, with one of those that they give."""
_DEPTH = 8
"""How many names and functions may stand behind each other."""


class Scope:
    """A function that an expression stands in, with what its parameters are given; None for the module."""

    def __init__(self, function: cst.FunctionDef | None, given: dict[str, tuple[cst.BaseExpression, Scope]]) -> None:
        self.function, self.given = function, given


class TypeValues:
    """The types that expressions of a file may have as their value."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.functions = {node.name.value: node for node in functions(job.module)}

    def within(self, node: cst.BaseExpression, function: cst.FunctionDef | None) -> list[str | None]:
        """The names of all types that an expression may give, None for each that is not known from the file."""
        return list(dict.fromkeys(self._of(node, Scope(function, {}), 0)))

    def hidden(self, node: cst.BaseExpression, function: cst.FunctionDef | None) -> str:
        """The call that picks the type and that is not seen through; empty if there is none."""
        scope = Scope(function, {})
        seen: list[cst.BaseExpression] = []
        while not isinstance(node, cst.Call):
            found = list(self._bound(node.value, scope)) if isinstance(node, cst.Name) else []
            if len(found) != 1 or any(node is other for other in seen):
                return ""
            seen.append(node)
            node, scope = found[0]
        return code(node) if None in self._of(node, scope, 0) else ""

    def _of(self, node: cst.BaseExpression, scope: Scope, depth: int) -> Iterator[str | None]:
        if depth > _DEPTH:
            yield None
            return
        resolved = self.job.file.names.resolve(node)
        if isinstance(node, cst.SimpleString):
            yield str(text_of(node))
        elif resolved is not None and resolved.startswith(("tilelang.language.", "torch.")):
            yield resolved.rsplit(".", 1)[-1]
        elif isinstance(node, cst.IfExp):
            yield from self._of(node.body, scope, depth)
            yield from self._of(node.orelse, scope, depth)
        elif isinstance(node, cst.Subscript) and (items := self._items(node.value, scope)):
            for item in items:
                yield from self._of(item, scope, depth + 1)
        elif isinstance(node, cst.Call):
            yield from self._called(node, scope, depth)
        elif isinstance(node, cst.Name):
            found = list(self._bound(node.value, scope))
            for value, where in found:
                yield from self._of(value, where, depth + 1)
            if not found:
                yield None
        else:
            yield None

    def _items(self, node: cst.BaseExpression, scope: Scope) -> list[cst.BaseExpression]:
        """The values of a table that is written in the file."""
        found = [(node, scope)] if not isinstance(node, cst.Name) else list(self._bound(node.value, scope))
        if len(found) != 1 or not isinstance(table := found[0][0], cst.Dict):
            return []
        return [item.value for item in table.elements if isinstance(item, cst.DictElement)]

    def _called(self, node: cst.Call, scope: Scope, depth: int) -> Iterator[str | None]:
        resolved = self.job.file.names.resolve(node.func)
        if resolved in LIBRARY:
            yield LIBRARY[resolved]
            return
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            items = self._items(node.func.value, scope)
            defaults = [arg.value for arg in node.args[1:2]]
            for item in (*items, *defaults) if items else ():
                yield from self._of(item, scope, depth + 1)
            if items:
                return
        function = self.functions.get(node.func.value) if isinstance(node.func, cst.Name) else None
        results = returns(function) if function is not None and not function.decorators else []
        if function is None or not results:
            yield None
            return
        inner = Scope(function, dict(_arguments(function, node, scope)))
        for result in results:
            if result.value is not None:
                yield from self._of(result.value, inner, depth + 1)

    def _bound(self, name: str, scope: Scope) -> Iterator[tuple[cst.BaseExpression, Scope]]:
        """What a name may stand for: what the function binds it to or was given, else what the module does."""
        if scope.function is not None:
            if name in scope.given:
                yield scope.given[name]
                return
            own = list(_assigned(scope.function.body, name))
            yield from ((value, scope) for value in own)
            if own or any(param.name.value == name for param in _params(scope.function)):
                return
        outside = Scope(None, {})
        yield from ((value, outside) for value in _assigned(self.job.module, name))


def _arguments(
    function: cst.FunctionDef, call: cst.Call, scope: Scope
) -> Iterator[tuple[str, tuple[cst.BaseExpression, Scope]]]:
    names = [param.name.value for param in _params(function)]
    for param in _params(function):
        if param.default is not None:
            yield param.name.value, (param.default, Scope(None, {}))
    for position, arg in enumerate(call.args):
        if arg.keyword is not None:
            yield arg.keyword.value, (arg.value, scope)
        elif not arg.star and position < len(names):
            yield names[position], (arg.value, scope)


def _params(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    return (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)


def _assigned(node: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """The values that statements give to a name, not those of functions inside."""
    pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    if isinstance(node, cst.Assign):
        pairs = [(target.target, node.value) for target in node.targets]
    elif isinstance(node, cst.AnnAssign) and node.value is not None:
        pairs = [(node.target, node.value)]
    for target, value in pairs:
        for left, right in element_pairs(target, value) or [(target, value)]:
            if isinstance(left, cst.Name) and left.value == name:
                yield right
            elif isinstance(left, (cst.Tuple, cst.List)) and name in code(left):
                yield value  # unpacked: what the name is given is not known
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
        return
    for child in children(node):
        yield from _assigned(child, name)
