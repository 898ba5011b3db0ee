"""Walking syntax trees without whitespace: the one traversal that everything else uses.

LibCST's own ``.children`` and visitors pass through every whitespace node, which costs as much as the parse.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar, cast

import libcst as cst

_SKIPPED = frozenset(
    "leading_lines leading_whitespace lines_after_decorators header footer trailing_whitespace indent newline comment "
    "comma semicolon lpar rpar lbracket rbracket lbrace rbrace equal dot colon first_colon second_colon".split()
)
NodeT = TypeVar("NodeT")
ResultT = TypeVar("ResultT")

_TEXT = (str, bool, int)


class _Fields(dict[type[cst.CSTNode], tuple[str, ...]]):
    def __missing__(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        names = (
            field.name
            for field in dataclasses.fields(kind)
            if field.name not in _SKIPPED and not field.name.startswith("whitespace_") and field.type not in _TEXT
        )
        return self.setdefault(kind, tuple(names))


_fields = _Fields()


class SubclassesOf(dict[type, bool]):
    """``table[type(x)]`` is ``isinstance(x, bases)``; asking LibCST's abstract classes would be most of a walk."""

    def __init__(self, *bases: type) -> None:
        super().__init__()
        self.bases = bases

    def __missing__(self, kind: type) -> bool:
        return self.setdefault(kind, issubclass(kind, self.bases))


_remembered: list[dict[int, Any]] = []
"""By the id of a node: the node, and what was worked out of it."""


def remembered(function: Callable[[NodeT], ResultT]) -> Callable[[NodeT], ResultT]:
    """Work out a function of one node only once for each node: edits keep what they do not touch.

    Until the end of :func:`one_file` the nodes stay in memory with the results.
    """
    results: dict[int, tuple[NodeT, ResultT]] = {}
    _remembered.append(results)
    known = results.get

    def recall(node: NodeT) -> ResultT:
        found = known(id(node))
        if found is None:
            found = results[id(node)] = node, function(node)
        return found[1]

    return recall


@contextmanager
def one_file() -> Iterator[None]:
    """While a file is worked on. Behind it everything about its nodes is forgotten.

    Trees have no cycles: nearly all memory is freed without a collection, and looking for garbage took a fifth of the
    time. What the file has left is looked for behind it, when there is enough of it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for results in _remembered:
            results.clear()
        if collects:
            gc.enable()


@cache
def subclasses_of(bases: tuple[type, ...]) -> SubclassesOf:
    """The table of these classes, always the same one."""
    return SubclassesOf(*bases)


IS_NODE = SubclassesOf(cst.CSTNode)
_IN_LINES = SubclassesOf(cst.SimpleStatementLine, cst.BaseSmallStatement)
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
HOLDS_LINES = SubclassesOf(
    cst.BaseCompoundStatement,
    cst.BaseSuite,
    cst.Else,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)


def child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a node class that can hold something other than whitespace and punctuation, in class order."""
    return _fields[kind]


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Child nodes in field order (decorators of a function come after its body), without whitespace."""
    found: list[cst.CSTNode] = []
    for name in _fields[type(node)]:
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple or kind is list:
            found += value
        elif IS_NODE[kind]:
            found.append(value)
    return found


def with_children(node: cst.CSTNode, change: Callable[[cst.CSTNode], cst.CSTNode]) -> cst.CSTNode:
    """The node with what ``change`` makes of its child nodes; the very node if that is nothing new."""
    changes: dict[str, object] = {}
    for name in child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            new = change(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, (tuple, list)):
            items = [change(item) for item in value]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                changes[name] = items
    return node.with_changes(**changes) if changes else node


def replaced(node: cst.CSTNode, new: Mapping[int, cst.CSTNode]) -> cst.CSTNode:
    """The node with other nodes in the place of some inside it, by ``id``."""
    found = new.get(id(node))
    return found if found is not None else with_children(node, lambda child: replaced(child, new))


def walk(node: cst.CSTNode, without: Container[int] = ()) -> Iterator[cst.CSTNode]:
    """The node and everything below it, parents first, but not the statements whose ids are in ``without``."""
    stack = [node]
    pop, fields = stack.pop, _fields
    while stack:
        current = pop()
        kind = type(current)
        if _IN_LINES[kind]:
            yield from _line_nodes(current)
            continue
        yield current
        if fields[kind]:
            below = children(current)
            if without:
                below = [child for child in below if id(child) not in without]
            below.reverse()
            stack += below


@remembered
def _line_nodes(line: cst.CSTNode) -> list[cst.CSTNode]:
    if type(line) is cst.SimpleStatementLine:
        return [line, *(node for small in line.body for node in _line_nodes(small))]
    return _below(line)


def _below(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The node and everything below it that :func:`walk` passes, of a node without lines."""
    found: list[cst.CSTNode] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        if _fields[type(current)]:
            below = children(current)
            below.reverse()
            stack += below
    return found


class _Gathered(Generic[NodeT]):
    """What stands below a node, remembered for statements and blocks.

    After an edit only the statements around it are new, and each of them puts together what those in it have.
    """

    def __init__(self, of_part: Callable[[cst.CSTNode], Sequence[NodeT]], wanted: SubclassesOf) -> None:
        """``of_part``: of an expression or a line, with what is below; ``wanted``: statements that count themselves."""
        self._of_part, self._wanted = of_part, wanted
        self._results: dict[int, tuple[cst.CSTNode, Sequence[NodeT]]] = {}
        _remembered.append(self._results)

    def below(self, node: cst.CSTNode) -> Sequence[NodeT]:
        """What counts of the node itself and below it."""
        kind = type(node)
        place = 0 if kind is cst.Module else id(node)  # there is a new module after every edit: one is remembered
        known = self._results.get(place)
        if known is not None and known[0] is node:
            return known[1]
        if _IN_LINES[kind]:
            lines = self._of_part(node)
            self._results[place] = node, lines
            return lines
        if not HOLDS_LINES[kind] and kind is not cst.Module:
            return self._of_part(node)
        found = [cast("NodeT", node)] if self._wanted[kind] else []
        for child in children(node):
            found += self.below(child)
        self._results[place] = node, found
        return found


def names_in(node: cst.CSTNode) -> Sequence[cst.Name]:
    """Every name below a node, read or bound, in text order; attributes and keywords of calls are no names."""
    return _names.below(node)


def mentioned(node: cst.CSTNode) -> set[str]:
    """The names below a node as text, read or bound; attributes and keywords of calls are no names."""
    return {name.value for name in names_in(node)}


def _names_of_part(node: cst.CSTNode) -> list[cst.Name]:
    found: list[cst.Name] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if type(current) is cst.Name:
            found.append(current)
        elif type(current) is cst.Attribute or type(current) is cst.Arg:
            stack.append(current.value)
        elif _fields[type(current)]:
            below = children(current)
            below.reverse()
            stack += below
    return found


def nodes_of(node: cst.CSTNode, *kinds: type[NodeT]) -> Sequence[NodeT]:
    """Every node of these classes, the node itself and below it, in the order of :func:`walk`."""
    return cast("Sequence[NodeT]", _of_kinds(kinds).below(node))


@cache
def _of_kinds(kinds: tuple[type[cst.CSTNode], ...]) -> _Gathered[cst.CSTNode]:
    wanted = SubclassesOf(*kinds)

    def statements_of_part(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        parts = node.body if type(node) is cst.SimpleStatementLine else (node,)
        return [part for part in parts if wanted[type(part)]]

    if all(issubclass(kind, _STATEMENTS) for kind in kinds):
        return _Gathered(statements_of_part, wanted)  # no expression has one in it

    def of_part(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        if _IN_LINES[type(node)]:
            table = _line_kinds(node)
            present = [kind for kind in table if wanted[kind]]
            if len(present) < 2:
                return table[present[0]] if present else ()
            return [found for found in _line_nodes(node) if wanted[type(found)]]
        return [found for found in _below(node) if wanted[type(found)]]

    return _Gathered(of_part, wanted)


@remembered
def _line_kinds(line: cst.CSTNode) -> dict[type, list[cst.CSTNode]]:
    found: dict[type, list[cst.CSTNode]] = {}
    for node in _line_nodes(line):
        found.setdefault(type(node), []).append(node)
    return found


def calls_in(node: cst.CSTNode) -> Sequence[cst.Call]:
    """Every call below a node, outer before inner, in text order."""
    return nodes_of(node, cst.Call)


def argument(call: cst.Call, name: str, place: int | None = None) -> cst.BaseExpression | None:
    """What a call gives a parameter by its name, else at a place; None if nothing."""
    by_place: list[cst.BaseExpression] = []
    for arg in call.args:
        if arg.keyword is None:
            by_place.append(arg.value)
        elif arg.keyword.value == name:
            return arg.value
    return by_place[place] if place is not None and place < len(by_place) else None


_names = _Gathered(_names_of_part, SubclassesOf(cst.Name))


def is_docstring(statement: cst.CSTNode) -> bool:
    """A line that is nothing but a string."""
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    return isinstance(only, cst.Expr) and isinstance(only.value, (cst.SimpleString, cst.ConcatenatedString))


def last_name(node: cst.CSTNode | None) -> str:
    """``c`` of ``a.b.c``, a name itself; empty for anything else."""
    named = node.attr if isinstance(node, cst.Attribute) else node
    return named.value if isinstance(named, cst.Name) else ""


def bound_name(alias: cst.ImportAlias) -> str:
    """The name that an import binds: the first one of a dotted module without ``as``."""
    name: cst.CSTNode = alias.asname.name if alias.asname is not None else alias.name
    while isinstance(name, cst.Attribute):
        name = name.value
    return last_name(name)
