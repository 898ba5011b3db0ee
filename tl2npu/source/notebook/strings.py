"""The text of a cell in the JSON of its notebook: a string or a list of lines, rewritten as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from tl2npu.source.notebook.spans import Span, items

_PIECE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)


@dataclass
class Spelling:
    """How strings are escaped: what a JSON writer must escape is, the rest as the strings seen so far do it."""

    escapes: dict[str, str] = field(default_factory=dict)
    ascii_only: bool | None = None  # None: no character outside of ASCII was seen
    upper: bool = False

    def learn(self, raw: str) -> None:
        """Look at the inside of a JSON string."""
        if raw.isascii() and "\\" not in raw:
            return
        for piece in _PIECE.findall(raw):
            if piece[0] == "\\":
                character = json.loads(f'"{piece}"')
                self.escapes[character] = piece
                if character > "\x7f":
                    self.ascii_only = True
                    self.upper = self.upper or re.search(r"[A-F]", piece[2:]) is not None
            elif piece > "\x7f":
                self.ascii_only = bool(self.ascii_only)

    def or_else(self, other: Spelling) -> Spelling:
        """This spelling, with what it says nothing about as the other one has it."""
        own = self.ascii_only is not None
        return Spelling(
            {**other.escapes, **self.escapes},
            self.ascii_only if own else other.ascii_only,
            self.upper if own else other.upper,
        )

    def write(self, text: str) -> str:
        """The inside of a JSON string."""
        return "".join(self.escapes.get(character) or self._escape(character) for character in text)

    def _escape(self, character: str) -> str:
        written = json.dumps(character, ensure_ascii=bool(self.ascii_only))[1:-1]
        is_code = self.upper and written.startswith("\\u")
        return written.upper().replace("\\U", "\\u") if is_code else written


@dataclass(frozen=True)
class Source:
    """The ``source`` of a cell: the span of each string in the JSON text, quotes included, and their values."""

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

    def raw(self, json_text: str) -> list[str]:
        """The insides of the strings as they are written."""
        return [json_text[start + 1 : end - 1] for start, end in self.strings]

    def rewritten(self, json_text: str, new: str, spelling: Spelling) -> str:
        """The JSON text of this value with another text in it; lines that stay are written as they were."""
        own = Spelling()
        for raw in self.raw(json_text):
            own.learn(raw)
        spelling = own.or_else(spelling)
        if not self.is_list:
            old_lines, raw_lines = _lines_of(self.raw(json_text)[0])
            new_lines = _split(new)
            return '"' + "".join(raw for raw, _ in _aligned(old_lines, raw_lines, new_lines, spelling)) + '"'
        return self._list(json_text, new, spelling)

    def _list(self, json_text: str, new: str, spelling: Spelling) -> str:
        raws = self.raw(json_text)
        start, end = self.span
        edges = [start + 1, *(edge for span in self.strings for edge in span), end - 1]
        gaps = [json_text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]  # before, between, behind
        first, last = (gaps[0], gaps[-1]) if self.strings else ("", "")
        usual = gaps[1] if len(gaps) > 2 else "," + (first or " ")
        parts: list[str] = []
        before: int | None = None
        for raw, number in _aligned(self.values, raws, _chunks(self.values, new), spelling):
            if parts:
                follows = number is not None and before is not None and number == before + 1
                parts.append(gaps[number] if follows and number is not None else usual)
            parts.append(f'"{raw}"')
            before = number
        return "[" + first + "".join(parts) + last + "]"


def _aligned(
    old: Sequence[str], raws: Sequence[str], new: Sequence[str], spelling: Spelling
) -> list[tuple[str, int | None]]:
    """Each new string as it is written, with the number of the old one that it is, if it is one."""
    found: list[tuple[str, int | None]] = []
    for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [(raws[number], number) for number in range(start, end)]
        else:
            found += [(spelling.write(text), None) for text in new[first:last]]
    return found


def _chunks(values: Sequence[str], new: str) -> list[str]:
    """A text cut like the old one: at its lines, and where what stays was cut in another way, as it was."""
    text = "".join(values)
    for split in (_split, _split_everywhere):
        if split(text) == list(values):
            return split(new)
    front = 0
    while front < len(values) and new.startswith(values[front]):
        new = new[len(values[front]) :]
        front += 1
    back = len(values)
    while back > front and values[back - 1] and new.endswith(values[back - 1]):
        back -= 1
        new = new[: -len(values[back])]
    return [*values[:front], *_split(new), *values[back:]]


def _split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _split_everywhere(text: str) -> list[str]:
    """As Jupyter splits: also at form feeds, the line separators of Unicode and their like."""
    return text.splitlines(keepends=True)


def _lines_of(raw: str) -> tuple[list[str], list[str]]:
    """The lines of a JSON string, and how each is written."""
    raw_lines = [""]
    for piece in _PIECE.findall(raw):
        raw_lines[-1] += piece
        if json.loads(f'"{piece}"') == "\n":
            raw_lines.append("")
    raw_lines = raw_lines if raw_lines[-1] else raw_lines[:-1]
    return [json.loads(f'"{line}"') for line in raw_lines], raw_lines
