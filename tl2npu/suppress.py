"""``# tl2npu: ignore[TL822]`` on a line: the author takes responsibility for a finding there."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field

from tl2npu.codes import CODES

_MARK = re.compile(r"#\s*tl2npu:\s*ignore\b(?!-)\s*(?:\[([^\]]*)\])?")


@dataclass(eq=False)
class Suppressions:
    """The suppressions of a file by line; remembers which of them were of use."""

    codes: dict[int, frozenset[str]] = field(default_factory=dict)
    used: set[tuple[int, str]] = field(default_factory=set)

    @classmethod
    def of(cls, text: str) -> Suppressions:
        """Read the comments of a file that is known to parse."""
        found = cls()
        if "tl2npu:" not in text:
            return found
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _MARK.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = {code.strip().upper() for code in (match.group(1) or "").split(",")}
                found.codes[token.start[0]] = frozenset(codes - {""} or codes)
        return found

    def covers(self, line: int, code: str) -> bool:
        """True if the finding is to be left out; counts as a use."""
        if code not in self.codes.get(line, frozenset()):
            return False
        self.used.add((line, code))
        return True

    def unused(self) -> list[tuple[int, str]]:
        """Suppressions that nothing needed, by line, with what is wrong with them."""
        left = ((line, code) for line, codes in self.codes.items() for code in codes if (line, code) not in self.used)
        return [(line, _said(code)) for line, code in sorted(left)]


def _said(code: str) -> str:
    if not code:
        return "it names no code, as in `# tl2npu: ignore[TL830]`"
    return f"{code} is not reported here" if code in CODES else f"there is no code {code}"
