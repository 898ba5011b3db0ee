"""The text of a cell in the JSON of its notebook: a string or a list of lines; lines that stay are as they were."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from tl2npu.source.notebook.spans import Span, items


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

    def rewritten(self, json_text: str, new: str) -> str:
        """The JSON text of this value with another text in it, escaped as the notebook is."""
        ascii_only = json_text.isascii() and "\\u" in json_text
        if not self.is_list:
            return json.dumps(new, ensure_ascii=ascii_only)
        # as Jupyter splits, also at form feeds and the line separators of Unicode, or at newlines only
        lines = new.splitlines(keepends=True)
        if list(self.values) != self.text.splitlines(keepends=True):
            lines = re.findall(r"[^\n]*\n|[^\n]+", new)
        first, between, last = self._gaps(json_text)
        parts: list[str] = []
        for tag, old, to, made, until in SequenceMatcher(None, self.values, lines, autojunk=False).get_opcodes():
            if tag == "equal":
                parts.append(json_text[self.strings[old][0] : self.strings[to - 1][1]])
            else:
                parts += [json.dumps(line, ensure_ascii=ascii_only) for line in lines[made:until]]
        return "[" + first + between.join(parts) + last + "]"

    def _gaps(self, json_text: str) -> tuple[str, str, str]:
        """What stands in front of the first string of the list, between two strings, and behind the last one."""
        if not self.strings:
            return "", ", ", ""
        first = json_text[self.span[0] + 1 : self.strings[0][0]]
        last = json_text[self.strings[-1][1] : self.span[1] - 1]
        if len(self.strings) == 1:
            return first, "," + (first or " "), last
        return first, json_text[self.strings[0][1] : self.strings[1][0]], last
