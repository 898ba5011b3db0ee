"""The diff of a file in the pieces that reports show: as a patch, as two columns, as replacements.

The lines of a hunk are those of a unified diff: a marker (space, ``-``, ``+``) and the text, or the note that the line
before has no newline at its end. Only ``\\n`` ends a line; a carriage return is part of the text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NO_NEWLINE = "\\ No newline at end of file"
_HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Hunk:
    """``old`` and ``new`` are the numbers that stand in its head: of the first line, or of the line before if none."""

    old: int
    new: int
    lines: tuple[str, ...]

    @property
    def head(self) -> str:
        """``@@ -1,3 +1,4 @@``."""
        return f"@@ -{_range(self.old, self._count(' -'))} +{_range(self.new, self._count(' +'))} @@"

    def _count(self, markers: str) -> int:
        return sum(line[0] in markers for line in self.lines)


@dataclass(frozen=True)
class Block:
    """A run of changed lines without markers: ``old`` lines at ``line`` (from 1) of the input became ``new``.

    With ``old`` empty, ``new`` is inserted before ``line``. ``at_end`` marks texts that end without a newline:
    whether that is so of the old and of the new lines.
    """

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: tuple[bool, bool] = (False, False)


def hunks_of(old: str, new: str, context: int = 3) -> tuple[Hunk, ...]:
    """The difference of two texts; empty if they are equal."""
    return tuple(parse(list(difflib.unified_diff(_lines(old), _lines(new), n=context))[2:]))


def unified(path: str, hunks: Sequence[Hunk]) -> str:
    """A patch for ``git apply``; empty without hunks. Paths with control characters are not quoted as git would."""
    if not hunks:
        return ""
    tab = "\t" if " " in path else ""
    head = [f"diff --git a/{path} b/{path}", f"--- a/{path}{tab}", f"+++ b/{path}{tab}"]
    body = [line for hunk in hunks for line in (hunk.head, *hunk.lines)]
    return "\n".join([*head, *body]) + "\n"


def parse_unified(text: str) -> tuple[Hunk, ...]:
    """The hunks of a patch of one file. Raises :class:`ValueError` if they are malformed."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    return tuple(parse(line + "\n" for line in lines[starts[0] : -1])) if starts else ()


def parse(lines: Iterable[str]) -> Iterator[Hunk]:
    """Hunks from the lines of a unified diff, each with its ``\\n`` unless the text has none there."""
    start: tuple[int, int] | None = None
    body: list[str] = []
    for line in lines:
        head = _HEAD.match(line)
        if head:
            if start is not None:
                yield Hunk(*start, tuple(body))
            start, body = (int(head.group(1)), int(head.group(3))), []
        elif start is None or line[:1] not in (" ", "-", "+", "\\"):
            raise ValueError(f"not a line of a diff: {line.rstrip()[:40]!r}")
        else:
            ended = line.endswith("\n")
            body += [line[:-1] if ended else line, *[NO_NEWLINE] * (not ended)]
    if start is not None:
        yield Hunk(*start, tuple(body))


def blocks(hunks: Sequence[Hunk]) -> Iterator[Block]:
    """Every run of changed lines, in order."""
    for hunk in hunks:
        line = hunk.old if hunk._count(" -") else hunk.old + 1
        old: list[str] = []
        new: list[str] = []
        ends = [False, False]
        last = " "
        for text in (*hunk.lines, " "):
            if text == NO_NEWLINE:
                ends = [ends[0] or last in "- ", ends[1] or last in "+ "]
                continue
            last = text[0]
            if last == "-":
                old.append(text[1:])
            elif last == "+":
                new.append(text[1:])
            else:
                if old or new:
                    yield Block(line, tuple(old), tuple(new), (ends[0], ends[1]))
                line += len(old) + 1
                old, new, ends = [], [], [False, False]


def block_at(hunks: Sequence[Hunk], line: int) -> Block | None:
    """The change of a line of the input, None if the line stays."""
    return next((block for block in blocks(hunks) if block.line <= line < block.line + len(block.old)), None)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"
