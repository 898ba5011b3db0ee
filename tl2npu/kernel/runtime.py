"""What has a value only when a kernel is launched, and what Python decides while it builds the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, element_pairs, target_names
from tl2npu.kernel.environment import Closure, Env
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Branch, Kernel
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.literals import text_of
from tl2npu.source.named_by_call import returns
from tl2npu.source.names import Names
from tl2npu.source.tree import SubclassesOf, calls_in, children, names_in, nodes_of, remembered

_SYMBOLIC = ("symbolic", "dynamic", "dyn", "var")
_ASKS = frozenset({"isinstance", "type", "hasattr"})
_BINDS_NOTHING = SubclassesOf(cst.FunctionDef, cst.ClassDef, cst.BaseExpression)
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
        if not isinstance(branch.node, cst.If) or self.is_late(branch.cond.sym):
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


def symbols_of(file: FileKernels) -> dict[str, str]:
    """``M = T.symbolic("m")``, ``M, N = T.const("m, n")``: names with the texts."""
    found: dict[str, str] = {}
    for node in nodes_of(file.index.module, cst.Assign):
        assert isinstance(node, cst.Assign)
        whole = node.targets[0].target
        for target, call in element_pairs(whole, node.value) or [(whole, node.value)]:
            text = call.args[0].value if isinstance(call, cst.Call) and call.args else None
            if not isinstance(text, cst.SimpleString) or not isinstance(call, cst.Call):
                continue
            if file.names.operator(call.func) in (*_SYMBOLIC, "const"):
                several = target.elements if isinstance(target, (cst.Tuple, cst.List)) else [cst.Element(target)]
                texts = [one.strip() for one in str(text_of(text)).split(",")]
                names = [element.value for element in several]
                found |= {n.value: one for n, one in zip(names, texts, strict=False) if isinstance(n, cst.Name)}
    return found


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
        for call in calls_in(self.file.index.module):
            if type(call.func) is not cst.Name or call.func.value != function.name.value:
                continue
            around = self.of(self.file.index.enclosing(call, cst.FunctionDef))
            for i, arg in enumerate(call.args):
                if self._is_late(arg.value, around):
                    name = arg.keyword.value if arg.keyword else order[i] if i < len(order) else ""
                    found |= {param.name.value for param in every} if arg.star else {name}
        return found - {""}

    def _closed(self, body: Sequence[cst.CSTNode], given: Iterable[str]) -> frozenset[str]:
        found, bindings = set(given), _bindings(body)
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
    return (statement for statement in body if type(statement) is cst.FunctionDef)


def _bindings(body: Sequence[cst.CSTNode]) -> list[_Binding]:
    """Names with the values that statements give them, also under conditions and in loops."""
    return [binding for statement in body for binding in _bindings_of(statement)]


@remembered
def _bindings_of(statement: cst.CSTNode) -> Sequence[_Binding]:
    if type(statement) is cst.Assign:
        pairs = [
            pair
            for item in statement.targets
            for pair in element_pairs(item.target, statement.value) or [(item.target, statement.value)]
        ]
        return [(target_names(target), value) for target, value in pairs]
    if type(statement) is cst.AnnAssign or type(statement) is cst.AugAssign:
        return [] if statement.value is None else [(target_names(statement.target), statement.value)]
    if _BINDS_NOTHING[type(statement)]:
        return []
    head = [(target_names(statement.target), statement.iter)] if type(statement) is cst.For else []
    return [*head, *_bindings(children(statement))]


def _is_late(node: cst.CSTNode, names: AbstractSet[str], resolver: Names) -> bool:
    """``T.symbolic(...)`` or one of the names has a part in the value."""
    parts = _parts(node)
    if not parts.names.isdisjoint(names):
        return True
    called = (resolver.resolve(func) or "" for func in parts.called)
    if any(name.startswith("tilelang.") and name.rsplit(".", 1)[-1] in _SYMBOLIC for name in called):
        return True
    return any((resolver.resolve(value) or "").endswith(".dyn") for value in parts.indexed)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What has a part in a value: names, functions that are called, what is indexed.

    What Python asks about a value, or decides by it, is no part of what comes of it.
    """

    names: AbstractSet[str]
    called: Sequence[cst.BaseExpression]
    indexed: Sequence[cst.BaseExpression]


@remembered
def _parts(node: cst.CSTNode) -> _Parts:
    names: set[str] = set()
    called: list[cst.BaseExpression] = []
    indexed: list[cst.BaseExpression] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if type(part) is cst.Name:
            names.add(part.value)
        elif type(part) is cst.Attribute or type(part) is cst.Arg:
            stack.append(part.value)
        elif type(part) is cst.IfExp:
            stack += (part.body, part.orelse)
        elif type(part) is cst.Call:
            if type(part.func) is not cst.Name or part.func.value not in _ASKS:
                called.append(part.func)
                stack += children(part)
        elif type(part) is not cst.Comparison or not isinstance(part.comparisons[0].operator, (cst.Is, cst.IsNot)):
            if type(part) is cst.Subscript:
                indexed.append(part.value)
            stack += children(part)
    return _Parts(names, called, indexed)
