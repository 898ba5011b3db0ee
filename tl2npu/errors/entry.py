"""One row of the table of messages, and the form in which a message is written there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["cause", "symptom", "fallout", "envelope"]
"""``cause``: the message says what is wrong. ``symptom``: it says what happened, not why. ``fallout``: the consequence
of an earlier fault. ``envelope``: it only wraps another message."""

KINDS: tuple[Kind, ...] = ("cause", "symptom", "fallout", "envelope")
"""In the order in which a log is explained."""

Row = tuple[str, Kind, str, tuple[str, ...], str, str, str, str]
"""Key, kind, rules, templates, an example, what it means, what to do, and where that is known from."""

WORD = re.compile(r"[A-Za-z_]{4,}")
"""A word that a text can be asked for."""

_PART = re.compile(r"\{(\w+)\}|\.\.\.")
_WORD = r"[\w.+-]{1,120}"
_GAP = r"[^\n]{0,300}?"


@dataclass(frozen=True)
class Template:
    """A message as it is printed, on one line: ``{buffer}`` is a word or a number, ``...`` any text, once at most.

    A template is not a regular expression, so that none can take long: its literal parts are looked for as they are.
    """

    text: str

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The parts that are always there."""
        found, at = [], 0
        for part in _PART.finditer(self.text):
            found.append(self.text[at : part.start()])
            at = part.end()
        return tuple(part for part in (*found, self.text[at:]) if part.strip())

    @cached_property
    def needle(self) -> str:
        """The longest part that is always there: a line without it need not be looked at."""
        return max(self.literals, key=len)

    @cached_property
    def words(self) -> frozenset[str]:
        """The whole words that are always there: not those at an end, which may go on in the text."""
        found = ((word, part) for part in self.literals for word in WORD.finditer(part))
        return frozenset(word.group() for word, part in found if word.start() > 0 and word.end() < len(part))

    @cached_property
    def weight(self) -> int:
        """How specific it is: the characters that are always there."""
        return sum(map(len, self.literals))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What finds it in a line; a word in braces is a group of that name."""
        parts, at = [], 0
        for part in _PART.finditer(self.text):
            parts += [re.escape(self.text[at : part.start()]), f"(?P<{part[1]}>{_WORD})" if part[1] else _GAP]
            at = part.end()
        return re.compile("".join((*parts, re.escape(self.text[at:]))))


@dataclass(frozen=True)
class Entry:
    """A code or message of the Ascend stack.

    ``rules``: codes of tl2npu that are about it, the likeliest first. ``says``: the messages; a code stands as it is.
    ``source``: a file of tile-ai/tilelang-ascend 95acbd7f (``tvm/``: of its TVM), of another repository, or a thread.
    """

    key: str
    kind: Kind
    layer: str
    rules: tuple[str, ...]
    says: tuple[Template, ...]
    example: str
    means: str
    do: str
    source: str

    @classmethod
    def of(cls, layer: str, row: Row) -> Entry:
        """The entry of a row of a table."""
        key, kind, rules, says, example, means, do, source = row
        return cls(key, kind, layer, tuple(rules.split()), tuple(map(Template, says)), example, means, do, source)
