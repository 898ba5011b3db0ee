"""How one text becomes another, line by line, and positions as the protocol counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Units = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # the protocol's lines: no form feeds, no U+2028


@dataclass(frozen=True)
class Position:
    """From 0; ``character`` in the units that client and server agreed upon."""

    line: int
    character: int


@dataclass(frozen=True)
class Edit:
    """Replaces what stands from ``start`` to ``end``."""

    start: Position
    end: Position
    text: str


def lines_of(text: str) -> list[str]:
    """The lines, with their ends."""
    return _LINE.findall(text)


def edits(old: str, new: str, units: Units) -> list[Edit]:
    """The runs of lines that differ, from the top; none of them touches another."""
    before, after = lines_of(old), lines_of(new)
    found: list[Edit] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append(Edit(_begin(before, first, units), _begin(before, last, units), "".join(after[start:end])))
    return found


def position(lines: list[str], line: int, column: int, units: Units) -> Position:
    """The position of a line and a column, both from 1, columns in characters."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Position(max(0, line - 1), width(text.rstrip("\r\n")[: max(0, column - 1)], units))


def end_of(lines: list[str], line: int, units: Units) -> Position:
    """The end of the code of a line, from 1."""
    return position(lines, line, len(lines[line - 1].rstrip()) + 1 if 0 < line <= len(lines) else 1, units)


def offset(lines: list[str], line: int, character: int, units: Units) -> int:
    """How many characters stand before a position; one behind the end of its line is the end of the line."""
    text = lines[line].rstrip("\r\n") if line < len(lines) else ""
    before = 0
    while before < len(text) and width(text[:before], units) < character:
        before += 1
    return sum(map(len, lines[:line])) + before


def width(text: str, units: Units) -> int:
    """How many units a text takes."""
    if units == "utf-32":
        return len(text)
    size = len(text.encode(units.replace("utf-16", "utf-16-le"), "surrogatepass"))
    return size // 2 if units == "utf-16" else size


def _begin(lines: list[str], index: int, units: Units) -> Position:
    """Where a line begins, from 0; behind a last line without an end there is none, so it is that line's end."""
    if index == len(lines) and lines and not lines[-1].endswith(("\r", "\n")):
        return Position(index - 1, width(lines[-1], units))
    return Position(index, 0)
