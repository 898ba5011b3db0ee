"""Edits and positions, against a client that applies them as the protocol says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.lsp.edits import Edit, Position, Units, edits, end_of, lines_of, position

ENCODINGS: dict[Units, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
texts = st.text(st.sampled_from("ab\n\r\x0c\u2028é😀"), max_size=12)
units = st.sampled_from(list(ENCODINGS))


def offset(text: str, place: Position, unit: Units) -> int:
    """The character of a position, by the words of the protocol."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text)), len(text)]
    assert place.line < len(starts)
    encoding, size = ENCODINGS[unit]
    line = text[starts[place.line] :].encode(encoding)[: place.character * size]
    return starts[place.line] + len(line.decode(encoding))


def applied(text: str, found: list[Edit], unit: Units) -> str:
    """From the end, so that no edit moves another one."""
    for item in reversed(found):
        start, end = offset(text, item.start, unit), offset(text, item.end, unit)
        assert start <= end
        text = text[:start] + item.text + text[end:]
    return text


@given(texts, texts, units)
def test_edits_make_the_new_text(old: str, new: str, unit: Units) -> None:
    assert applied(old, edits(old, new, unit), unit) == new


def test_edits_are_small() -> None:
    old = "".join(f"line {n}\n" for n in range(1000))
    found = edits(old, old.replace("line 500\n", "x\ny\n").replace("line 700\n", ""), "utf-16")
    assert found == [
        Edit(Position(500, 0), Position(501, 0), "x\ny\n"),
        Edit(Position(700, 0), Position(701, 0), ""),
    ]


@pytest.mark.parametrize(("unit", "expected"), [("utf-8", 7), ("utf-16", 4), ("utf-32", 3)])
def test_positions_count_units(unit: Units, expected: int) -> None:
    lines = lines_of("first\r\né😀 x = 1  \r\n")
    assert position(lines, 2, 4, unit) == Position(1, expected)
    assert end_of(lines, 2, unit) == Position(1, expected + 5)


def test_lines_are_those_of_the_protocol() -> None:
    assert lines_of("a\x0cb\u2028c\rd\r\ne") == ["a\x0cb\u2028c\r", "d\r\n", "e"]
