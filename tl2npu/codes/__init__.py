"""The codes that the tool reports, with what a reader needs at run time.

The catalogue proper is one Markdown page per code (``rules/``); this table repeats code, name,
severity and safety and adds the remedy that a diagnostic prints as its help, so that a run need
not read a hundred pages. A test holds pages and table together in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from tl2npu.codes import ascend, gpu, instructions, npuir, output, tool, triton
from tl2npu.results import Diagnostic, Safety, Severity


@dataclass(frozen=True, slots=True)
class Code:
    """One row: ``remedy`` is an imperative without full stop, ready to stand behind ``help:``."""

    code: str
    name: str
    severity: Severity
    safety: Safety
    remedy: str


def _rows(table: str) -> Iterator[Code]:
    """The rows of a table, ``CODE name severity: remedy``; what is indented belongs to the line before.

    Safety follows the severity where it is not said: what only informs is safe, what warns is for display only.
    """
    for line in table.replace("\n    ", " ").strip().split("\n"):
        head, remedy = line.split(": ", 1)
        code, name, severity, *safety = head.split()
        said = *safety, "safe" if severity == "info" else "display-only"
        yield Code(code, name, cast(Severity, severity), cast(Safety, said[0]), remedy)


_TABLES = (gpu, ascend, npuir, triton, instructions, output, tool)
ROWS = tuple(sorted((row for table in _TABLES for row in _rows(table.TABLE)), key=lambda row: row.code))
CODES: Mapping[str, Code] = MappingProxyType({row.code: row for row in ROWS})

SPEED = frozenset("TL951 TL952 TL953 TL954 TL955 TL956".split())
"""What makes a kernel slow; a kernel is right with any of them."""

VID = frozenset("TL220 TL221 TL222 TL223 TL224".split())
"""Why the two vector cores of a kernel with ``vid`` do not share one tile by rows."""

ROW_SPLIT = frozenset("""
    TL820 TL821 TL822 TL823 TL824 TL825 TL826 TL827 TL828 TL829
    TL830 TL831 TL832 TL833 TL834 TL835 TL836 TL837 TL838 TL839
    """.split())
"""Limits of the row split of ``threads=2``; ``threads=1`` has none of them."""


def finding(code: str, line: int, message: str, kernel: str | None = None) -> Diagnostic:
    """A diagnostic of a rule on a line of the input."""
    row = CODES[code]
    return Diagnostic(code, row.name, row.severity, line, message, row.remedy, kernel=kernel, safety=row.safety)
