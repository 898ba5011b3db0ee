"""What the statements of a file do to the names of their scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import libcst as cst

from tl2npu.source.forwarding import callee_of
from tl2npu.source.named_by_call import key_of_globals, members_of
from tl2npu.source.tree import HOLDS_LINES, SubclassesOf, children, nodes_of, remembered

IS_STATEMENT = SubclassesOf(cst.BaseSmallStatement, cst.BaseCompoundStatement)
MAY_NAME = SubclassesOf(cst.Call, cst.Subscript, cst.IfExp, cst.BooleanOperation)
"""Expressions other than names and attributes that may mean a module."""
_HOLDS_STATEMENTS = SubclassesOf(cst.SimpleStatementLine, cst.BaseSmallStatement, *HOLDS_LINES.bases)
# One thing, several import paths (tilelang/__init__.py and tilelang/language/__init__.py re-export them).
REEXPORTS = {
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


def canonical(dotted: str) -> str:
    """The one name of a thing that can be imported from several places."""
    return REEXPORTS.get(dotted, dotted)


def stands_for(callee: str, always: bool) -> bool:
    """Whether a function that hands all to ``callee`` is it: what compiles kernels, also if only in one branch."""
    return is_tilelang(callee) and (always or not callee.startswith("tilelang.language."))


@dataclass(frozen=True, eq=False)
class Binding:
    """One thing that a name is bound to: a dotted name, the expression of an alias, or neither (unknown).

    ``part``: which elements of the alias, outermost first. ``branches``: what each branch of an ``if`` binds the name
    to. ``definition``: a function or class; ``alias`` is what it hands all that it is given to, ``always`` or in one of
    its branches. ``default``: the alias is what a parameter is without an argument.
    ``late``: a function binds it, by ``global``.
    ``weak`` marks fall-backs (``except ImportError: T = None``), which count only where nothing else binds the name.
    ``sure`` is False where a branch of an ``if`` binds it and the others do not: ``if __name__ == "__main__":``. A
    ``try`` around an import counts as sure: without torch or TileLang there is nothing to compile.
    """

    dotted: str | None = None
    alias: cst.BaseExpression | None = None
    weak: bool = False
    part: tuple[int, ...] = ()
    branches: tuple[tuple[Binding, ...], ...] = ()
    definition: cst.FunctionDef | cst.ClassDef | None = None
    default: bool = False
    late: bool = False
    always: bool = True
    sure: bool = True

    @property
    def tells(self) -> bool:
        """False where nothing can be known of it."""
        return self.dotted is not None or self.alias is not None or bool(self.branches)


UNKNOWN = Binding()


@dataclass(frozen=True, eq=False)
class Bound:
    """What a statement, with all in it but the bodies of functions and classes, does to the names of its scope.

    ``stars``: modules that it imports with ``*``; ``inner``: the functions and classes in it; ``outside``: names that
    are those of the module wherever it stands.
    """

    bindings: Sequence[tuple[str, Binding]] = ()
    stars: tuple[str, ...] = ()
    inner: Sequence[cst.FunctionDef | cst.ClassDef] = ()
    outside: frozenset[str] = frozenset()


_NOTHING = Bound()


def params_of(params: cst.Parameters) -> Iterator[cst.Param]:
    yield from params.posonly_params
    yield from params.params
    yield from params.kwonly_params
    for star in (params.star_arg, params.star_kwarg):
        if type(star) is cst.Param:
            yield star


@remembered
def has_members(node: cst.ClassDef) -> bool:
    """May an attribute of the class or of its instances stand for a module?"""
    if any(
        isinstance(value, (cst.Name, *MAY_NAME.bases, cst.Attribute))
        for several in members_of(node).values()
        for value in several
    ):
        return True
    return any(binding.tells for statement in node.body.body for _, binding in bound_in(statement).bindings)


def only_imports(node: cst.CSTNode) -> bool:
    return type(node) is cst.SimpleStatementLine and all(
        type(small) is cst.Import or type(small) is cst.ImportFrom for small in node.body
    )


@remembered
def bound_in(node: cst.CSTNode) -> Bound:
    kind = type(node)
    if kind is cst.Expr:
        return _NOTHING
    bindings: list[tuple[str, Binding]] = []
    if type(node) is cst.FunctionDef or type(node) is cst.ClassDef:
        forwarded = callee_of(node) if type(node) is cst.FunctionDef else None
        callee, always = forwarded if forwarded is not None else (None, True)
        return Bound([(node.name.value, Binding(alias=callee, definition=node, always=always))], (), [node])
    if type(node) is cst.Import or type(node) is cst.ImportFrom:
        return _imported(node)
    if type(node) is cst.Assign or type(node) is cst.AnnAssign or type(node) is cst.AugAssign:
        return _assignment(node)
    if type(node) is cst.Global:
        return Bound(outside=frozenset(item.name.value for item in node.names))
    if IS_STATEMENT[kind]:
        bindings += [(name, UNKNOWN) for name in _bound_by(cast("cst.BaseCompoundStatement", node))]
    stars: tuple[str, ...] = ()
    inner: list[cst.FunctionDef | cst.ClassDef] = []
    outside = frozenset[str]()
    branches: list[Sequence[tuple[str, Binding]]] = []
    for child in children(node):
        if _HOLDS_STATEMENTS[type(child)]:
            below = bound_in(child)
            branches.append(below.bindings)
            stars += below.stars
            inner += below.inner
            outside |= below.outside
    bindings += _either(branches) if kind is cst.If else [item for branch in branches for item in branch]
    if kind is cst.ExceptHandler:
        bindings = [(name, replace(binding, weak=True)) for name, binding in bindings]
    return Bound(bindings, stars, inner, outside) if bindings or stars or inner or outside else _NOTHING


def _either(branches: Sequence[Sequence[tuple[str, Binding]]]) -> list[tuple[str, Binding]]:
    """What the branches of an ``if`` bind; a name that several of them bind is one binding."""
    by_name: dict[str, list[tuple[Binding, ...]]] = {}
    for branch in branches:
        for name in dict.fromkeys(name for name, _ in branch):
            by_name.setdefault(name, []).append(tuple(item for bound, item in branch if bound == name))
    found: list[tuple[str, Binding]] = []
    for name, several in by_name.items():
        whole = len(several) > 1 and any(item.tells for branch in several for item in branch)
        sure = len(several) > 1 and all(any(item.sure for item in branch) for branch in several)
        plain = [(name, replace(item, sure=sure and item.sure)) for branch in several for item in branch]
        found += [(name, Binding(branches=tuple(several), sure=sure))] if whole else plain
    return found


def _imported(node: cst.Import | cst.ImportFrom) -> Bound:
    prefix = ""
    if type(node) is cst.ImportFrom:
        prefix = "." * len(node.relative) + (_dotted_text(node.module) if node.module else "")
        if type(node.names) is cst.ImportStar:
            return Bound((), (prefix,))
        prefix += "" if prefix.endswith(".") else "."
    assert not isinstance(node.names, cst.ImportStar)
    found: list[tuple[str, Binding]] = []
    for item in node.names:
        dotted = prefix + _dotted_text(item.name)
        if item.asname is not None:
            assert type(item.asname.name) is cst.Name
            name = item.asname.name.value
        else:
            name = _dotted_text(item.name).split(".")[0]
            dotted = prefix + name
        found.append((name, Binding(REEXPORTS.get(dotted, dotted))))
    return Bound(found)


def _assignment(node: cst.Assign | cst.AnnAssign | cst.AugAssign) -> Bound:
    targets = [item.target for item in node.targets] if type(node) is cst.Assign else [node.target]  # type: ignore[union-attr]
    value = None if type(node) is cst.AugAssign else node.value
    found: list[tuple[str, Binding]] = []
    outside: set[str] = set()
    for target in targets:
        key = key_of_globals(target)
        if key is not None:
            outside.add(key)
            found.append((key, Binding(alias=value)))
        found += _assigned(target, value, ())
    return Bound(found, outside=frozenset(outside))


def _assigned(
    target: cst.BaseExpression, value: cst.BaseExpression | None, part: tuple[int, ...]
) -> Iterator[tuple[str, Binding]]:
    """What an assignment to a target gives its names; ``part``: the element of the value that goes there."""
    if type(target) is cst.Name:
        nothing = type(value) is cst.Name and value.value == "None"
        may_tell = (
            type(value) is cst.Name or type(value) is cst.Attribute or (value is not None and _may_name(value, part))
        )
        yield target.value, Binding(alias=value if may_tell and not nothing else None, weak=nothing, part=part)
    elif type(target) is cst.Tuple or type(target) is cst.List:
        starred = any(type(element) is cst.StarredElement for element in target.elements)
        for place, element in enumerate(target.elements):
            yield from _assigned(element.value, None if starred else value, (*part, place))


def _may_name(value: cst.BaseExpression, part: tuple[int, ...]) -> bool:
    """Whether something may be known of an assigned value, or of that element of it."""
    if type(value) is cst.Call:
        return type(value.func) is cst.Name or (
            type(value.func) is cst.Attribute and value.func.attr.value == "import_module"
        )
    if part:
        return type(value) is cst.Tuple or type(value) is cst.List
    return MAY_NAME[type(value)]


def _bound_by(node: cst.BaseSmallStatement | cst.BaseCompoundStatement) -> Iterator[str]:
    """Names that a statement binds itself, other than imports, assignments and definitions."""
    if type(node) is cst.For:
        yield from targets_of(node.target)
    elif type(node) is cst.With:
        for item in node.items:
            if item.asname is not None:
                yield from targets_of(item.asname.name)
    elif isinstance(node, (cst.Try, cst.TryStar)):
        for handler in node.handlers:
            if handler.name is not None:
                yield from targets_of(handler.name.name)
    elif type(node) is cst.Match:
        for case in node.cases:
            found: tuple[cst.MatchAs | cst.MatchStar, ...]
            found = (*nodes_of(case.pattern, cst.MatchAs), *nodes_of(case.pattern, cst.MatchStar))
            yield from (part.name.value for part in found if part.name is not None)


def targets_of(node: cst.BaseExpression) -> Iterator[str]:
    if type(node) is cst.Name:
        yield node.value
    elif type(node) is cst.Tuple or type(node) is cst.List:
        for element in node.elements:
            yield from targets_of(element.value)


def _dotted_text(node: cst.BaseExpression) -> str:
    if type(node) is cst.Attribute:
        return f"{_dotted_text(node.value)}.{node.attr.value}"
    assert type(node) is cst.Name
    return node.value


def is_tilelang(dotted: str) -> bool:
    """True for TileLang and everything in it."""
    return dotted == "tilelang" or dotted.startswith("tilelang.")


@remembered
def global_names(function: cst.FunctionDef) -> frozenset[str]:
    """The names of the module that a function may bind."""
    return frozenset[str]().union(*(bound_in(statement).outside for statement in function.body.body))
