"""Finds entries by words: what somebody remembers of a message is rarely the message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tl2npu.errors.entry import KINDS, Entry
from tl2npu.errors.table import ENTRIES

MOST = 8
"""Entries that are shown; who finds more should give more words."""

_WORD = re.compile(r"[a-z0-9_]+")
_LONG = 5


def search(text: str) -> tuple[Entry, ...]:
    """The entries whose message has every word of a text, the closest first; none where a word is in no message.

    A word of five letters may be a part of one (``align`` in ``unaligned``), a shorter one must begin it, and one of
    two must be it.
    """
    wanted = _WORD.findall(text.lower())
    if not any(len(word) > 2 for word in wanted):
        return ()
    found = [(score, entry) for entry in ENTRIES for score in [_score(entry, text.strip().lower(), wanted)] if score]
    found.sort(key=lambda pair: (pair[0], KINDS.index(pair[1].kind)))
    return tuple(entry for _, entry in found[:MOST])


def _score(entry: Entry, text: str, wanted: list[str]) -> tuple[int, int] | None:
    """How far the closest message is: whether it has the text as it stands, and how many words more it has."""
    scores = []
    for message in _messages(entry):
        words = _WORD.findall(message)
        if all(any(_is(word, of) for of in words) for word in wanted):
            scores.append((0 if text in message else 1, len(words) - len(wanted)))
    return min(scores, default=None)


def _messages(entry: Entry) -> Iterator[str]:
    for said in (*(template.text for template in entry.says), entry.example):
        yield said.lower()


def _is(word: str, of: str) -> bool:
    if len(word) <= 2:
        return word == of
    return word in of if len(word) >= _LONG else of.startswith(word)
