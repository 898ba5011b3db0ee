"""The report that people read in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import click

from tl2npu.codes import SPEED
from tl2npu.report.closing import MANY, checked, digest, possible, speed, summary, verified_text
from tl2npu.report.escape import visible
from tl2npu.report.excerpt import change, excerpt
from tl2npu.report.hunks import block_at
from tl2npu.report.model import Entry, Finding, Report, counted, order, place, reason_beside
from tl2npu.report.review import answers, folded, numbered
from tl2npu.results import Change, KernelResult

"""How many lines are named of which the same is said."""


_COLOURS = {
    "migrated": "green",
    "unchanged": "cyan",
    "partial": "yellow",
    "refused": "red",
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
}
_INDENT = "  "
_NAMES = re.compile(r"`[^`]*`")
_FEW = 3
"""So many lines with one cause are shown one by one."""


class TextReport:
    """Renders a report line by line.

    ``explain`` lists the changes of a kernel by line; ``changes`` shows what became of lines that findings are about,
    which needs not be said beside a patch; ``width`` is that of the terminal, None where lines may be as long as they
    are, so that every message can be found by ``grep``.
    """

    def __init__(
        self, *, color: bool = False, explain: bool = False, changes: bool = True, width: int | None = None
    ) -> None:
        self.color = color
        self.explain = explain
        self.changes = changes
        self.width = width

    def render(self, report: Report) -> str:
        """The whole report with a final newline."""
        lines: list[str] = []
        for entry in report.entries:
            found = self.entry(entry, report)
            if self.width is not None and entry.findings and lines and lines[-1]:
                lines.append("")  # in a terminal what belongs together stands together
            lines += [*found, ""] if self.width is not None and entry.findings else found
        lines += [f"{visible(file.path)}: skipped ({visible(file.reason)})" for file in report.skipped]
        if sum(1 for _ in report.kernels()) >= MANY:
            lines += ["", *digest(report)]
        lines += [] if self.explain else speed(report)
        lines += [*checked(report), *possible(report)]
        lines.append(summary(report))
        return "\n".join(lines) + "\n"

    def short(self, report: Report) -> str:
        """The files that failed, the digest and the last line."""
        lines = [line for entry in report.entries if entry.error is not None for line in self._error(entry)]
        return "\n".join([*lines, *digest(report), *checked(report), *possible(report), summary(report)]) + "\n"

    def errors(self, report: Report) -> str:
        """What made the run fail, and nothing else; not the files that failed. May be empty."""
        lines: list[str] = []
        for entry in report.entries:
            for kernel in (*entry.kernels, None):
                if kernel is not None and report.run.task != "check" and (kernel.unfinished or kernel.errors):
                    lines += self._kernel(entry, kernel)
                for finding in entry.findings_of(kernel):
                    if finding.diagnostic.severity == "error":
                        lines += self._finding(entry, finding, _margin(report))
        return "".join(f"{line}\n" for line in lines)

    def entry(self, entry: Entry, report: Report) -> list[str]:
        """The lines of one file."""
        lines: list[str] = []
        margin = "" if entry.error is not None else _margin(report)  # there is no kernel above
        if entry.error is not None and not any(item.diagnostic.code == "TL901" for item in entry.findings):
            lines += self._error(entry)
        for kernel in (*entry.kernels, None):
            if kernel is not None and report.run.task != "check":
                lines += self._kernel(entry, kernel)
            found = [one for one in entry.findings_of(kernel) if self.explain or one.diagnostic.code not in SPEED]
            above: Finding | None = None
            for first, others in same_cause(found) if not self.explain else ((one, []) for one in found):
                lines += self._finding(entry, first, margin, above)
                above = first
                if others:
                    numbers = ", ".join(str(one.diagnostic.line) for one in others)
                    text = f"and {counted(len(others), 'more line')}: {numbers}"
                    lines += self._wrapped(text, margin + _INDENT, {})
            if self.explain:
                told = () if kernel is None or report.run.task == "check" else answers(entry, kernel)
                lines += [line for pair in told for line in self._wrapped(": ".join(pair), _INDENT, {})]
                lines += self._changes(entry.changes_of(kernel))
        if entry.beside is not None and entry.error is None:
            name = PurePath(entry.beside).name
            where = f"goes to {name}, this file stays as it is" if entry.changed else f"is in {name} already"
            lines += self._wrapped(f"{entry.path}: the result {where}", "", {})
        return lines

    def _error(self, entry: Entry) -> list[str]:
        return self._wrapped(f"{entry.path}: error: {entry.error}", "", {"error": "error"})

    def _kernel(self, entry: Entry, kernel: KernelResult) -> list[str]:
        target = f" -> {kernel.target}" if kernel.disposition in ("migrated", "partial") else ""
        why = reason_beside(kernel, entry.findings_of(kernel))
        reason = f" ({why})" if why else ""
        proof = f", {verified_text(kernel.verified)}" if kernel.verified is not None else ""
        lost = "not written: " if entry.error is not None and kernel.rewritten else ""
        text = f"{place(entry.path, kernel)} {kernel.name}: {lost}{kernel.verdict}{target}{proof}{reason}"
        colour = "partial" if kernel.errors else kernel.disposition
        return self._wrapped(text, "", {kernel.disposition: colour, "errors": colour})

    def _finding(self, entry: Entry, finding: Finding, margin: str, above: Finding | None = None) -> list[str]:
        """A finding; what it has in common with the one ``above`` is not said again."""
        item = finding.diagnostic
        where = f"{place(entry.path, item)}:{item.column}"
        kinds = {item.severity: item.severity, item.code: item.severity}
        lines = self._wrapped(f"{where} {item.severity} {item.code} {item.name}: {item.message}", margin, kinds)
        inner = margin + _INDENT
        room = None if self.width is None else self.width - len(inner)
        if above is None or _place(above) != _place(finding):
            lines += [f"{inner}{line}" for line in excerpt(finding, room)]
            whole = any(kernel.line == item.line for kernel in entry.kernels)  # what becomes of its head says nothing
            block = block_at(entry.hunks, item.line) if self.changes and item.cell is None and not whole else None
            if block is not None:
                lines += [self._diff_line(f"{inner}{line}", line) for line in change(block, room)]
            above = None
        if item.help and (above is None or above.diagnostic.help != item.help):
            lines += self._wrapped(f"help: {item.help}", inner, {})
        return lines

    def _changes(self, changes: Iterable[Change]) -> Iterable[str]:
        """Passes record changes in their own order; people read the file from the top, and each thing once."""
        by_cell: dict[int | None, list[tuple[int, str]]] = {}
        for item in sorted(changes, key=order):
            unsafe = "" if item.safety == "safe" else f" [{item.safety}]"
            by_cell.setdefault(item.cell, []).append((item.line, f"{item.code} {item.message}{unsafe}"))
        for cell, said in by_cell.items():
            for text, lines in folded(said):
                where = f"{'' if cell is None else f'cell {cell} '}{numbered(lines)}"
                yield from self._wrapped(f"{where}: {text}", _INDENT * 2, {})

    def _wrapped(self, text: str, indent: str, kinds: Mapping[str, str]) -> list[str]:
        """Lines that fit into the width, the words of ``kinds`` coloured where they come first."""
        left = dict(kinds)
        hanging = indent + _INDENT
        rows: list[list[str]] = [[]]
        used = len(indent)
        for word in visible(text).split(" "):
            if rows[-1] and self.width is not None and used + len(word) > self.width:
                rows.append([])
                used = len(hanging)
            used += len(word) + 1
            kind = left.pop(word.rstrip(",:"), None)
            rows[-1].append(word if kind is None else self._styled(word, kind))
        return [(hanging if number else indent) + " ".join(row) for number, row in enumerate(rows)]

    def _diff_line(self, text: str, line: str) -> str:
        marker = line.lstrip(" 0123456789")[:1]
        kind = {"-": "red", "+": "green"}.get(marker)
        return click.style(text, fg=kind) if self.color and kind else text

    def _styled(self, text: str, kind: str) -> str:
        return click.style(text, fg=_COLOURS[kind], bold=kind in ("error", "refused") or None) if self.color else text


def same_cause(found: Sequence[Finding]) -> Iterator[tuple[Finding, list[Finding]]]:
    """Findings that say the same of several lines, in place of the first; a few are shown one by one.

    Messages that differ in names alone are the same one. Every other format has all of them.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in found:
        groups.setdefault(_said(one), []).append(one)
    for one in found:
        group = groups[_said(one)]
        if len({same.diagnostic.line for same in group}) <= _FEW:
            yield one, []
        elif one is group[0]:
            yield one, group[1:]


def _said(finding: Finding) -> tuple[object, ...]:
    item = finding.diagnostic
    return item.code, item.severity, item.cell, _NAMES.sub("", item.message), _NAMES.sub("", item.help or "")


def _place(finding: Finding) -> tuple[int | None, int, int]:
    item = finding.diagnostic
    return item.cell, item.line, item.column


def _margin(report: Report) -> str:
    """In front of findings: they stand below their kernels, which a check does not list."""
    return "" if report.run.task == "check" else _INDENT
