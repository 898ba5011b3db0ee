"""A notebook goes through the same jobs as a file: as one module of its cells, and the result is told by cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tl2npu.codes import CODES
from tl2npu.files import skip_reason, worth_a_look
from tl2npu.results import Cell, Change, Diagnostic, FileResult
from tl2npu.source.notebook import Notebook, NotebookSkipped
from tl2npu.source.text import SourceError

_LINE = re.compile(r"(\bcell \d+ )?\bline (\d+)\b")
_UNREAD = "TL913"


def by_cells(json_text: str, path: str, work: Callable[[str], FileResult], always: bool = False) -> FileResult:
    """What ``work`` says of the code of a notebook, and its text back in the cells.

    Places are a cell and a line of that cell, also in messages. ``always``: even if there seems to be no kernel in it.
    Raises :class:`NotebookSkipped`; a notebook that cannot be read comes back with ``error``.
    """
    try:
        book = Notebook.read(json_text)
    except SourceError as error:
        return FileResult(path, json_text, json_text, str(error))
    cells = tuple(Cell(cell.number, cell.text) for cell in book.cells)
    if not book.python or not (always or worth_a_look(book.code.encode(), book.code)):
        return FileResult(path, json_text, json_text, diagnostics=_unread(book), cells=cells)
    result = work(book.code)
    places = Places(book, path)
    failure, new = result.error, json_text
    if failure is not None:
        failure = places.told(failure, None)
    elif result.new_text is not None and result.new_text != result.old_text:
        try:
            new = book.with_code(result.new_text, path)
        except SourceError as lost:
            failure = f"internal error: {lost}"
    found = [*map(places.diagnostic, result.diagnostics), *_unread(book)]
    return replace(
        result,
        old_text=json_text,
        new_text=new,
        error=failure,
        kernels=tuple(
            replace(
                kernel,
                cell=cell,
                line=line,
                file_line=book.file_line(cell, line),
                reason=places.told(kernel.reason, cell),
            )
            for kernel in result.kernels
            for cell, line in [book.place(kernel.line)]
        ),
        diagnostics=tuple(sorted(found, key=lambda item: (item.cell or 0, item.line, item.code))),
        changes=tuple(map(places.change, result.changes)),
        cells=cells,
    )


def reason_to_skip(json_text: str) -> str | None:
    """Why a notebook is left out; None for one that is read, and for one that cannot be."""
    try:
        return skip_reason(Notebook.read(json_text).code.encode())
    except NotebookSkipped as skipped:
        return str(skipped)
    except SourceError:
        return None


@dataclass(frozen=True)
class Places:
    """Tells lines of the module that a notebook is as cells and lines in them."""

    book: Notebook
    path: str

    def diagnostic(self, item: Diagnostic) -> Diagnostic:
        """The same, by cell."""
        cell, line = self.book.place(item.line)
        end = None if item.end_line is None else self.book.place(item.end_line)[1]
        there = self.book.file_line(cell, line)
        return replace(item, cell=cell, line=line, end_line=end, file_line=there, message=self.told(item.message, cell))

    def change(self, item: Change) -> Change:
        """The same, by cell."""
        cell, line = self.book.place(item.line)
        return replace(item, cell=cell, line=line, message=self.told(item.message, cell))

    def told(self, message: str, here: int | None) -> str:
        """A message with its lines of the module told as lines of cells."""

        def line_of(match: re.Match[str]) -> str:
            if match.group(1):  # it has been told already
                return match.group()
            cell, line = self.book.place(int(match.group(2)))
            return f"line {line}" if cell == here else f"cell {cell} line {line}"

        def place_of(match: re.Match[str]) -> str:
            cell, line = self.book.place(int(match.group(1)))
            return f"{self.path}:cell {cell}:{line}"

        return re.sub(rf"{re.escape(self.path)}:(\d+)\b", place_of, _LINE.sub(line_of, message))


def _unread(book: Notebook) -> tuple[Diagnostic, ...]:
    """Cells that are not read although they seem to have kernels: ``%%writefile kernel.py``."""
    rule = CODES[_UNREAD]
    found: list[Diagnostic] = []
    for cell in book.cells:
        lines = cell.text.split("\n") if cell.foreign is not None else []
        line = next((number for number, text in enumerate(lines, 1) if "Kernel(" in text), None)
        if line is not None:
            text = f"a `{cell.foreign}` cell is skipped, but this one seems to contain a kernel"
            found.append(
                Diagnostic(
                    _UNREAD,
                    rule.name,
                    rule.severity,
                    line,
                    text,
                    rule.remedy,
                    safety=rule.safety,
                    cell=cell.number,
                    file_line=book.file_line(cell.number, line),
                )
            )
    return tuple(found)
