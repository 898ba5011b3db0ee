"""What an editor shows of a file: kernels that can be migrated, what stands in the way, what is wrong with others."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

from tl2npu.across.modules import forget
from tl2npu.cells import by_cells, reason_to_skip
from tl2npu.config import ConfigError, load_options
from tl2npu.files import skip_reason, worth_a_look
from tl2npu.languages import migrate_source
from tl2npu.project.one import process
from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.source.notebook import Notebook, is_notebook

Span = tuple[int, int]
Place = tuple[int | None, int]
"""The cell of a notebook, and the line of a kernel's ``def`` there or in the file."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with the lines, from 1, of the outermost function that it stands in, decorators included.

    In a notebook they are lines of its cell.
    """

    result: KernelResult
    span: Span


@dataclass(frozen=True)
class View:
    """``kernels``: those that would be rewritten. ``obstacles``: why others are not, or not into the best form.

    ``faults``: what is wrong with kernels that are in Developer mode. ``new_text``: the migrated file; None where that
    is another file, beside this one. ``problem``: why nothing of this is known. ``places``: cell, if there are any, and
    line of every kernel of the file.
    """

    kernels: tuple[Kernel, ...] = ()
    obstacles: tuple[Diagnostic, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    new_text: str | None = None
    problem: str | None = None
    places: tuple[Place, ...] = ()

    def migrated(self, place: Place) -> str | None:
        """The text with this kernel alone migrated, where it is known: it is the only one that is rewritten."""
        only = [(kernel.result.cell, kernel.result.line) for kernel in self.kernels] == [place]
        return self.new_text if only else None

    def of_cell(self, number: int) -> View:
        """What is to be said of one cell of a notebook; a ``problem`` of all of it is for the caller."""
        return replace(
            self,
            kernels=tuple(kernel for kernel in self.kernels if kernel.result.cell == number),
            obstacles=tuple(item for item in self.obstacles if item.cell == number),
            faults=tuple(item for item in self.faults if item.cell == number),
            problem=None,
        )


def look(text: str, path: str) -> View:
    """The view of a text that is, or would be, the file ``path``; its own pyproject.toml holds."""
    data = text.encode("utf-8", "surrogatepass")
    skipped = reason_to_skip(text) if is_notebook(path) else skip_reason(data)
    if skipped is not None or not worth_a_look(data, text):
        return View()
    try:
        options = load_options(Path(path), {})
    except ConfigError as error:
        return View(problem=str(error))
    forget()  # this process lives long, and files come and go
    result = process("migrate", text, path, options, debug=False)
    if result.error is not None:
        return View(obstacles=result.diagnostics, problem=None if result.diagnostics else result.error)
    faults: tuple[Diagnostic, ...] = ()
    finished = {kernel.name for kernel in result.kernels if kernel.disposition == "unchanged"}
    if finished:
        checked = process("check", text, path, options, debug=False)
        faults = tuple(item for item in checked.diagnostics if item.kernel in finished)
    told = {(item.cell, item.line, item.code) for item in faults}
    spans = _spans(text, path)
    return View(
        tuple(
            Kernel(kernel, spans.get((kernel.cell, kernel.line), (kernel.line, kernel.line)))
            for kernel in result.kernels
            if kernel.rewritten and not result.beside
        ),
        tuple(item for item in result.diagnostics if (item.cell, item.line, item.code) not in told),
        faults,
        result.new_text if result.changed and not result.beside else None,
        places=tuple((kernel.cell, kernel.line) for kernel in result.kernels),
    )


def migrate_one(text: str, path: str, place: Place, places: tuple[Place, ...]) -> str:
    """The text with only one kernel migrated of those of the file, see ``View.places``."""
    others = [other for other in places if other != place]
    if place[0] is None:
        return _without(text, path, [line for _, line in others])
    starts = {part.number: part.start for part in Notebook.read(text).python}
    lines = [starts[cell] + line - 1 for cell, line in others if cell is not None]
    done = by_cells(text, path, lambda code: FileResult(path, code, _without(code, path, lines)))
    return text if done.new_text is None else done.new_text


def _without(text: str, path: str, lines: list[int]) -> str:
    why = Diagnostic("", "", "info", 1, "not asked for")
    result = migrate_source(text, path, load_options(Path(path), {}), {line: [why] for line in lines})
    return text if result.new_text is None or result.beside else result.new_text


def _spans(text: str, path: str) -> dict[Place, Span]:
    """Cell, if there are any, and line of each ``def`` -> the lines of the outermost function around it."""
    if not is_notebook(path):
        return {(None, line): span for line, span in _outermost(text).items()}
    book = Notebook.read(text)
    return {
        book.place(line): (book.place(first)[1], book.place(last)[1])
        for line, (first, last) in _outermost(book.code).items()
    }


def _outermost(text: str) -> dict[int, Span]:
    """Line of the ``def`` of each function -> the span of the outermost function that it is, or stands in."""
    found: dict[int, Span] = {}
    for top in ast.walk(ast.parse(text)):
        if isinstance(top, ast.FunctionDef) and top.lineno not in found:
            first = min([top.lineno, *(item.lineno for item in top.decorator_list)])
            for inner in ast.walk(top):
                if isinstance(inner, ast.FunctionDef):
                    found[inner.lineno] = first, top.end_lineno or top.lineno
    return found
