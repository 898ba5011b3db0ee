"""A notebook as one module of Python: the code cells in their order, with a mark between them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from tl2npu.source.layout import relayout
from tl2npu.source.notebook import magics
from tl2npu.source.notebook.magics import Masked
from tl2npu.source.notebook.spans import Span, items, members
from tl2npu.source.text import SourceError

SUFFIX = ".ipynb"
_PYTHON = frozenset({"python", "python2", "python3", "ipython", "ipython3", ""})


class NotebookSkipped(Exception):
    """A notebook with nothing to read in it: another language, no code; ``str()`` says what it is."""


@dataclass(frozen=True)
class Cell:
    """One code cell. ``number`` counts all cells from 1, those with prose too. ``start``: its first line in the module.

    ``foreign`` is the magic of a cell in another language, which is not part of the module.
    """

    number: int
    source: Source
    foreign: str | None = None
    masked: Masked = field(default_factory=lambda: Masked("", ()))
    start: int = 0

    @property
    def text(self) -> str:
        """What stands in the cell."""
        return self.source.text


def is_notebook(path: str | PurePath) -> bool:
    """True for a name that ends in ``.ipynb``."""
    return PurePath(path).suffix.lower() == SUFFIX


@dataclass(frozen=True)
class Notebook:
    """The text of a notebook with its code cells; ``token`` is a word that stands nowhere in it."""

    json_text: str
    cells: tuple[Cell, ...]
    token: str

    @classmethod
    def read(cls, json_text: str) -> Notebook:
        """Raises :class:`SourceError` for what is not a notebook, :class:`NotebookSkipped` for one without Python."""
        content = _loaded(json_text)
        language = _language(content.get("metadata"))
        if language.lower() not in _PYTHON:
            raise NotebookSkipped(f"a notebook in {language}")
        token = "tl2npu-" + blake2b(json_text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        cells: list[Cell] = []
        line = 1
        for number, (span, raw) in enumerate(zip(_cells(json_text), content["cells"], strict=True), 1):
            source = _code(json_text, span, raw, number)
            if source is None:
                continue
            foreign = magics.foreign_magic(source.text) or _foreign_metadata(raw)
            masked = magics.mask(source.text, f"{token}-{number}")
            cells.append(Cell(number, source, foreign, masked, line))
            line += 0 if foreign else masked.text.count("\n") + 2
        if not cells:
            raise NotebookSkipped("a notebook without code cells")
        return cls(json_text, tuple(cells), token)

    @cached_property
    def python(self) -> tuple[Cell, ...]:
        """The cells that are part of the module."""
        return tuple(cell for cell in self.cells if cell.foreign is None)

    @cached_property
    def code(self) -> str:
        """The module: the cells, and between them a statement that marks where one ends.

        A statement and not a comment, since what a pass writes before the first statement of a cell belongs to that
        cell. One space before its comment is not black's way: the module is never taken for one that black laid out.
        """
        texts: list[str] = []
        for cell in self.python:
            texts += [f"pass # {self.token}-{cell.number}\n"] * bool(texts) + [cell.masked.text + "\n"]
        return "".join(texts)

    def place(self, line: int) -> tuple[int, int]:
        """Number of the cell and line in it, of a line of the module."""
        at = max(0, bisect_right([cell.start for cell in self.python], line) - 1)
        cell = self.python[at]
        return cell.number, max(1, min(line - cell.start + 1, cell.text.count("\n") + 1))

    def file_line(self, number: int, line: int) -> int:
        """The line of the file on which a line of a cell stands."""
        return self._file_lines[number][line - 1]

    @cached_property
    def _file_lines(self) -> dict[int, tuple[int, ...]]:
        return {cell.number: self._lines_of(cell) for cell in self.cells}

    def _lines_of(self, cell: Cell) -> tuple[int, ...]:
        lines: list[int] = []
        where = self.json_text.count("\n", 0, cell.source.span[0]) + 1
        begins = True
        for (start, _), value in zip(cell.source.strings, cell.source.values, strict=True):
            where = self.json_text.count("\n", 0, start) + 1
            for part in value.splitlines(keepends=True):
                lines += [where] * begins
                begins = part.endswith("\n")
        return tuple(lines + [where] * begins)

    def with_code(self, code: str, path: str | None) -> str:
        """The text of the notebook with another module in its cells, each laid out by black if it was before.

        Raises :class:`SourceError` if a mark is lost: then nobody can tell which cell has what.
        """
        parts: list[str] = []
        at = 0
        for cell, text in zip(self.python, self._cut(code), strict=True):
            restored = cell.masked.restore(text)
            if restored is None:
                raise SourceError(f"cell {cell.number}: a line that is not Python would be lost")
            new = restored if restored == cell.text else _laid_out(cell, restored, path)
            start, end = cell.source.span
            parts += [self.json_text[at:start]]
            unchanged = new == cell.text
            parts += [self.json_text[start:end] if unchanged else cell.source.rewritten(self.json_text, new)]
            at = end
        return "".join(parts) + self.json_text[at:]

    def _cut(self, code: str) -> list[str]:
        texts: list[str] = []
        for cell in reversed(self.python[1:]):
            code, mark, text = code.rpartition(f"pass # {self.token}-{cell.number}\n")
            if not mark:
                raise SourceError(f"cell {cell.number} is no longer a cell of its own")
            texts.append(text)
        texts.append(code)
        return [text.removesuffix("\n") for text in reversed(texts)]


def _loaded(json_text: str) -> dict[str, Any]:
    try:
        content = json.loads(json_text)
    except RecursionError:
        raise SourceError("not a notebook: the JSON is nested too deep") from None
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise SourceError(f"not a notebook: invalid JSON: {message}", line) from None
    if not isinstance(content, dict):
        raise SourceError("not a notebook: the JSON is not an object")
    version = content.get("nbformat")
    if isinstance(version, int) and version < 4:
        raise SourceError(
            f"a notebook of format {version}: save it in format 4 first (`jupyter nbconvert --to notebook`)"
        )
    if not isinstance(content.get("cells"), list):
        raise SourceError("not a notebook: no list of cells")
    return content


def _language(metadata: object) -> str:
    """What the kernel runs; a notebook that does not say is one of Python."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        table = metadata.get(key) if isinstance(metadata, dict) else None
        value = table.get(name) if isinstance(table, dict) else None
        if isinstance(value, str):
            return value
    return ""


def _cells(json_text: str) -> list[tuple[int, int]]:
    top = members(json_text, json_text.index("{"))
    return list(items(json_text, top["cells"][0]))


def _code(json_text: str, span: tuple[int, int], raw: object, number: int) -> Source | None:
    """The source of a code cell; None for any other cell."""
    if not isinstance(raw, dict):
        raise SourceError(f"not a notebook: cell {number} is not an object")
    if raw.get("cell_type") != "code" or "source" not in raw:
        return None
    source = Source.read(json_text, members(json_text, span[0])["source"])
    if source is None:
        raise SourceError(f"not a notebook: the source of cell {number} is neither a text nor a list of lines")
    if any("\ud800" <= character <= "\udfff" or character == "\0" for character in source.text):
        raise SourceError(f"cell {number} has a character that no text has")
    return source


def _foreign_metadata(raw: dict[str, Any]) -> str | None:
    """The language of a single cell, as VS Code notes it."""
    metadata = raw.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return language if isinstance(language, str) and language.lower() not in _PYTHON else None


def _laid_out(cell: Cell, new: str, path: str | None) -> str:
    """Cells have no newline at their end, and black wants one."""
    if cell.masked.hidden or not cell.text.strip():
        return new
    return relayout(cell.text.rstrip("\n") + "\n", new.rstrip("\n") + "\n", path).rstrip("\n") + _ending(new)


def _ending(text: str) -> str:
    return text[len(text.rstrip("\n")) :]


@dataclass(frozen=True)
class Source:
    """The ``source`` of a cell, a string or a list of lines: the span of each in the JSON text, quotes included, and
    their values. Lines that stay are as they were."""

    span: Span
    is_list: bool
    strings: tuple[Span, ...]
    values: tuple[str, ...]

    @classmethod
    def read(cls, json_text: str, span: Span) -> Source | None:
        """None for a value that is neither a string nor a list of strings."""
        value = json.loads(json_text[slice(*span)])
        if isinstance(value, str):
            return cls(span, False, (span,), (value,))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return None
        return cls(span, True, tuple(items(json_text, span[0])), tuple(value))

    @property
    def text(self) -> str:
        """The text of the cell."""
        return "".join(self.values)

    def rewritten(self, json_text: str, new: str) -> str:
        """The JSON text of this value with another text in it, escaped as the notebook is."""
        ascii_only = json_text.isascii() and "\\u" in json_text
        if not self.is_list:
            return json.dumps(new, ensure_ascii=ascii_only)
        # as Jupyter splits, also at form feeds and the line separators of Unicode, or at newlines only
        lines = new.splitlines(keepends=True)
        if list(self.values) != self.text.splitlines(keepends=True):
            lines = re.findall(r"[^\n]*\n|[^\n]+", new)
        first, between, last = self._gaps(json_text)
        parts: list[str] = []
        for tag, old, to, made, until in SequenceMatcher(None, self.values, lines, autojunk=False).get_opcodes():
            if tag == "equal":
                parts.append(json_text[self.strings[old][0] : self.strings[to - 1][1]])
            else:
                parts += [json.dumps(line, ensure_ascii=ascii_only) for line in lines[made:until]]
        return "[" + first + between.join(parts) + last + "]"

    def _gaps(self, json_text: str) -> tuple[str, str, str]:
        """What stands in front of the first string of the list, between two strings, and behind the last one."""
        if not self.strings:
            return "", ", ", ""
        first = json_text[self.span[0] + 1 : self.strings[0][0]]
        last = json_text[self.strings[-1][1] : self.span[1] - 1]
        if len(self.strings) == 1:
            return first, "," + (first or " "), last
        return first, json_text[self.strings[0][1] : self.strings[1][0]], last
