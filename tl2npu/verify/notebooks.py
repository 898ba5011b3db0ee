"""Notebooks in ``tl2npu verify`` and ``tl2npu run``: what is read of them, and results told by cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tl2npu.results import Diagnostic, FileResult
from tl2npu.source.notebook import Notebook, NotebookSkipped, is_notebook
from tl2npu.source.text import SourceError, read_source
from tl2npu.verified import KernelVerdict, VerifyResult
from tl2npu.verify.loading import Source


def source_of(text: str, path: str, shown: str) -> Source:
    """What is executed of a text: all of it, of a notebook its code cells. Raises :class:`SourceError`."""
    if not is_notebook(path):
        return Source(text, path, shown)
    book = notebook(text)
    return Source(book.code, path, shown, book)


def notebook(json_text: str) -> Notebook:
    """Raises :class:`SourceError` for what is no notebook, and for one without Python."""
    try:
        book = Notebook.read(json_text)
    except NotebookSkipped as skipped:
        raise SourceError(str(skipped)) from None
    if not book.python:
        raise SourceError("a notebook without Python cells")
    return book


def read_notebook(path: Path) -> Notebook:
    """The notebook in a file. Raises :class:`SourceError`."""
    return notebook(read_source(path).text)


def in_module(result: FileResult, book: Notebook) -> FileResult:
    """The kernels and findings of a migration by lines of the module of the cells, as verdicts are."""
    starts = {cell.number: cell.start for cell in book.python}

    def line(cell: int | None, line: int) -> int:
        return starts[cell] + line - 1 if cell in starts else line

    return replace(
        result,
        kernels=tuple(replace(item, line=line(item.cell, item.line), cell=None) for item in result.kernels),
        diagnostics=tuple(replace(item, line=line(item.cell, item.line), cell=None) for item in result.diagnostics),
    )


def told_by_cell(result: VerifyResult, book: Notebook | None) -> VerifyResult:
    """The places of a result as cells and lines in them. Messages name places by cell as they are: cells ran alone."""
    if book is None:
        return result

    def verdict(item: KernelVerdict) -> KernelVerdict:
        cell, line = book.place(item.line)
        return replace(item, cell=cell, line=line)

    def diagnostic(item: Diagnostic) -> Diagnostic:
        cell, line = book.place(item.line)
        return replace(item, cell=cell, line=line, file_line=book.file_line(cell, line))

    return replace(
        result, kernels=tuple(map(verdict, result.kernels)), diagnostics=tuple(map(diagnostic, result.diagnostics))
    )
