r"""What IPython takes and Python does not: ``%magic``, ``!command``, ``help?`` and whole cells of another language.

A line of that kind becomes a statement that Python takes, with a mark, and comes back character by character. Only the
beginning of a statement is looked at, so that ``x = (a\n% b)`` is the arithmetic that it is. Were that judged wrongly,
say within a string, then nothing is lost: what was taken out for the migration comes back after it as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PYTHON_CELLS = frozenset({"capture", "debug", "prun", "time", "timeit"})
"""Cell magics whose cell is Python that runs in the notebook's own process."""

_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE_MAGIC = re.compile(r"[ \t]*(?:%|!|\?)")
_ASSIGNED = re.compile(r"(?P<target>[ \t]*[^\W\d][\w.\[\], \t]*=)[ \t]*[%!]")
_HELP = re.compile(r"[ \t]*%{0,2}[^\W\d][\w.*\[\]'\"]*[ \t]*\?{1,2}[ \t]*;?[ \t]*$")
_TOKEN = re.compile(
    r"#.*|(?P<quote>\"\"\"|'''|\"|')|(?P<open>[(\[{])|(?P<close>[)\]}])|\\(?:.|\n|$)|[^#\"'()\[\]{}\\]+"
)


def foreign_magic(text: str) -> str | None:
    """The magic of a cell that is not Python of this notebook, say ``%%bash``; None for a cell of Python."""
    match = _CELL_MAGIC.match(text)
    return f"%%{match.group(1)}" if match and match.group(1) not in PYTHON_CELLS else None


@dataclass(frozen=True)
class Masked:
    """The text of a cell in which each line that is not Python is one that is; ``hidden`` are those lines by mark."""

    text: str
    hidden: tuple[tuple[str, str], ...]

    def restore(self, text: str) -> str | None:
        """Another text with the lines back; None unless each of its marks stands in it, once and in this order."""
        lines = text.split("\n")
        marks = dict(self.hidden)
        found: list[str] = []
        for number, line in enumerate(lines):
            mark = line[line.find("# ") + 2 :].removesuffix("\r")
            if mark in marks:
                found.append(mark)
                lines[number] = marks[mark]
        return "\n".join(lines) if found == [mark for mark, _ in self.hidden] else None


def mask(text: str, token: str) -> Masked:
    """Hide the lines of a cell that are not Python. ``token`` is a word that the text does not have."""
    lines = text.split("\n")
    hidden: list[tuple[str, str]] = []

    def hide(number: int, statement: str) -> None:
        mark = f"{token}-{len(hidden) + 1}"
        hidden.append((mark, lines[number]))
        ending = "\r" if lines[number].endswith("\r") else ""
        lines[number] = f"{statement}# {mark}{ending}"

    state = _State()
    continued = False  # the magic of the line before goes on
    for number, line in enumerate(lines):
        if continued:
            continued = line.rstrip("\r").endswith("\\")
            hide(number, "")
            continue
        statement = _statement(line.rstrip("\r")) if state.at_start else None
        if statement is None:
            state.feed(line)
            continue
        continued = line.rstrip("\r").endswith("\\")
        hide(number, statement)
    return Masked("\n".join(lines), tuple(hidden))


def _statement(line: str) -> str | None:
    """What stands for a line that is not Python; None for one that is."""
    assigned = _ASSIGNED.match(line)
    if assigned:
        return f"{assigned.group('target')} get_ipython()  "  # as IPython writes it: a value that nobody knows
    if _LINE_MAGIC.match(line) or _HELP.match(line):
        return line[: len(line) - len(line.lstrip())] + "pass  "
    return None


@dataclass
class _State:
    """Whether the next line begins a statement: open brackets, an open string, a backslash at the end."""

    depth: int = 0
    quote: str = ""
    joined: bool = False

    @property
    def at_start(self) -> bool:
        return self.depth == 0 and not self.quote and not self.joined

    def feed(self, line: str) -> None:
        line = line.rstrip("\r")
        self.joined = False
        at = 0
        while at < len(line):
            if self.quote:
                at = self._string(line, at)
                continue
            match = _TOKEN.match(line, at)
            assert match is not None  # every character begins a token
            at = match.end()
            if match.group("quote"):
                self.quote = match.group("quote")
            elif match.group("open"):
                self.depth += 1
            elif match.group("close"):
                self.depth = max(0, self.depth - 1)
            elif match.group() == "\\":
                self.joined = True
        if len(self.quote) == 1 and not line.endswith("\\"):
            self.quote = ""  # ends with its line, or Python complains

    def _string(self, line: str, at: int) -> int:
        """Where the open string ends in this line, or the end of the line."""
        match = re.compile(rf"(?:\\.|(?!{self.quote}).)*({self.quote})?", re.DOTALL).match(line, at)
        assert match is not None
        if match.group(1):
            self.quote = ""
        return max(match.end(), at + 1) if match.group(1) else len(line)
