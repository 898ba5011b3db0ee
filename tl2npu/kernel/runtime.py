"""What has a value only when a kernel is launched, and what Python decides while it builds the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, element_pairs, returns, target_names
from tl2npu.kernel.expressions import Closure, Env
from tl2npu.kernel.factory import FileKernels, Located, calls
from tl2npu.kernel.model import Branch, Kernel
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.names import Names
from tl2npu.source.tree import children, names_in

_SYMBOLIC = ("symbolic", "dynamic", "dyn", "var")
_ASKS = frozenset({"isinstance", "type", "hasattr"})
_Binding = tuple[AbstractSet[str], cst.CSTNode]


@dataclass(frozen=True, eq=False)
class Late:
    """``names`` have a value only when a kernel is launched; ``outer`` is the environment that the kernel stands in."""

    names: AbstractSet[str]
    outer: Env
    resolver: Names

    @classmethod
    def of(cls, file: FileKernels, located: Located, kernel: Kernel) -> Late:
        """``T.symbolic`` sizes and scalar parameters of a kernel."""
        return cls(runtime_names(file, located) | set(kernel.scalars), located.env, file.names)

    def is_late(self, sym: Sym) -> bool:
        """True if the value changes from block to block or from call to call: no constant for the compiler."""
        return any(self._is_late_name(name) for name in sym.variables())

    def _is_late_name(self, name: str) -> bool:
        plain, _, version = name.partition("@")
        return bool(version and "." not in version) or plain in self.names  # a dot: bound anew by the factory

    def python_decides(self, branch: Branch) -> bool:
        """Whether Python takes one arm while it builds the kernel: nothing of the kernel or of a launch is asked."""
        if not isinstance(branch.node, cst.If) or branch.env is None or self.is_late(branch.cond.sym):
            return False
        test = branch.node.test
        return not _is_late(test, frozenset(), self.resolver) and self.is_outside(test, branch.env)

    def is_outside(self, node: cst.BaseExpression, env: Env) -> bool:
        """Every name is bound outside of the kernel; parameters of macros stand for what they are given."""
        for name in names_in(node):
            value = env.lookup(name.value)
            if isinstance(value, Closure):
                if not self.is_outside(value.node, value.env):
                    return False
            elif value is not None and not self._binds_outside(name.value, env):
                return False
        return True

    def _binds_outside(self, name: str, env: Env) -> bool:
        around, level = {id(found) for found in _with_parents(self.outer)}, env
        while name not in level.values and level.parent is not None:
            level = level.parent
        return id(level) in around


def _with_parents(env: Env | None) -> Iterator[Env]:
    while env is not None:
        yield env
        env = env.parent


def runtime_names(file: FileKernels, located: Located) -> frozenset[str]:
    """Names outside of a kernel that stand for ``T.symbolic(...)``, or for what is worked out from such a value.

    A parameter of a factory is one if a call gives it such a value.
    """
    return _Scopes(file).of(file.index.enclosing(located.node, cst.FunctionDef))


class _Scopes:
    """The names of each function, found once."""

    def __init__(self, file: FileKernels) -> None:
        self.file = file
        self.known: dict[int, frozenset[str]] = {}

    def of(self, function: cst.FunctionDef | None) -> frozenset[str]:
        """The names in a function and around it; None is the module."""
        key = id(function)
        if key not in self.known:
            self.known[key] = frozenset()  # for a function that calls itself
            self.known[key] = self._find(function)
        return self.known[key]

    def _find(self, function: cst.FunctionDef | None) -> frozenset[str]:
        if function is None:
            return self._closed(self.file.index.module.body, ())
        outside = self.of(self.file.index.enclosing(function, cst.FunctionDef))
        params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
        bound = {param.name.value for param in params} | assigned_names(function.body)
        return self._closed(function.body.body, (outside - bound) | self._given(function, outside))

    def _given(self, function: cst.FunctionDef, outside: AbstractSet[str]) -> set[str]:
        """Parameters whose defaults, or what a call gives them, are such values."""
        positional = (*function.params.posonly_params, *function.params.params)
        order = [param.name.value for param in positional]
        every = (*positional, *function.params.kwonly_params)
        found = {p.name.value for p in every if p.default is not None and self._is_late(p.default, outside)}
        for call in calls(self.file.index.module):
            if not (isinstance(call.func, cst.Name) and call.func.value == function.name.value):
                continue
            around = self.of(self.file.index.enclosing(call, cst.FunctionDef))
            for i, arg in enumerate(call.args):
                if self._is_late(arg.value, around):
                    name = arg.keyword.value if arg.keyword else order[i] if i < len(order) else ""
                    found |= {param.name.value for param in every} if arg.star else {name}
        return found - {""}

    def _closed(self, body: Sequence[cst.CSTNode], given: Iterable[str]) -> frozenset[str]:
        found, bindings = set(given), list(_bindings(body))
        helpers = [statement for statement in _functions(body) if not statement.decorators]
        grown = True
        while grown:
            before = len(found)
            for names, value in bindings:
                if not names <= found and self._is_late(value, found):
                    found |= names
            if found:
                found |= {helper.name.value for helper in helpers if self._returns_late(helper, found)}
            grown = len(found) > before
        return frozenset(found)

    def _returns_late(self, helper: cst.FunctionDef, around: AbstractSet[str]) -> bool:
        if helper.name.value in around:
            return True
        params = (*helper.params.posonly_params, *helper.params.params, *helper.params.kwonly_params)
        own = {param.name.value for param in params} | assigned_names(helper.body)
        inside = self._closed(helper.body.body, around - own)
        return any(line.value is not None and self._is_late(line.value, inside) for line in returns(helper))

    def _is_late(self, node: cst.CSTNode, names: AbstractSet[str]) -> bool:
        return _is_late(node, names, self.file.names)


def _functions(body: Sequence[cst.CSTNode]) -> Iterator[cst.FunctionDef]:
    return (statement for statement in body if isinstance(statement, cst.FunctionDef))


def _bindings(body: Sequence[cst.CSTNode]) -> Iterator[_Binding]:
    """Names with the values that statements give them, also under conditions and in loops."""
    for statement in body:
        if isinstance(statement, cst.Assign):
            for item in statement.targets:
                for target, value in element_pairs(item.target, statement.value) or [(item.target, statement.value)]:
                    yield target_names(target), value
        elif isinstance(statement, (cst.AnnAssign, cst.AugAssign)):
            if statement.value is not None:
                yield target_names(statement.target), statement.value
        elif isinstance(statement, cst.For):
            yield target_names(statement.target), statement.iter
            yield from _bindings(children(statement))
        elif not isinstance(statement, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
            yield from _bindings(children(statement))


def _is_late(node: cst.CSTNode, names: AbstractSet[str], resolver: Names) -> bool:
    """``T.symbolic(...)`` or one of the names has a part in the value.

    What Python asks about such a value, or decides by it, is no part of what comes of it.
    """
    if type(node) is cst.Name:
        return node.value in names
    if type(node) is cst.Call:
        if isinstance(node.func, cst.Name) and node.func.value in _ASKS:
            return False
        resolved = resolver.resolve(node.func) or ""
        if resolved.startswith("tilelang.") and resolved.rsplit(".", 1)[-1] in _SYMBOLIC:
            return True
    if type(node) is cst.Subscript and (resolver.resolve(node.value) or "").endswith(".dyn"):
        return True
    if type(node) is cst.Comparison and isinstance(node.comparisons[0].operator, (cst.Is, cst.IsNot)):
        return False
    parts = children(node)
    if type(node) is cst.Attribute or type(node) is cst.Arg:
        parts = [node.value]
    elif type(node) is cst.IfExp:
        parts = [node.body, node.orelse]
    return any(_is_late(part, names, resolver) for part in parts)
