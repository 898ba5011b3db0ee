"""Source lines with their numbers and a caret, and what became of them, for terminals."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from tl2npu.report.escape import visible
from tl2npu.report.hunks import Block
from tl2npu.report.model import Finding

_TAB = 4
_CHANGE_LINES = 10
_LONGEST = 400  # cells, also where no terminal has a width


def excerpt(finding: Finding, room: int | None = None) -> Iterator[str]:
    """The lines of a finding, marked below the first; ``room`` is the width that a line may take."""
    line, column = finding.diagnostic.line, finding.diagnostic.column
    width = len(str(line + len(finding.source)))
    room = _LONGEST if room is None else room - width - 3
    for number, text in enumerate(finding.source, line):
        shown, start, length = _marked(text, column)
        shown, start, length = _cut(shown, start, length, room) if number == line else _cut(shown, 0, 0, room)
        yield f"{number:>{width}} | {shown}".rstrip()
        if number == line:
            yield f"{'':>{width}} | {' ' * start}{'^' * length}"


def change(block: Block, room: int | None = None) -> Iterator[str]:
    """A small change as a diff; of a large one only where it is."""
    count = len(block.old) + len(block.new)
    width = len(str(block.line + len(block.old)))
    if count > _CHANGE_LINES:
        last = block.line + len(block.old) - 1
        lines = f"line {block.line}" if last == block.line else f"lines {block.line} to {last}"
        yield f"{'':>{width}} = rewritten with {lines}"
        return
    limit = _LONGEST if room is None else room - width - 3
    for number, text in enumerate(block.old, block.line):
        yield f"{number:>{width}} - {_plain(text, limit)}".rstrip()
    for text in block.new:
        yield f"{'':>{width}} + {_plain(text, limit)}".rstrip()


def _plain(text: str, room: int) -> str:
    return _cut(visible(text.removesuffix("\r")).expandtabs(_TAB), 0, 0, room)[0]


def _marked(text: str, column: int) -> tuple[str, int, int]:
    """The line as it is shown, and the cells to mark: from ``column``, from 1, or from the first word of the line."""
    start = min(column - 1, len(text))
    start += len(text[start:]) - len(text[start:].lstrip())
    before, marked = visible(text[:start]).expandtabs(_TAB), visible(text[start:].rstrip())
    shown = (before + marked).expandtabs(_TAB)
    whole = column <= len(text) - len(text.lstrip()) + 1  # no column of its own, or the first: the statement is meant
    return shown, _cells(before), _cells(shown[len(before) :]) if whole and marked else 1


def _cut(text: str, start: int, length: int, room: int) -> tuple[str, int, int]:
    """At most ``room`` cells, with the marked ones among them as far as they fit; dots stand for what is left out."""
    room = max(room, 20)
    ends = list(accumulate(map(_cells, text), initial=0))
    if start + min(length, room // 2) > room - 3:  # the mark would be outside: leave out the beginning
        left = bisect_left(ends, start - room // 3)
        start -= ends[left] - 3
        text = "..." + text[left:]
        ends = [0, 1, 2, *(end - ends[left] + 3 for end in ends[left:])]
    if ends[-1] > room:
        text = text[: bisect_right(ends, room - 3) - 1] + "..."
    return text, start, max(1, min(length, room - start)) if length else 0


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
