"""How much work a kernel leaves to people: an estimate for planning, defined in docs/reports.md.

It counts what the tool knows: how much text changed, whether anything executed it, which codes were reported. It does
not know the people, the code base or the hardware at hand, so it tells kernels apart rather than days.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from tl2npu.report.model import Entry
from tl2npu.results import KernelResult

Level = Literal["none", "low", "medium", "high"]

LINES_PER_MINUTE = 10  # of changed lines, to read them
UNVERIFIED = 5  # to execute the kernel and to look at the numbers
WARNING = 5  # per code
ERROR = 30  # per code
REDESIGN = 480  # once for a kernel that needs what an NPU does not have
BY_HAND = 30  # a form that keeps workspaces, a refusal without an error of its own
LOW, MEDIUM = 15, 60
DAY = 480  # of work

_WORDS = (
    (LOW, "minutes"),
    (MEDIUM, "an hour"),
    (DAY // 2, "a few hours"),
    (DAY * 3 // 2, "a day"),
    (DAY * 5, "days"),
    (DAY * 30, "weeks"),
)
"""The most minutes that each word stands for."""

_REDESIGN = frozenset(f"TL{number}" for number in range(180, 200))
"""No counterpart on an NPU: the author has to choose another algorithm or another element type."""


@dataclass(frozen=True)
class Effort:
    """Minutes, and the word for them."""

    minutes: int

    @property
    def level(self) -> Level:
        """``none``, ``low`` (up to 15 minutes), ``medium`` (up to an hour) or ``high``."""
        if self.minutes == 0:
            return "none"
        return "low" if self.minutes <= LOW else "medium" if self.minutes <= MEDIUM else "high"


def effort(entry: Entry, kernel: KernelResult) -> Effort:
    """The estimate for one kernel."""
    codes = {(item.diagnostic.code, item.diagnostic.severity) for item in entry.findings_of(kernel)}
    errors = sum(severity == "error" for _, severity in codes)
    minutes = REDESIGN * any(code in _REDESIGN and severity == "error" for code, severity in codes)
    minutes += ERROR * errors + WARNING * sum(severity == "warning" for _, severity in codes)
    if kernel.rewritten:
        lines = len({(change.cell, change.line) for change in entry.changes_of(kernel)})
        minutes += max(1, ceil(lines / LINES_PER_MINUTE)) + UNVERIFIED * (kernel.verified is None)
    if not errors and (kernel.disposition == "partial" or kernel.unfinished):
        minutes += BY_HAND
    return Effort(minutes)


def duration(minutes: int) -> str:
    """In words that promise no more than an estimate can: ``none``, ``minutes`` ... ``a few hours``, ``a day`` ..."""
    if minutes == 0:
        return "none"
    return next((word for most, word in _WORDS if minutes <= most), "months")
