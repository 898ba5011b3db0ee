"""Where the values of a JSON text stand in it, so that one can be replaced and every other character stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

Span = tuple[int, int]


def members(text: str, at: int) -> dict[str, Span]:
    """Key -> span of the value, for the object that begins at ``at`` in a text that is known to be JSON.

    Of a key that is there twice the last one counts, as for every reader.
    """
    found: dict[str, Span] = {}
    at = _after_blank(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _after_blank(text, _after_blank(text, at) + 1)  # behind the colon
        end = _end(text, start)
        found[key] = start, end
        at = _behind_comma(text, end)
    return found


def items(text: str, at: int) -> Iterator[Span]:
    """The spans of the elements of the array that begins at ``at``."""
    at = _after_blank(text, at + 1)
    while text[at] != "]":
        end = _end(text, at)
        yield at, end
        at = _behind_comma(text, end)


def _end(text: str, at: int) -> int:
    return _DECODER.raw_decode(text, at)[1]


def _behind_comma(text: str, at: int) -> int:
    at = _after_blank(text, at)
    return _after_blank(text, at + 1) if text[at] == "," else at


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None  # it matches the empty text
    return match.end()
