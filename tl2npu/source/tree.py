"""Walking syntax trees without whitespace: the one traversal that everything else uses.

LibCST's own ``.children`` and visitors pass through every whitespace node, which costs as much as the parse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar

import libcst as cst

_SKIPPED = frozenset(
    "leading_lines leading_whitespace lines_after_decorators header footer trailing_whitespace indent newline comment "
    "comma semicolon lpar rpar lbracket rbracket lbrace rbrace equal dot colon first_colon second_colon".split()
)
NodeT = TypeVar("NodeT")
ResultT = TypeVar("ResultT")

_TEXT = (str, bool, int)

_fields: dict[type[cst.CSTNode], tuple[str, ...]] = {}


class SubclassesOf(dict[type, bool]):
    """``table[type(x)]`` is ``isinstance(x, bases)``; asking LibCST's abstract classes would be most of a walk."""

    def __init__(self, *bases: type) -> None:
        super().__init__()
        self.bases = bases

    def __missing__(self, kind: type) -> bool:
        return self.setdefault(kind, issubclass(kind, self.bases))


class _Remembered(Generic[NodeT, ResultT]):
    """A function of one node with its results; to be used through :func:`remembered`."""

    def __init__(self, function: Callable[[NodeT], ResultT]) -> None:
        self._function = function
        self.results: dict[int, tuple[NodeT, ResultT]] = {}

    def __call__(self, node: NodeT) -> ResultT:
        found = self.results.get(id(node))
        if found is None:
            found = self.results[id(node)] = node, self._function(node)
        return found[1]


_remembered: list[_Remembered[Any, Any]] = []


def remembered(function: Callable[[NodeT], ResultT]) -> Callable[[NodeT], ResultT]:
    """Work out a function of one node only once for each node: edits keep what they do not touch.

    Until :func:`forget` is called, the nodes stay in memory with the results.
    """
    made = _Remembered(function)
    _remembered.append(made)
    return made


def forget() -> None:
    """Forget everything about the nodes of a file that is done."""
    for one in _remembered:
        one.results.clear()


@cache
def subclasses_of(bases: tuple[type, ...]) -> SubclassesOf:
    """The table of these classes, always the same one."""
    return SubclassesOf(*bases)


IS_NODE = SubclassesOf(cst.CSTNode)


def child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a node class that can hold something other than whitespace and punctuation, in class order."""
    try:
        return _fields[kind]
    except KeyError:
        names = tuple(
            field.name
            for field in dataclasses.fields(kind)
            if field.name not in _SKIPPED and not field.name.startswith("whitespace_") and field.type not in _TEXT
        )
        return _fields.setdefault(kind, names)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Child nodes in field order (decorators of a function come after its body), without whitespace."""
    found: list[cst.CSTNode] = []
    for name in child_fields(type(node)):
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple or kind is list:
            found += value
        elif IS_NODE[kind]:
            found.append(value)
    return found


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, parents first."""
    stack = [node]
    pop, fields = stack.pop, _fields
    while stack:
        current = pop()
        kind = type(current)
        if kind is cst.SimpleStatementLine:
            yield from _line_nodes(current)
            continue
        yield current
        if fields.get(kind) != ():
            below = children(current)
            below.reverse()
            stack += below


@remembered
def _line_nodes(line: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return (line, *(node for small in children(line) for node in walk(small)))


def names_in(node: cst.CSTNode) -> Iterator[cst.Name]:
    """Every name below a node, read or bound, in text order; attributes and keywords of calls are no names."""
    stack = [node]
    while stack:
        current = stack.pop()
        if type(current) is cst.Name:
            yield current
        elif type(current) is cst.Attribute or type(current) is cst.Arg:
            stack.append(current.value)
        elif type(current) is cst.SimpleStatementLine:
            yield from _line_names(current)
        elif _fields.get(type(current)) != ():
            below = children(current)
            below.reverse()
            stack += below


@remembered
def _line_names(line: cst.CSTNode) -> tuple[cst.Name, ...]:
    return tuple(name for small in children(line) for name in names_in(small))


def calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Every call below a node, outer before inner, in text order."""
    stack = [node]
    while stack:
        current = stack.pop()
        kind = type(current)
        if kind is cst.SimpleStatementLine:
            yield from _line_calls(current)
            continue
        if type(current) is cst.Call:
            yield current
        if _fields.get(kind) != ():
            below = children(current)
            below.reverse()
            stack += below


@remembered
def _line_calls(line: cst.CSTNode) -> tuple[cst.Call, ...]:
    return tuple(call for small in children(line) for call in calls_in(small))
