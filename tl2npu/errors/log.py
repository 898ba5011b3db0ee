"""Finds what is known in a text: one message, or a log of any size.

The work is bounded: of a long text the first and the last part are read, of a line the first characters. Every entry is
looked for by a literal part of its message; only lines that have it are matched.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import BinaryIO

from tl2npu.errors.aicore import BITS, BITS_A5, words
from tl2npu.errors.entry import KINDS, WORD, Entry, Template
from tl2npu.errors.runtime import INNER
from tl2npu.errors.table import BY_KEY, CODES, ENTRIES

PART = 4 * 1024 * 1024
"""Bytes that are read at each end of a log: what began it, and what ended it."""

LINE = 4000
"""Characters that are read of a line."""

_STEP = 256 * 1024
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_INNER = re.compile(r"\b0x0?71500([0-9a-fA-F]{2})\b")
_CODE = re.compile(
    r"(?i:err|code|fail|ret|result|status)(?:(?!(?i:pid|tid|port))[^\n\d]){0,40}(?<![\d.])([1-5]\d{5})(?![\d.]\d|\d)"
    r"|(?<![A-Za-z0-9_])(E[A-Z0-9]\d{4})(?![A-Za-z0-9_])"
    r"|(?m:^[ \t]{0,8}([1-5]\d{5})[ \t\r]{0,8}$)"
)
_REGISTERS = re.compile(
    r"errcode:\s{0,2}\(([0-9a-fx, ]{1,200})\)|error code = (0x[0-9a-f]{1,16}|\d{1,3}(?:, \d{1,3}){0,20}),"
)


@dataclass(frozen=True)
class Found:
    """An entry in a text. ``line``: where it stands first, from 1; ``text``: that line; ``names``: what it names."""

    entry: Entry
    line: int
    text: str
    count: int = 1
    names: tuple[tuple[str, str], ...] = ()
    bits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Explained:
    """What is known of a text, causes first. ``skipped``: lines in the middle that were not read."""

    found: tuple[Found, ...]
    skipped: int = 0


@dataclass(frozen=True)
class _Match:
    start: int
    end: int
    weight: int
    entry: Entry
    names: tuple[tuple[str, str], ...] = ()
    bits: tuple[int, ...] = ()


@dataclass
class _Line:
    number: int
    text: str
    matches: dict[tuple[object, ...], _Match] = field(default_factory=dict)

    def add(self, match: _Match, *key: object) -> None:
        """Keep the first match of each kind: a line may say the same thing a thousand times."""
        self.matches.setdefault((match.entry.key, *key), match)


@dataclass
class _Segment:
    """A part of a text whose lines are found by position. ``first``: the number of its first line."""

    text: str
    first: int
    lines: dict[int, _Line] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_at(self, position: int) -> tuple[_Line, int]:
        """The line at a position, and where it begins."""
        index = bisect_right(self.starts, position) - 1
        start = self.starts[index]
        if index not in self.lines:
            end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.text)
            self.lines[index] = _Line(self.first + index, self.text[start : min(end, start + LINE)])
        return self.lines[index], start


@cache
def _templates() -> tuple[tuple[Template, Entry], ...]:
    return tuple((template, entry) for entry in ENTRIES for template in entry.says)


def explain(text: str) -> Explained:
    """What is known in a text, the first cause first, then symptoms, fallout and envelopes, each by line."""
    if len(text) <= PART:
        return _explained([_Segment(_plain(text), 1)], 0)
    return explain_stream(BytesIO(text.encode("utf-8", "replace")))


def explain_stream(stream: BinaryIO) -> Explained:
    """The same for what a stream of bytes holds, of any size: only its ends are kept."""
    head = b""
    while len(head) < PART and (chunk := stream.read(PART - len(head))):
        head += chunk
    tail, dropped = bytearray(), 0
    while chunk := stream.read(PART):
        tail += chunk
        gone = max(len(tail) - PART, 0)
        dropped += tail.count(b"\n", 0, gone)
        del tail[:gone]
    before = _plain(head.decode("utf-8", "replace"))
    if not dropped:
        return _explained([_Segment(before + _plain(tail.decode("utf-8", "replace")), 1)], 0)
    after = _Segment(_plain(tail.decode("utf-8", "replace")), 1 + head.count(b"\n") + dropped)
    return _explained([_Segment(before, 1), after], dropped)


def _plain(text: str) -> str:
    """A text without what a terminal or another system puts into it."""
    return _COLOURS.sub("", text).replace("\r\n", "\n")


def _explained(segments: list[_Segment], skipped: int) -> Explained:
    for segment in segments:
        words = _words(segment.text)
        for template, entry in _templates():
            if not template.words <= words:
                continue
            for position in _places(segment.text, template.needle):
                line, _ = segment.line_at(position)
                if found := template.pattern.search(line.text):
                    names = tuple(found.groupdict().items())
                    line.add(_Match(*found.span(), template.weight, entry, names), template.text)
        for pattern, read in ((_CODE, _coded), (_REGISTERS, _registers)):
            for found in pattern.finditer(segment.text):
                line, start = segment.line_at(found.start())
                for match in read(found, start):
                    line.add(match, *match.bits)
    lines = (segment.lines[index] for segment in segments for index in sorted(segment.lines))
    return Explained(tuple(_in_order(lines)), skipped)


def explain_query(text: str) -> Explained:
    """As ``explain``, for what somebody types: a register may stand alone, and codes between any words."""
    bare = text.strip()
    inner = [INNER.get(int(number, 16)) for number in _INNER.findall(text)]
    if bare in CODES:
        return Explained((Found(CODES[bare], 1, bare),))
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", bare) and not any(inner):
        return explain(f"errcode:({bare.lower()}, 0, 0)")
    explained = explain(text)
    known = {one.entry.key for one in explained.found}
    codes = dict.fromkeys(word for word in (*re.findall(r"\w+", text[:LINE]), *filter(None, inner)) if word in CODES)
    alone = {CODES[code].key: Found(CODES[code], 1, code) for code in codes if CODES[code].key not in known}
    found = sorted((*explained.found, *alone.values()), key=lambda one: KINDS.index(one.entry.kind))
    return Explained(tuple(found), explained.skipped)


def _words(text: str) -> set[str]:
    """The words of a text: most templates have one that a log lacks, and need not be looked for."""
    found: set[str] = set()
    for start in range(0, len(text), _STEP):
        found.update(WORD.findall(text, max(start - LINE, 0), start + _STEP))
    return found


def _places(text: str, needle: str) -> Iterator[int]:
    """Where a literal stands, once for each line."""
    position = text.find(needle)
    while position >= 0:
        yield position
        after = text.find("\n", position)
        position = text.find(needle, after) if after >= 0 else -1


def _coded(found: re.Match[str], start: int) -> Iterable[_Match]:
    code = found[1] or found[2] or found[3]
    at = found.end() - start - len(code)
    if code in CODES:
        yield _Match(at, at + len(code), len(code), CODES[code])


def _registers(found: re.Match[str], start: int) -> Iterable[_Match]:
    at = found.start() - start
    values = [part.strip() for part in (found[1] or found[2]).split(",")]
    hexadecimal = any(value.startswith("0x") for value in values)
    if not all(re.fullmatch(r"0x[0-9a-f]{1,16}|\d{1,19}", value) for value in values):
        return
    numbers = [int(value, 0 if value.startswith("0x") else 10) for value in values]
    table = BITS if hexadecimal else BITS_A5
    bits = tuple(words(numbers)) if hexadecimal else tuple(number for number in numbers if number)
    for bit in bits:
        if bit in table:
            yield _Match(at, at, 1, BY_KEY[table[bit]], bits=(bit,))


def _in_order(lines: Iterable[_Line]) -> list[Found]:
    found: dict[str, Found] = {}
    last: dict[str, int] = {}
    for line in lines:
        for match in _chosen(list(line.matches.values())):
            entry = match.entry
            known = found.get(entry.key)
            if known is None:
                found[entry.key] = Found(entry, line.number, line.text.strip(), 1, match.names, match.bits)
            else:
                count = known.count + (line.number != last[entry.key])
                bits = tuple(sorted({*known.bits, *match.bits}))
                found[entry.key] = Found(entry, known.line, known.text, count, known.names or match.names, bits)
            last[entry.key] = line.number
    return sorted(found.values(), key=lambda one: (KINDS.index(one.entry.kind), one.line))


def _chosen(matches: list[_Match]) -> list[_Match]:
    """Of matches that overlap the most specific one, most specific first; an envelope only where nothing else is."""
    kept: list[_Match] = []
    for match in sorted(matches, key=lambda one: (-one.weight, one.start)):
        if all(match.end <= other.start or other.end <= match.start for other in kept):
            kept.append(match)
    telling = [match for match in kept if match.entry.kind != "envelope"]
    return telling or kept
