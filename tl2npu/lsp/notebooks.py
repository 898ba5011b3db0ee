"""Open notebooks: the cells as the editor has them, and the text of the file that they would be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lsprotocol import types

from tl2npu.lsp.edits import Units, lines_of, offset


@dataclass(frozen=True)
class Cell:
    """A cell of an open notebook. ``language``: that of the editor, for code."""

    uri: str
    version: int
    text: str
    language: str
    is_code: bool


def opened(params: Any) -> tuple[Cell, ...]:
    """The cells of a notebook that was opened."""
    texts = {item.uri: item for item in params.cell_text_documents}
    return tuple(_cell(item, texts) for item in params.notebook_document.cells if item.document in texts)


def changed(cells: Sequence[Cell], change: Any, units: Units) -> tuple[Cell, ...]:
    """The cells after a change."""
    if change is None:  # of the metadata
        return tuple(cells)
    if change.structure is not None:
        array = change.structure.array
        known = {cell.uri: cell for cell in cells}  # a cell that is moved goes and comes, and is not opened again
        texts = {item.uri: item for item in change.structure.did_open or ()}
        new = [
            _cell(item, texts) if item.document in texts else _as(known[item.document], item)
            for item in array.cells or ()
            if item.document in texts or item.document in known
        ]
        cells = [*cells[: array.start], *new, *cells[array.start + array.delete_count :]]
    data = {item.document: item for item in change.data or ()}
    cells = [_as(cell, data[cell.uri]) if cell.uri in data else cell for cell in cells]
    typed = {item.document.uri: item for item in change.text_content or ()}
    return tuple(_typed(cell, typed[cell.uri], units) if cell.uri in typed else cell for cell in cells)


def file_text(cells: Iterable[Cell]) -> str:
    """What the file would hold, as far as it matters here."""
    found: list[dict[str, Any]] = []
    for cell in cells:
        metadata = {"vscode": {"languageId": cell.language}} if cell.is_code else {}
        found.append({"cell_type": "code" if cell.is_code else "markdown", "metadata": metadata, "source": cell.text})
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def texts_of(text: str) -> list[str]:
    """The texts of the cells in such a file."""
    sources = [cell["source"] for cell in json.loads(text)["cells"]]
    return ["".join(source) for source in sources]


def _cell(item: Any, texts: dict[str, Any]) -> Cell:
    text = texts[item.document]
    return Cell(text.uri, text.version, text.text, str(text.language_id), _is_code(item))


def _as(cell: Cell, item: Any) -> Cell:
    return replace(cell, is_code=_is_code(item))


def _is_code(item: Any) -> bool:
    return bool(item.kind == types.NotebookCellKind.Code)


def _typed(cell: Cell, item: Any, units: Units) -> Cell:
    text = cell.text
    for part in item.changes:
        span = getattr(part, "range", None)
        if span is None:
            text = part.text
            continue
        lines = lines_of(text)
        start = offset(lines, span.start.line, span.start.character, units)
        end = offset(lines, span.end.line, span.end.character, units)
        text = text[:start] + part.text + text[end:]
    return replace(cell, text=text, version=item.document.version)
