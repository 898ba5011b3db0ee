"""One parse of a file, and what every later question needs: parents, statements, positions."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeVar, cast

import libcst as cst

from tl2npu.source.spans import Position, Statement, is_on_one_line, span_in_statement
from tl2npu.source.text import SourceError
from tl2npu.source.tree import HOLDS_LINES, IS_NODE, SubclassesOf, child_fields, children, subclasses_of

DEEPEST = 800
"""Attributes, subscripts, calls or operators around each other; LibCST takes 3 seconds for them."""


def refuse_deep_expressions(module: ast.Module, text: str) -> None:
    """Raise :class:`SourceError` for an expression that is nested deeper than :data:`DEEPEST`.

    A level is a character at least, so that only long parts of the text are looked at.
    """
    if len(text) < DEEPEST:
        return
    starts = [0, *accumulate(len(line) + 1 for line in text.encode("utf-8", "surrogatepass").split(b"\n"))]
    pending: list[tuple[ast.AST, int, int]] = [(module, 0, 1)]
    while pending:
        node, depth, line = pending.pop()
        if depth > DEEPEST:
            why = f"nested too deeply: more than {DEEPEST} attributes, calls or operators in one expression"
            raise SourceError(why, line)
        for child in ast.iter_child_nodes(node):
            inner = depth + isinstance(child, ast.expr)
            if isinstance(child, ast.stmt):
                inner = 0  # chains of `elif` are another matter
            if isinstance(child, (ast.expr, ast.stmt)):
                begin = starts[child.lineno - 1] + child.col_offset
                end = starts[(child.end_lineno or child.lineno) - 1] + (child.end_col_offset or 0)
                if end - begin < DEEPEST - depth and not getattr(child, "decorator_list", ()):  # they stand above it
                    continue
                line = child.lineno
            pending.append((child, inner, line))


NodeT = TypeVar("NodeT", bound=cst.CSTNode)

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_IS_STATEMENT = SubclassesOf(cst.BaseSmallStatement, cst.BaseCompoundStatement)
_HOLDS_STATEMENTS = SubclassesOf(cst.Module, cst.SimpleStatementLine, *HOLDS_LINES.bases)
_MAY_HOLD = SubclassesOf(*_HOLDS_STATEMENTS.bases, cst.BaseSmallStatement)
_BINDS = SubclassesOf(cst.Lambda, cst.BaseComp)


@dataclass(frozen=True, eq=False)
class Foreign:
    """Text of another file: ``index`` is that of the text alone, which begins in ``line`` of the file."""

    path: str
    line: int
    index: Index


@dataclass(eq=False)
class Index:
    """A syntax tree with parents and positions. Nodes are told apart by identity."""

    module: cst.Module
    binds_in_expressions: bool  # some lambda or comprehension may be in it
    _parents: dict[int, cst.CSTNode]
    _text: str | None = None
    _ast: ast.Module | None = None
    _positions: dict[int, Position] | None = None
    _native: Index | None = None
    _foreign: Mapping[int, Foreign] = field(default_factory=dict)
    _first_lines: dict[int, tuple[cst.CSTNode, int | None]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, *, own: bool = False) -> Index:
        """Parse a file; raises :class:`SourceError` with the line of a syntax error.

        ``own``: with nodes of its own, for a text that may be put into a tree twice; else trees of one text may be one.
        """
        python = _parse_ast(text)  # first: far cheaper, better messages, and it stops nesting that would hurt later
        refuse_deep_expressions(python, text)
        try:
            module = _with_last_newline(cst.parse_module(text) if own else _concrete(text), text)
            index = cls.of(module)
        except cst.ParserSyntaxError as error:
            raise SourceError(f"syntax error: {error.message}", error.raw_line) from None
        except (RecursionError, MemoryError):
            raise SourceError("nested too deeply") from None
        index._text, index._ast = text, python
        return index

    @classmethod
    def of(cls, module: cst.Module) -> Index:
        """Index a tree that was parsed or rebuilt before."""
        binds, parents = _walked(module, {}, set())
        return cls(module, binds, parents)

    def after(self, module: cst.Module) -> Index:
        """Index a tree that edits made of this one: what both have is not walked again."""
        parents, kept = self._parents.copy(), set[int]()
        binds, _ = _walked(module, parents, kept)
        stack: list[cst.CSTNode] = [self.module]
        while stack:  # what is gone, down to the parts that found a place in the new tree
            for child in children(stack.pop()):
                if id(child) not in kept:
                    del parents[id(child)]
                    stack.append(child)
        return Index(module, binds or self.binds_in_expressions, parents)

    @cached_property
    def statements(self) -> list[cst.BaseSmallStatement | cst.BaseCompoundStatement]:
        """Every small and compound statement, outer before inner, in text order."""
        found: list[cst.BaseSmallStatement | cst.BaseCompoundStatement] = []
        stack: list[cst.CSTNode] = [self.module]
        while stack:
            node = stack.pop()
            if _IS_STATEMENT[type(node)]:
                found.append(cast("cst.BaseSmallStatement | cst.BaseCompoundStatement", node))
            if _HOLDS_STATEMENTS[type(node)]:
                below = [child for child in children(node) if _MAY_HOLD[type(child)]]
                below.reverse()
                stack += below
        return found

    def including(self, module: cst.Module, foreign: Mapping[int, Foreign]) -> Index:
        """The index of a tree that is this one's with statements of other files among them.

        ``foreign``: where these come from, by the id of each statement and of those in it. They stand where the
        statement before them stands.
        """
        made = Index.of(module)
        made._native, made._foreign, made._text, made._ast = self, foreign, self._text, self._ast
        return made

    def foreign(self, node: cst.CSTNode) -> tuple[str, int] | None:
        """The other file and the line in it that a node comes from; None for what this file holds itself."""
        statement = self.statement(node) if self._foreign else None
        found = self._foreign.get(id(statement)) if statement is not None else None
        if found is None or statement is None:
            return None
        line = found.index.position(statement).line if statement in found.index else 1
        return found.path, found.line + line - 1

    def is_foreign(self, node: cst.CSTNode) -> bool:
        """True for a whole statement of another file, as it was put in."""
        found = self._foreign.get(id(node))
        return found is not None and node not in found.index

    @property
    def python(self) -> ast.Module:
        """The tree of the cheap parser."""
        if self._ast is None:
            self._ast = _parse_ast(self._source())
        return self._ast

    def __contains__(self, node: object) -> bool:
        """True for the nodes of this very tree (whitespace and punctuation do not count)."""
        return node is self.module or id(node) in self._parents

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node above; None for the module. Raises LookupError for a node of another tree."""
        found = self._parents.get(id(node))
        if found is None and node is not self.module:
            raise LookupError(f"{type(node).__name__} is not a node of this tree")
        return found

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes above, innermost first, the module last."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self._parents.get(id(above))

    def top(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement of the module that a node stands in; the node itself, if it stands in none."""
        above = [node, *self.ancestors(node)]
        return above[-2] if len(above) > 1 else node

    def enclosing(self, node: cst.CSTNode, *types: type[NodeT]) -> NodeT | None:
        """The innermost node above of one of the types; the node itself does not count."""
        wanted = subclasses_of(types)
        above = self.parent(node)
        while above is not None:
            if wanted[type(above)]:
                return cast("NodeT", above)
            above = self._parents.get(id(above))
        return None

    def statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | cst.BaseCompoundStatement | None:
        """The innermost statement that a node is or lies in; None for the module and lines between statements."""
        if type(node) is cst.SimpleStatementLine:
            return node.body[0] if node.body else None
        place: cst.CSTNode | None = node
        while place is not None and not _IS_STATEMENT[type(place)]:
            place = self.parent(place)
        return cast("cst.BaseSmallStatement | cst.BaseCompoundStatement | None", place)

    def position(self, node: cst.CSTNode) -> Position:
        """Where a node stands: statements and expressions exactly, other parts by the statement around them.

        A decorated definition stands where its ``def`` or ``class`` stands. Raises LookupError for a foreign node.
        """
        self.parent(node)  # a foreign node must not pass for the module
        statement = self.statement(node)
        if statement is None:
            return self._whole()
        base = self._statement_positions()[id(statement)]
        return base if id(statement) in self._foreign else self._span(statement, node, base)

    def place_in_statement(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column of a node, counted from its statement, for which the file need not be written out."""
        statement, start = self.statement(node), Position(1, 1, 1, 1)
        found = start if statement is None else self._span(statement, node, start)
        return found.line, found.column

    def _span(self, statement: Statement, node: cst.CSTNode, base: Position) -> Position:
        """The span of a node in a statement that begins at ``base``."""
        if statement is node or not isinstance(node, (cst.BaseExpression, cst.Arg, cst.Param)):
            return base
        return span_in_statement(self.module, statement, node, base, self._parents)

    def line(self, node: cst.CSTNode) -> int:
        """The line of :meth:`position`, which is often known without the column."""
        self.parent(node)
        statement = self.statement(node)
        if statement is None:
            return 1
        base = self._statement_positions()[id(statement)]
        if statement is node or base.line == base.end_line or is_on_one_line(self.module, statement, self._parents):
            return base.line
        return base.line if id(statement) in self._foreign else self._span(statement, node, base).line

    def first_line(self, node: cst.CSTNode) -> int | None:
        """The line of a node; of one that is not of this tree, that of the first part of it that is."""
        known = self._first_lines.get(id(node))
        if known is None:
            found = self.line(node) if node in self else None
            below = iter(()) if node in self else iter(children(node))
            while found is None and (child := next(below, None)) is not None:
                found = self.first_line(child)
            known = self._first_lines[id(node)] = node, found
        return known[1]

    @cached_property
    def code(self) -> str:
        """The text of the tree, with what it has of other files."""
        return self._source() if self._native is None else self.module.code

    @cached_property
    def longest_line(self) -> int:
        """Characters in the longest line of the text."""
        return max(len(line) for line in _NEWLINE.split(self._source()))

    def _whole(self) -> Position:
        lines = _NEWLINE.split(self._source())
        return Position(1, 1, len(lines), len(lines[-1]) + 1)

    def _source(self) -> str:
        if self._text is None:
            self._text = self.module.code
        return self._text

    def _statement_positions(self) -> dict[int, Position]:
        """Both parsers see the same statements in the same order, so that the cheap one can tell where they are."""
        if self._positions is None and self._native is not None:
            self._positions = self._positions_beside(self._native)
        if self._positions is None:
            text = self._source()
            found = list(_ast_statements(self.python))
            if len(found) != len(self.statements):
                raise SourceError("the statements of the two parsers differ")
            lines = None if text.isascii() else _NEWLINE.split(text)
            self._positions = {
                id(node): _from_ast(item, lines) for node, item in zip(self.statements, found, strict=True)
            }
        return self._positions

    def _positions_beside(self, native: Index) -> dict[int, Position]:
        known = native._statement_positions()
        own = iter(native.statements)
        found: dict[int, Position] = {}
        place = Position(1, 1, 1, 1)
        for statement in self.statements:
            if id(statement) not in self._foreign:
                place = known[id(next(own))]
            found[id(statement)] = place
        return found


@lru_cache(maxsize=4)
def _concrete(text: str) -> cst.Module:
    """The tree of LibCST, which takes ten times as long as any other. A text is often migrated, checked and verified
    right after each other, and no tree ever changes."""
    return cst.parse_module(text)


def _with_last_newline(module: cst.Module, text: str) -> cst.Module:
    """LibCST does not see a last line end that is a lone carriage return."""
    if not text.endswith("\r"):
        return module
    if module.default_newline != "\r":
        raise SourceError("the last line ends with a carriage return, and others do not")
    return module.with_changes(has_trailing_newline=True)


def _walked(module: cst.Module, parents: dict[int, cst.CSTNode], kept: set[int]) -> tuple[bool, dict[int, cst.CSTNode]]:
    """Note the parents of all nodes, and say whether any binds names inside an expression.

    Nodes that have a parent already are not walked, only noted in ``kept``: a tree below a node never changes.
    """
    binds = False
    stack: list[cst.CSTNode] = [module]
    pop, push, known, cached = stack.pop, stack.append, parents.get, child_fields
    while stack:
        node = pop()
        if _BINDS[type(node)]:
            binds = True
        for name in cached(type(node)):
            value = getattr(node, name)
            kind = type(value)
            if kind is tuple or kind is list:
                for child in value:
                    below = id(child)
                    if known(below) is None:
                        push(child)
                    else:
                        kept.add(below)
                    parents[below] = node
            elif IS_NODE[kind]:
                below = id(value)
                if known(below) is None:
                    push(value)
                else:
                    kept.add(below)
                parents[below] = node
    return binds, parents


def _parse_ast(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are the author's business
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(f"syntax error: {error.msg}", error.lineno) from None
    except (RecursionError, MemoryError):
        raise SourceError("nested too deeply") from None
    except ValueError as error:
        raise SourceError(f"syntax error: {error}") from None


def _ast_statements(module: ast.Module) -> Iterator[ast.stmt]:
    stack: list[ast.AST] = [module]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        below: list[ast.AST] = []
        for name in _BLOCKS:
            below += getattr(node, name, ())
        stack += reversed(below)


def _from_ast(node: ast.stmt, lines: list[str] | None) -> Position:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    column = node.col_offset
    if lines is not None:
        column = _characters(lines[node.lineno - 1], column)
        end = _characters(lines[end_line - 1], end)
    return Position(node.lineno, column + 1, end_line, end + 1)


def _characters(line: str, offset: int) -> int:
    """A column in UTF-8 bytes as a column in characters."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))
