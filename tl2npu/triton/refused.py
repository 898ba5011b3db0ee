"""Why a Triton kernel stays as it is."""

from __future__ import annotations

from tl2npu.kernel.symbolic import Sym


class Refused(Exception):
    """A kernel that cannot be translated: a rule code, a line of the Triton file, what is in the way there, and what to
    do about it, where that is not what the rule says."""

    def __init__(self, code: str, line: int, message: str, help: str = "") -> None:
        super().__init__(f"{code} line {line}: {message}")
        self.code, self.line, self.message, self.help = code, line, message, help
        self.tensor = ""
        """The parameter whose accesses fit none of the shapes that were tried."""
        self.asks: frozenset[str] = frozenset()
        """The parameters and sizes that would decide a condition."""


class Undecided(Refused):
    """A launch that depends on ``test``, a condition of the host code."""

    def __init__(self, code: str, line: int, message: str, test: str, help: str = "") -> None:
        both = f"launch the kernel in both branches of `if {test}:`, with what it gets there"
        super().__init__(code, line, message, help or (both if code == "TL511" else ""))
        self.test = test


class Unequal(Refused):
    """Two sizes of tiles that must be equal, and are not known to be."""

    def __init__(self, line: int, one: Sym, other: Sym) -> None:
        super().__init__("TL549", line, f"tiles of {one} and {other} elements do not go together")
        self.one, self.other = one, other


class Below(Refused):
    """Rows along the axis ``number`` of a tile may lie below their tensor, at ``index``; the mask leaves those out."""

    def __init__(self, line: int, message: str, number: int, index: Sym) -> None:
        super().__init__("TL521", line, message)
        self.number, self.index = number, index
