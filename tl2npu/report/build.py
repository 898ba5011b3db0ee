"""Results to what reports are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tl2npu.report.hunks import hunks_of
from tl2npu.report.model import Entry, Finding, Report, Run
from tl2npu.results import Diagnostic, FileResult, Skipped

_EXCERPT_LINES = 3


Diffs = Literal["all", "findings", "none"]
"""Which files need their diff, as it costs time: all, those with findings (to show what became of them), none."""


def build(run: Run, files: Sequence[FileResult], skipped: Sequence[Skipped] = (), *, diffs: Diffs = "all") -> Report:
    """The report of a run."""
    return Report(run, tuple(entry(file, diffs) for file in files), tuple(skipped))


def entry(file: FileResult, diffs: Diffs = "all") -> Entry:
    """One file, without its texts: they are not needed any more afterwards."""
    lines: dict[int | None, list[str]] = {cell.number: cell.text.split("\n") for cell in file.cells}
    if file.old_text is not None and file.diagnostics:
        lines[None] = file.old_text.split("\n")
    old, new = file.old_text, file.new_text
    wanted = diffs == "all" or (diffs == "findings" and bool(file.diagnostics))
    return Entry(
        file.path,
        file.changed,
        file.error,
        file.kernels,
        tuple(Finding(item, _excerpt(lines.get(item.cell, []), item)) for item in file.diagnostics),
        file.changes,
        hunks_of(old, new) if wanted and file.changed and old is not None and new is not None else (),
        file.beside or None,
    )


def _excerpt(lines: list[str], item: Diagnostic) -> tuple[str, ...]:
    if not 1 <= item.line <= len(lines):
        return ()
    last = min(max(item.line, item.end_line or item.line), item.line + _EXCERPT_LINES - 1)
    return tuple(line.removesuffix("\r") for line in lines[item.line - 1 : last])
