"""``# TODO(tl2npu): TL184 ...`` and ``# NOTE(tl2npu): TL720 ...``: comments that mark where manual work is left, as
``--partial`` writes them, or should look, as ``--notes`` does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

TODO, NOTE = "TODO", "NOTE"
_COMMENT = re.compile(r"[ \t]*# (TODO|NOTE)\(tl2npu\): (TL\d{3}) (.*)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Text:
    """A text with, for each of its lines, the line of another text that it comes from (0: from none)."""

    text: str
    origins: tuple[int, ...]

    def place(self, line: int) -> int:
        """The line of this text that comes from a line of the other one, or from the next line that is here."""
        return next((i for i, found in enumerate(self.origins, 1) if found >= line), max(1, len(self.origins)))


def without_comments(text: str, word: str = TODO) -> Text:
    """The text without the comments of an earlier run, which may be out of date."""
    lines = _LINE.findall(text)
    kept = [(i, line) for i, line in enumerate(lines, 1) if not (it := _COMMENT.match(line)) or it.group(1) != word]
    return Text("".join(line for _, line in kept), tuple(i for i, _ in kept))


def comments(text: str, word: str) -> list[tuple[int, str, str]]:
    """The comments of an earlier run: (line, rule code, message)."""
    found = ((i, _COMMENT.match(line)) for i, line in enumerate(_LINE.findall(text), 1))
    return [(i, it.group(2), it.group(3).rstrip()) for i, it in found if it is not None and it.group(1) == word]


def with_comments(text: str, wanted: Iterable[tuple[int, str, str]], word: str = TODO) -> Text:
    """The text with a comment above each statement that has something to be said: (line, rule code, message)."""
    lines = _LINE.findall(text)
    starts = _statement_lines(text)
    above: dict[int, dict[str, None]] = {}
    for line, code, message in sorted(wanted):
        above.setdefault(starts.get(line, line), {})[f"{code} {' '.join(message.split())}"] = None
    result: list[str] = []
    origins: list[int] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip())]
        end = "\r\n" if line.endswith("\r\n") else "\n"
        for todo in above.get(number, ()):
            result.append(f"{indent}# {word}(tl2npu): {todo}{end}")
            origins.append(0)
        result.append(line)
        origins.append(number)
    return Text("".join(result), tuple(origins))


def _statement_lines(text: str) -> dict[int, int]:
    """Line -> the first line of the innermost statement, or header of one, that it belongs to."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.stmt, ast.excepthandler)):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(item.lineno for item in decorators)])
            for line in range(first, (node.end_lineno or first) + 1):  # inner statements come later and win
                found[line] = first
    return found
