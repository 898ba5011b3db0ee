"""``[tool.tl2npu.operators]``: a call of a team's own wrapper means an operator of TileLang (docs/own-operators.md).

A wrapper of an installed package cannot be read, so that its kernel is refused. The table says what it means; its calls
are written as that operator before anything else is done, in kernels that migrate. Others keep their text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tl2npu.results import Change, Diagnostic, FileResult

Operators = tuple[tuple[str, str], ...]
Leave = Mapping[int, Sequence[Diagnostic]]
Span = tuple[int, int]
_LINE = re.compile("[^\n]*\n|[^\n]+")
_MOST_NESTED = 8  # own operators in arguments of own operators
_PLACE = re.compile(r"\{(\w+)\}")
_KERNELS = ("prim_func", "macro", "jit")


@dataclass(frozen=True)
class Meant:
    """A call by its line, what of the text is replaced by which, and what it is called."""

    line: int
    start: int
    end: int
    name: str
    text: str
    shown: str


def migrated(text: str, operators: Operators, leave: Leave, migrate: Callable[[str, Leave], FileResult]) -> FileResult:
    """What ``migrate`` makes of a text in which own operators are TileLang's. Kernels that it does not write stay."""
    plain, taken = written(text, operators)
    if not taken:
        return migrate(text, leave)
    result = migrate(plain, leave)
    stays = [kernel for kernel in result.kernels if not kernel.rewritten]
    spans = [span for kernel in stays if (span := _outermost(text, kernel.line)) is not None]
    if any(first <= one.line <= last for one in taken for first, last in spans):
        plain, taken = written(text, operators, spans)
        whys = {
            kernel.line: [item for item in result.diagnostics if item.kernel == kernel.name]
            for kernel in stays
            if kernel.unfinished
        }
        result = migrate(plain, {**leave, **whys})
    made = any(kernel.rewritten for kernel in result.kernels)
    told = [Change("TL117", one.line, f"`{one.name}` is `{one.shown}` by [tool.tl2npu.operators]") for one in taken]
    return replace(
        result,
        old_text=text,
        new_text=result.new_text if made else text,
        changes=(*result.changes, *(told if made else ())),
    )


def written(text: str, operators: Operators, but: Sequence[Span] = ()) -> tuple[str, list[Meant]]:
    """The text with TileLang's operators for own ones, except in the lines ``but``. Every line stays where it is."""
    every: list[Meant] = []
    for _ in range(_MOST_NESTED):
        found = [one for one in _meant(text, operators) if not any(first <= one.line <= last for first, last in but)]
        if not found:
            break
        at = len(text) + 1
        for one in sorted(found, key=lambda one: (one.start, -one.end), reverse=True):
            if one.end <= at:  # an inner call is the next round's
                text, at = text[: one.start] + one.text + text[one.end :], one.start
                every.append(one)
    return text, every


def _meant(text: str, operators: Operators) -> Iterator[Meant]:
    """The calls of own operators in kernels; none in a text that cannot be parsed, or that does not import TileLang."""
    wanted = dict(operators)
    if not any(name.rpartition(".")[2] in text for name in wanted):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names, tilelang = _imported(tree)
    lines = [line.encode("utf-8") for line in _LINE.findall(text)]
    starts = list(accumulate((len(line.decode("utf-8")) for line in lines), initial=0))

    def span(node: ast.expr) -> Span:
        ends = ((node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0))
        first, last = (starts[line - 1] + len(lines[line - 1][:column].decode("utf-8")) for line, column in ends)
        return first, last

    for node in _calls(tree) if tilelang else ():
        name = _dotted(node.func, names)
        meaning = wanted.get(name or "", "")
        if not name or not meaning:
            continue
        shown = tilelang + meaning.removeprefix("T")
        if "(" not in meaning:
            yield Meant(node.lineno, *span(node.func), name, shown, shown)
        elif (given := _arguments(node, text)) is not None and set(_PLACE.findall(meaning)) == given.keys():
            filled = _PLACE.sub(lambda match: given[match.group(1)], shown)
            first, last = span(node)
            missing = text[first:last].count("\n") - filled.count("\n")
            if missing > 0:
                indent = re.match(r"\s*", text[starts[node.lineno - 1] :])
                margin = "\n" + (indent.group() if indent else "")
                head, _, arguments = filled.partition("(")
                filled = f"{head}({margin}    {arguments[:-1]}{chr(10) * max(0, missing - 2)}{margin * (missing > 1)})"
            if missing >= 0:
                yield Meant(node.lineno, first, last, name, filled, shown)


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls inside of kernels, each once."""
    seen: set[ast.Call] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(map(_is_kernels, function.decorator_list)):
            seen.update(node for line in function.body for node in ast.walk(line) if isinstance(node, ast.Call))
    yield from seen


def _is_kernels(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _KERNELS


def _imported(tree: ast.Module) -> tuple[dict[str, str], str]:
    """Name -> what an import of the module binds it to, where nothing else does; and how the file spells ``T``."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for item in node.names:
                found[item.asname or item.name.partition(".")[0]] = (
                    item.name if item.asname else item.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.pop(inner.id, None)
        elif isinstance(inner, ast.arg):
            found.pop(inner.arg, None)
        elif isinstance(inner, ast.FunctionDef | ast.ClassDef):
            found.pop(inner.name, None)
    return found, next((name for name, dotted in found.items() if dotted == "tilelang.language"), "")


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def _arguments(call: ast.Call, text: str) -> dict[str, str] | None:
    """Number or name -> source of each argument; None for ``*`` and ``**``."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(one.arg is None for one in call.keywords):
        return None
    given = {str(number): arg for number, arg in enumerate(call.args)}
    given |= {str(one.arg): one.value for one in call.keywords}
    return {name: ast.get_source_segment(text, node) or "" for name, node in given.items()}


def _outermost(text: str, line: int) -> Span | None:
    """The lines of the outermost function around a line."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            return min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.end_lineno or node.lineno
    return None
