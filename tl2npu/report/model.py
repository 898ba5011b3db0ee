"""What every report format is made from: one run, condensed to what reports show.

A :class:`Report` is built from results (``build.py``), or read back from a JSON report (``load.py``); that is why
everything here survives JSON, and why the texts of the files are kept as hunks and excerpts only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from tl2npu.report.hunks import Hunk
from tl2npu.results import Change, Diagnostic, KernelResult, Skipped
from tl2npu.verified import KernelVerdict

Task = Literal["migrate", "check", "verify"]
"""``verify``: ``migrate --verify``."""

Item = TypeVar("Item")

DISPOSITIONS = ("migrated", "partial", "refused", "unchanged")
SEVERITIES = ("error", "warning", "info")


class ReportError(ValueError):
    """A report that cannot be read, joined or written; ``str()`` is one line."""


@dataclass(frozen=True)
class Run:
    """How the results came about.

    ``written``: files were rewritten, and not only would be. ``options`` are plain JSON values by name. ``exit_code``
    is the run's own. ``shard`` is (number, count) of a run over a part of the files, from 1.
    """

    version: str
    task: Task = "migrate"
    written: bool = True
    exit_code: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    shard: tuple[int, int] | None = None


@dataclass(frozen=True)
class Finding:
    """A diagnostic with the source lines that it is about, the first at ``diagnostic.line``; none if unknown."""

    diagnostic: Diagnostic
    source: tuple[str, ...] = ()

    def rank(self) -> int:
        """Sorts the worst first."""
        return SEVERITIES.index(self.diagnostic.severity)


@dataclass(frozen=True)
class Entry:
    """One file. ``hunks`` is its diff, empty where nothing changes, the file failed or no format needs it.

    ``beside``: the file that the result goes to, where that is another one.
    """

    path: str
    changed: bool = False
    error: str | None = None
    kernels: tuple[KernelResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    beside: str | None = None

    def findings_of(self, kernel: KernelResult | None) -> list[Finding]:
        """The findings about a kernel, or about none of them."""
        return self._findings.get(id(kernel), [])

    def codes_of(self, kernel: KernelResult) -> list[tuple[str, str]]:
        """The codes of a kernel, each with the worst severity that it was reported with: ``""`` for mere changes.

        What needs somebody comes first.
        """
        worst: dict[str, str] = dict.fromkeys(kernel.codes, "")
        for finding in sorted(self.findings_of(kernel), key=Finding.rank, reverse=True):
            if finding.diagnostic.code in worst:
                worst[finding.diagnostic.code] = finding.diagnostic.severity
        ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}
        return sorted(worst.items(), key=lambda item: (ranks.get(item[1], len(ranks)), item[0]))

    def changes_of(self, kernel: KernelResult | None) -> list[Change]:
        """The changes made for a kernel, or for none of them."""
        return self._changes.get(id(kernel), [])

    @cached_property
    def _findings(self) -> dict[int, list[Finding]]:
        return _by_owner(((item.diagnostic, item) for item in self.findings), self.kernels)

    @cached_property
    def _changes(self) -> dict[int, list[Change]]:
        return _by_owner(((item, item) for item in self.changes), self.kernels)


@dataclass(frozen=True)
class Report:
    """One run over files, in the order in which formats show them."""

    run: Run
    entries: tuple[Entry, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def kernels(self) -> Iterator[tuple[Entry, KernelResult]]:
        """Every kernel with its file."""
        return ((entry, kernel) for entry in self.entries for kernel in entry.kernels)

    def findings(self) -> Iterator[tuple[Entry, Finding]]:
        """Every finding with its file."""
        return ((entry, finding) for entry in self.entries for finding in entry.findings)

    @property
    def dispositions(self) -> Counter[str]:
        """How many kernels came to each disposition."""
        return Counter(kernel.disposition for _, kernel in self.kernels())

    @property
    def verdicts(self) -> Counter[str]:
        """How many kernels came to each verdict."""
        return Counter(kernel.verdict for _, kernel in self.kernels())

    @property
    def severities(self) -> Counter[str]:
        """How many findings there are of each severity."""
        return Counter(finding.diagnostic.severity for _, finding in self.findings())

    @property
    def failed(self) -> int:
        """How many files could not be processed."""
        return sum(entry.error is not None for entry in self.entries)

    @property
    def changed(self) -> int:
        """How many files changed, or would change."""
        return sum(entry.changed for entry in self.entries)


def _by_owner(
    items: Iterable[tuple[Diagnostic | Change, Item]], kernels: Sequence[KernelResult]
) -> dict[int, list[Item]]:
    """Items by the identity of their kernel; where kernels share a name, the closest one above an item is its own."""
    named: dict[str | None, list[KernelResult]] = {}
    for kernel in kernels:
        named.setdefault(kernel.name, []).append(kernel)
    found: dict[int, list[Item]] = {}
    for key, item in items:
        same = named.get(key.kernel, [])
        above = [kernel for kernel in same if order(kernel) <= order(key)]
        found.setdefault(id(above[-1] if above else same[0] if same else None), []).append(item)
    return found


def place(path: str, item: KernelResult | Diagnostic | KernelVerdict) -> str:
    """Where to look: the line, and in a notebook the cell."""
    return f"{path}:{item.line}" if item.cell is None else f"{path}:cell {item.cell}:{item.line}"


def order(item: KernelResult | Diagnostic | Change) -> tuple[int, int]:
    """Sorts by place in the file."""
    return item.cell or 0, item.line


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``, ``2 launches``."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural}"


def changed_text(report: Report) -> str:
    """``2 files changed``, or ``would change``."""
    return f"{counted(report.changed, 'file')} {'changed' if report.run.written else 'would change'}"


def reason_beside(kernel: KernelResult, findings: Sequence[Finding]) -> str:
    """The reason of a kernel without a message that stands beside it as a finding."""
    for finding in findings:
        message = finding.diagnostic.message
        if kernel.reason == message:
            return ""
        if message and kernel.reason.endswith(f": {message}"):
            return kernel.reason.removesuffix(f": {message}")
    return kernel.reason
