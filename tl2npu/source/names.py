"""What names mean: imports, aliases and shadowing, as dotted canonical names; and how a file spells such a name."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import HOLDS_LINES, SubclassesOf, children, nodes_of, remembered

# One thing, several import paths (tilelang/__init__.py and tilelang/language/__init__.py re-export them).
_REEXPORTS = {
    "tilelang.jit.jit": "tilelang.jit",
    "tilelang.jit.compile": "tilelang.compile",
    "tilelang.jit.JITKernel": "tilelang.JITKernel",
    "tilelang.jit.kernel.JITKernel": "tilelang.JITKernel",
    "tilelang.cache.cached": "tilelang.cached",
    "tilelang.jit.cached": "tilelang.cached",
    "tilelang.transform.PassConfigKey": "tilelang.PassConfigKey",
    "tilelang.transform.pass_config.PassConfigKey": "tilelang.PassConfigKey",
    "tilelang.language.ascend_tile": "tilelang.language.tile",
    "tilelang.language.kernel.Kernel": "tilelang.language.Kernel",
}
# A star import replaces these builtins by operators; the others keep their Python meaning.
_NOT_FROM_STAR = frozenset(dir(builtins)) - {"abs", "max", "min", "pow", "print", "round"}


def canonical(dotted: str) -> str:
    """The one name of a thing that can be imported from several places."""
    return _REEXPORTS.get(dotted, dotted)


_IS_STATEMENT = SubclassesOf(cst.BaseSmallStatement, cst.BaseCompoundStatement)
_IS_COMPREHENSION = SubclassesOf(cst.BaseComp)
_BINDING_EXPRESSIONS: tuple[type[cst.Lambda | cst.CompFor], ...] = (cst.Lambda, cst.CompFor)
_HOLDS_STATEMENTS = SubclassesOf(cst.SimpleStatementLine, cst.BaseSmallStatement, *HOLDS_LINES.bases)


@dataclass(frozen=True, eq=False)
class _Binding:
    """One thing that a name is bound to: a dotted name, the expression of an alias, or neither (unknown).

    ``weak`` marks fall-backs (``except ImportError: T = None``), which count only where nothing else binds the name.
    """

    dotted: str | None = None
    alias: cst.BaseExpression | None = None
    weak: bool = False


_UNKNOWN = _Binding()


@dataclass(frozen=True, eq=False)
class _Bound:
    """What a statement, with all in it but the bodies of functions and classes, does to the names of its scope.

    ``stars``: modules that it imports with ``*``; ``inner``: the functions and classes in it.
    """

    bindings: Sequence[tuple[str, _Binding]] = ()
    stars: tuple[str, ...] = ()
    inner: Sequence[cst.FunctionDef | cst.ClassDef] = ()


_NOTHING = _Bound()


@dataclass(eq=False)
class _Scope:
    outer: _Scope | None
    is_class: bool = False
    bindings: dict[str, list[_Binding]] = field(default_factory=dict)

    def bind(self, name: str, binding: _Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)


class Names:
    """The names of one file. Assignment expressions are not followed; control flow within a scope is not either."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._module = _Scope(None)
        self._inner: dict[int, _Scope] = {}  # function or class -> the scope of its body
        self._resolving: set[int] = set()
        self._resolved: dict[int, tuple[cst.CSTNode, str | None]] = {}
        self._found: dict[tuple[str, int], str | None] = {}  # name, scope -> what it means there
        self._everywhere: dict[str, str | None] = {}  # names that mean the same wherever they stand
        self.star: tuple[str, ...] = ()  # modules that were imported with *
        self._telling: set[str] = set()  # names that something may be known of, in some scope
        self._collect(index.module, self._module)
        self._bound_inside = frozenset[str]().union(*(scope.bindings for scope in self._inner.values()))

    @cached_property
    def functions(self) -> dict[str, list[cst.FunctionDef]]:
        """Every function of the file, by name."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for node in nodes_of(self._index.module, cst.FunctionDef):
            found.setdefault(node.name.value, []).append(node)
        return found

    def is_of_module(self, name: str) -> bool:
        """True for a name that means the same wherever it stands: no function, class or expression binds it."""
        return name not in self._bound_inside and name not in self._bound_in_expressions

    @cached_property
    def _bound_in_expressions(self) -> frozenset[str]:
        """Parameters of lambdas and variables of comprehensions."""
        found: set[str] = set()
        for node in nodes_of(self._index.module, *_BINDING_EXPRESSIONS):
            if isinstance(node, cst.Lambda):
                found.update(param.name.value for param in _params(node.params))
            else:
                found.update(_targets(node.target))
        return frozenset(found)

    def resolve(self, node: cst.BaseExpression, at: cst.CSTNode | None = None) -> str | None:
        """The canonical dotted name of ``a`` or ``a.b.c``, e.g. ``tilelang.language.tile.add``.

        None for anything else and for names that are variables, unknown or ambiguous. A node that is not in the tree
        is looked up as if it stood at ``at``, without that at the end of the module.
        """
        known = self._resolved.get(id(node))
        if known is not None and known[0] is node and at is None:
            return known[1]
        found = self._resolve(node, at)
        if at is None and not self._resolving:
            self._resolved[id(node)] = node, found
        return found

    def _resolve(self, node: cst.BaseExpression, at: cst.CSTNode | None) -> str | None:
        attributes: list[str] = []
        while type(node) is cst.Attribute:
            attributes.append(node.attr.value)
            node = node.value
        if type(node) is not cst.Name or not self._may_tell(node.value):
            return None
        if node.value in self._everywhere:
            dotted = self._everywhere[node.value]
        else:
            dotted = self._lookup(node.value, node if node in self._index else at)
        if dotted is None or not attributes:
            return dotted
        for attribute in reversed(attributes):
            dotted = f"{dotted}.{attribute}"
            dotted = _REEXPORTS.get(dotted, dotted)
        return dotted

    def spell(self, canonical: str, at: cst.CSTNode | None = None) -> str | None:
        """The shortest text by which the file can name ``canonical`` at a node; None if it needs a new import."""
        best: tuple[int, str] | None = None
        scopes = list(_outwards(self._module if at is None else self._scope(at)))
        for scope in scopes:
            for name in scope.bindings:
                dotted = self._lookup(name, at) if name in self._telling else None
                if dotted is None or not (canonical + ".").startswith(dotted + "."):
                    continue
                if best is None or len(dotted) > best[0]:
                    best = len(dotted), name + canonical[len(dotted) :]
        for star in self.star:
            first = canonical[len(star) + 1 :].split(".")[0]
            bound = any(first in scope.bindings for scope in scopes)
            if canonical.startswith(star + ".") and not bound and (best is None or len(star) > best[0] - 1):
                best = len(canonical), canonical[len(star) + 1 :]
        return None if best is None else best[1]

    # -- lookup -----------------------------------------------------------------------------------------------------

    def _lookup(self, name: str, at: cst.CSTNode | None) -> str | None:
        if not self._may_tell(name):
            return None
        in_some = self._index.binds_in_expressions and name in self._bound_in_expressions
        if in_some and at is not None and self._bound_around(name, at):
            return None
        inside = name in self._bound_inside
        scope = self._scope(at) if at is not None and inside else self._module
        key = name, id(scope)
        if key in self._found:
            return self._found[key]
        found = self._look_outwards(name, scope)
        if not self._resolving:  # else an alias that is being looked up counts as unknown
            self._found[key] = found
            if not inside and not in_some:
                self._everywhere[name] = found
        return found

    def _may_tell(self, name: str) -> bool:
        """False for what is a variable wherever it is bound: that is known without looking for the place."""
        return name in self._telling or bool(self.star)

    def _look_outwards(self, name: str, innermost: _Scope) -> str | None:
        for scope in _outwards(innermost):
            if name in scope.bindings:
                return self._meaning(scope.bindings[name])
        if self.star and name not in _NOT_FROM_STAR:
            return f"{self.star[-1]}.{name}"
        return None

    def _meaning(self, bindings: list[_Binding]) -> str | None:
        if len(bindings) == 1:
            return self._dotted(bindings[0])
        strong = [binding for binding in bindings if not binding.weak] or bindings
        found = {self._dotted(binding) for binding in strong}
        return found.pop() if len(found) == 1 else None

    def _dotted(self, binding: _Binding) -> str | None:
        if binding.alias is None or id(binding) in self._resolving:  # `x = x.y` would go round for ever
            return binding.dotted
        self._resolving.add(id(binding))
        try:
            return self.resolve(binding.alias)
        finally:
            self._resolving.discard(id(binding))

    def _scope(self, node: cst.CSTNode) -> _Scope:
        below: cst.CSTNode | None = None
        above: cst.CSTNode | None = node
        while above is not None:
            if below is not None and id(above) in self._inner and _is_body(above, below):
                return self._inner[id(above)]
            below, above = above, self._index.parent(above)
        return self._module

    def _bound_around(self, name: str, node: cst.CSTNode) -> bool:
        """True for parameters of lambdas and variables of comprehensions around a node."""
        for above in self._index.ancestors(node):
            if _IS_STATEMENT[type(above)]:
                return False
            if type(above) is cst.Lambda and any(param.name.value == name for param in _params(above.params)):
                return True
            if _IS_COMPREHENSION[type(above)]:
                assert isinstance(above, cst.BaseComp)
                comp: cst.CompFor | None = above.for_in
                while comp is not None:
                    if name in _targets(comp.target):
                        return True
                    comp = comp.inner_for_in
        return False

    # -- collecting -------------------------------------------------------------------------------------------------

    def _collect(self, block: cst.Module | cst.BaseSuite, scope: _Scope, weak: bool = False) -> None:
        """Bind what the statements of a module, function or class bind. ``weak``: it stands in a fall-back."""
        for statement in block.body:
            bound = _bound_in(statement)
            for name, binding in bound.bindings:
                scope.bind(name, _weakened(binding) if weak else binding)
                if binding.dotted is not None or binding.alias is not None:
                    self._telling.add(name)
            self.star += bound.stars
            for node in bound.inner:
                inner = self._inner[id(node)] = _Scope(scope, type(node) is cst.ClassDef)
                if type(node) is cst.FunctionDef:
                    for param in _params(node.params):
                        inner.bind(param.name.value, _UNKNOWN)
                handler = self._index.enclosing(node, cst.ExceptHandler)
                self._collect(node.body, inner, weak=handler is not None)


def _outwards(innermost: _Scope) -> Iterator[_Scope]:
    """The scopes that a place sees, innermost first; class bodies are seen only from directly inside."""
    scope: _Scope | None = innermost
    while scope is not None:
        if scope is innermost or not scope.is_class:
            yield scope
        scope = scope.outer


def _is_body(above: cst.CSTNode, below: cst.CSTNode) -> bool:
    return (type(above) is cst.FunctionDef or type(above) is cst.ClassDef) and above.body is below


def _params(params: cst.Parameters) -> Iterator[cst.Param]:
    yield from params.posonly_params
    yield from params.params
    yield from params.kwonly_params
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            yield star


@remembered
def _bound_in(node: cst.CSTNode) -> _Bound:
    kind = type(node)
    if kind is cst.Expr:
        return _NOTHING
    bindings: list[tuple[str, _Binding]] = []
    if type(node) is cst.FunctionDef or type(node) is cst.ClassDef:
        return _Bound([(node.name.value, _UNKNOWN)], (), [node])
    if type(node) is cst.Import or type(node) is cst.ImportFrom:
        return _imported(node)
    if type(node) is cst.Assign or type(node) is cst.AnnAssign or type(node) is cst.AugAssign:
        return _Bound(list(_assigned(node)))
    if _IS_STATEMENT[kind]:
        bindings += [(name, _UNKNOWN) for name in _bound_by(cast("cst.BaseCompoundStatement", node))]
    stars: tuple[str, ...] = ()
    inner: list[cst.FunctionDef | cst.ClassDef] = []
    for child in children(node):
        if _HOLDS_STATEMENTS[type(child)]:
            below = _bound_in(child)
            bindings += below.bindings
            stars += below.stars
            inner += below.inner
    if kind is cst.ExceptHandler:
        bindings = [(name, _weakened(binding)) for name, binding in bindings]
    return _Bound(bindings, stars, inner) if bindings or stars or inner else _NOTHING


def _weakened(binding: _Binding) -> _Binding:
    """An import as one that only counts where nothing else binds its name."""
    return binding if binding.dotted is None else _Binding(binding.dotted, weak=True)


def _imported(node: cst.Import | cst.ImportFrom) -> _Bound:
    prefix = ""
    if isinstance(node, cst.ImportFrom):
        prefix = "." * len(node.relative) + (_dotted_text(node.module) if node.module else "")
        if isinstance(node.names, cst.ImportStar):
            return _Bound((), (prefix,))
        prefix += "" if prefix.endswith(".") else "."
    assert not isinstance(node.names, cst.ImportStar)
    found: list[tuple[str, _Binding]] = []
    for item in node.names:
        dotted = prefix + _dotted_text(item.name)
        if item.asname is not None:
            assert isinstance(item.asname.name, cst.Name)
            name = item.asname.name.value
        else:
            name = _dotted_text(item.name).split(".")[0]
            dotted = prefix + name
        found.append((name, _Binding(_REEXPORTS.get(dotted, dotted))))
    return _Bound(found)


def _assigned(node: cst.Assign | cst.AnnAssign | cst.AugAssign) -> Iterator[tuple[str, _Binding]]:
    targets = [item.target for item in node.targets] if type(node) is cst.Assign else [node.target]  # type: ignore[union-attr]
    value = None if type(node) is cst.AugAssign else node.value
    for target in targets:
        if type(target) is cst.Name:
            nothing = type(value) is cst.Name and value.value == "None"
            alias = value if (type(value) is cst.Name or type(value) is cst.Attribute) and not nothing else None
            yield target.value, _Binding(alias=alias, weak=nothing)
        else:
            yield from ((name, _UNKNOWN) for name in _targets(target))


def _bound_by(node: cst.BaseSmallStatement | cst.BaseCompoundStatement) -> Iterator[str]:
    """Names that a statement binds itself, other than imports, assignments and definitions."""
    if isinstance(node, cst.For):
        yield from _targets(node.target)
    elif isinstance(node, cst.With):
        for item in node.items:
            if item.asname is not None:
                yield from _targets(item.asname.name)
    elif isinstance(node, (cst.Try, cst.TryStar)):
        for handler in node.handlers:
            if handler.name is not None:
                yield from _targets(handler.name.name)
    elif isinstance(node, cst.Match):
        for case in node.cases:
            found: tuple[cst.MatchAs | cst.MatchStar, ...]
            found = (*nodes_of(case.pattern, cst.MatchAs), *nodes_of(case.pattern, cst.MatchStar))
            yield from (part.name.value for part in found if part.name is not None)


def _targets(node: cst.BaseExpression) -> Iterator[str]:
    if type(node) is cst.Name:
        yield node.value
    elif type(node) is cst.Tuple or type(node) is cst.List:
        for element in node.elements:
            yield from _targets(element.value)


def _dotted_text(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted_text(node.value)}.{node.attr.value}"
    assert isinstance(node, cst.Name)
    return node.value
