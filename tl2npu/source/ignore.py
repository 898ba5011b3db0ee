"""Patterns as in .gitignore, matched in a time that no pattern can make long.

``*`` and ``**`` take the first place where what follows them fits, and never another one: that finds every match of
such a pattern, where a regular expression that may go back tries exponentially many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LONGEST = 4096  # characters; no path is longer
_NAMED = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "a-fA-F0-9",
}  # fmt: skip


class PatternError(ValueError):
    """A line that is no pattern."""


@dataclass(frozen=True)
class _Pattern:
    path: re.Pattern[str]
    ignores: bool
    directories: bool


class Ignore:
    """The patterns of one file; a line that is none matches nothing, as git has it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [pattern for line in lines if (pattern := _lenient(line)) is not None]
        self._patterns.reverse()
        self._above: dict[str, bool | None] = {"": None}

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Whether a path below the place of the patterns is ignored; None where they say nothing of it.

        What lies in an ignored directory is ignored. ``path`` has forward slashes and no slash at its ends.
        """
        if self._directory(path.rpartition("/")[0]):
            return True
        return self._last(path, is_directory)

    def _directory(self, path: str) -> bool | None:
        """The verdict on a directory, which many files ask for."""
        missing = []
        while path not in self._above:
            missing.append(path)
            path = path.rpartition("/")[0]
        for inner in reversed(missing):
            self._above[inner] = True if self._above[path] else self._last(inner, True)
            path = inner
        return self._above[path]

    def _last(self, path: str, is_directory: bool) -> bool | None:
        for pattern in self._patterns:
            if (is_directory or not pattern.directories) and pattern.path.match(path):
                return pattern.ignores
        return None


def check_pattern(line: str) -> None:
    """Raise :class:`PatternError` for a line that is no pattern."""
    _pattern(line)


def _lenient(line: str) -> _Pattern | None:
    try:
        return _pattern(line)
    except PatternError:
        return None


def _pattern(line: str) -> _Pattern | None:
    """None for comments and empty lines."""
    text = line.rstrip("\r\n")
    while text.endswith((" ", "\t")) and not re.search(r"(?<!\\)(?:\\\\)*\\[ \t]\Z", text):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    directories = text.endswith("/")
    text = text.removesuffix("/") if directories else text
    if not text or len(text) > _LONGEST:
        raise PatternError(line)
    parts = text.removeprefix("/").split("/")
    if "/" not in text:
        parts.insert(0, "**")
    try:
        return _Pattern(re.compile(_Writer().path(parts), re.DOTALL), ignores, directories)
    except re.error:  # such as a range that ends before it begins
        raise PatternError(line) from None


class _Writer:
    """Writes the regular expression of one pattern."""

    def __init__(self) -> None:
        self._groups = 0

    def path(self, parts: list[str]) -> str:
        """That of a whole path, from its parts between slashes."""
        runs: list[list[str]] = [[]]
        for number, part in enumerate(parts):
            if part == "**" and len(parts) > 1:
                if number == 0 or parts[number - 1] != "**":
                    runs.append([])
            else:
                runs[-1].append(self._part(part))
        first, *others = runs
        written = "".join(f"{part}/" for part in first) if others else "/".join(first)
        for run in others[:-1]:
            written += self._once("(?:[^/]+/)*?" + "".join(f"{part}/" for part in run))
        if others:
            written += "(?:[^/]+/)*" + "/".join(others[-1]) if others[-1] else ".+"
        return written + r"\Z"

    def _part(self, text: str) -> str:
        """That of a name."""
        pieces = [""]
        for token in _tokens(text):
            if token != "*":
                pieces[-1] += token
            elif pieces[-1] or len(pieces) == 1:
                pieces.append("")
        first, *others = pieces
        if not others:
            return first
        return first + "".join(self._once(f"[^/]*?{piece}") for piece in others[:-1]) + f"[^/]*{others[-1]}"

    def _once(self, text: str) -> str:
        """Matches where ``text`` does first, and is not tried again; ``(?>...)`` from Python 3.11 on."""
        self._groups += 1
        return f"(?=(?P<g{self._groups}>{text}))(?P=g{self._groups})"


def _tokens(text: str) -> Iterator[str]:
    """The regular expression of each character, and ``*``."""
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            yield "*"
        elif character == "?":
            yield "[^/]"
        elif character == "[":
            written, at = _class(text, at)
            yield written
        elif character == "\\":
            if at == len(text):
                raise PatternError(text)
            yield re.escape(text[at])
            at += 1
        else:
            yield re.escape(character)


def _class(text: str, at: int) -> tuple[str, int]:
    """A set of characters behind its bracket, and where it ends."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    written, first = "", at
    while at < len(text) and (text[at] != "]" or at == first):
        named = re.compile(r"\[:(\w+):\]").match(text, at)
        if named is not None:
            if named.group(1) not in _NAMED:
                raise PatternError(text)
            written += _NAMED[named.group(1)]
            at = named.end()
            continue
        at += text[at] == "\\"
        if at >= len(text):
            break
        written += "-" if text[at] == "-" and text[at - 1] != "\\" else re.escape(text[at])
        at += 1
    if at >= len(text):
        raise PatternError(text)
    return f"(?!/)[{'^' * negated}{written}]", at + 1
