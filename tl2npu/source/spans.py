"""The exact place of an expression inside its statement, computed only for the few nodes that reports name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from tl2npu.source.tree import child_fields, remembered

_NEWLINE = re.compile(r"\r\n|\r|\n")
_MARK = "__tl2npu_mark__"

Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement


@dataclass(frozen=True)
class Position:
    """A span of text. Lines and columns count from 1, columns in characters; ``end_column`` is one past the end."""

    line: int
    column: int
    end_line: int
    end_column: int


def span_in_statement(
    module: cst.Module, statement: Statement, node: cst.CSTNode, base: Position, parents: Mapping[int, cst.CSTNode]
) -> Position:
    """The span of ``node``, given that of the statement around it; ``base`` itself where no place can be told.

    The statement is printed twice, once with a marker in place of the node: what stands before and after the marker
    is what stands before and after the node.
    """
    first, last = _ends(node)
    start = _span(module, statement, first, base, parents)
    if first is last:
        return start
    end = _span(module, statement, last, base, parents)
    return Position(start.line, start.column, end.end_line, end.end_column)


def _ends(node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
    """The first and the last expression of a node."""
    if isinstance(node, cst.Arg):
        return node.keyword or node.value, node.value
    if isinstance(node, cst.Param):
        return node.name, node.default or (node.annotation.annotation if node.annotation else node.name)
    return node, node


def _span(
    module: cst.Module, statement: Statement, node: cst.CSTNode, base: Position, parents: Mapping[int, cst.CSTNode]
) -> Position:
    chain = [node]
    while chain[-1] is not statement:
        chain.append(parents[id(chain[-1])])
    indent = _indent(module, statement, parents)
    marked = _replaced(chain, cst.Name(_MARK))
    if marked is None:
        return base
    before, found, after = _print(module, marked, indent).partition(_MARK)
    if not found:
        return base
    whole, bare = _head(module, statement, indent)
    text = whole[len(before) : len(whole) - len(after)]
    anchor = len(whole) - len(bare)
    above = parents.get(id(statement))
    keyword = 2 if isinstance(above, cst.If) and above.orelse is statement else 0  # `elif` is printed as `if`
    line, column = _move(whole, anchor, len(before), base.line, base.column + keyword)
    end_line, end_column = _move(whole, len(before), len(before) + len(text), line, column)
    return Position(line, column, end_line, end_column)


def is_on_one_line(module: cst.Module, statement: Statement, parents: Mapping[int, cst.CSTNode]) -> bool:
    """Whether all expressions of a statement that stand in no statement in it are on its first line."""
    return _NEWLINE.search(_head(module, statement, _indent(module, statement, parents))[0].rstrip()) is None


def _head(module: cst.Module, statement: Statement, indent: str) -> tuple[str, ...]:
    """What is printed of a statement, with and without decorators."""
    printed = _printed(statement)
    if indent not in printed:
        printed[indent] = tuple(_print(module, statement, indent, decorators=shown) for shown in (True, False))
    return printed[indent]


def _replaced(chain: list[cst.CSTNode], new: cst.CSTNode) -> cst.CSTNode | None:
    """The last node of the chain, rebuilt with the first one replaced."""
    for child, above in pairwise(chain):
        for name in child_fields(type(above)):
            value = getattr(above, name)
            if value is child:
                new = above.with_changes(**{name: new})
                break
            if isinstance(value, (tuple, list)) and any(item is child for item in value):
                new = above.with_changes(**{name: [new if item is child else item for item in value]})
                break
        else:
            return None
    return new


def _indent(module: cst.Module, statement: Statement, parents: Mapping[int, cst.CSTNode]) -> str:
    blocks: list[str] = []
    above = parents.get(id(statement))
    while above is not None:
        if isinstance(above, cst.IndentedBlock):
            blocks.append(module.default_indent if above.indent is None else above.indent)
        above = parents.get(id(above))
    return "".join(reversed(blocks))


@remembered
def _printed(_statement: cst.CSTNode) -> dict[str, tuple[str, ...]]:
    """The head of a statement with and without decorators, by its indentation: many nodes of one are asked for."""
    return {}


def _print(module: cst.Module, statement: cst.CSTNode, indent: str, decorators: bool = True) -> str:
    """The head of a statement, from its first character, printed at the indentation that it has."""
    line: cst.SimpleStatementLine | cst.BaseCompoundStatement
    if isinstance(statement, cst.BaseSmallStatement):
        line = cst.SimpleStatementLine([statement])
    else:
        assert isinstance(statement, cst.BaseCompoundStatement)
        line = statement.with_changes(leading_lines=())
        if not isinstance(line, (cst.Match, cst.Try, cst.TryStar)):  # these have expressions behind their first block
            line = line.with_changes(body=cst.SimpleStatementSuite([cst.Pass()]))
        if not decorators and isinstance(line, (cst.FunctionDef, cst.ClassDef)):
            line = line.with_changes(decorators=(), lines_after_decorators=())
    start = 0
    if indent:
        start = len("if x:" + module.default_newline + indent)
        line = cst.If(cst.Name("x"), cst.IndentedBlock([line], indent=indent))
    return cst.Module([line], default_newline=module.default_newline, default_indent=module.default_indent).code[start:]


def _move(text: str, start: int, stop: int, line: int, column: int) -> tuple[int, int]:
    """Where ``text[stop]`` stands if ``text[start]`` stands at the given place; also backwards."""
    if stop < start:  # a decorator: its own line starts at the column of the definition
        lines = _NEWLINE.split(text[stop:start])
        line_start = max(text.rfind("\n", 0, stop), text.rfind("\r", 0, stop)) + 1
        first = column if line_start == 0 else 1
        return line - len(lines) + 1, first + stop - line_start
    lines = _NEWLINE.split(text[start:stop])
    return (line, column + stop - start) if len(lines) == 1 else (line + len(lines) - 1, len(lines[-1]) + 1)
