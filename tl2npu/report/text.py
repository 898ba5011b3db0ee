"""The report that people read in a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import click

from tl2npu.codes import CODES, SPEED
from tl2npu.report.escape import visible
from tl2npu.report.excerpt import change, excerpt
from tl2npu.report.hunks import block_at
from tl2npu.report.model import Entry, Finding, Report, changed_text, counted, order, place
from tl2npu.report.review import answers
from tl2npu.results import VERDICTS, Change, Diagnostic, KernelResult, Verified

TOP = 10
MANY = 20
_FEW_LINES = 6
"""How many lines are named of which the same is said."""
"""From so many kernels on a report ends with its digest."""


def digest(report: Report) -> Iterator[str]:
    """How many kernels came to what, and the ten codes with the most findings; ends with an empty line."""
    kernels = [kernel for _, kernel in report.kernels()]
    if report.run.task != "check":
        for verdict in VERDICTS:
            own = [kernel for kernel in kernels if kernel.verdict == verdict]
            if own:
                forms = Counter(_cores(kernel.target, kernel.reason) for kernel in own if kernel.rewritten)
                shown = ", ".join(f"{count:,} {form}" for form, count in forms.most_common())
                yield f"{len(own):6,} {verdict}{f' ({shown})' if shown else ''}"
    found = Counter((item.diagnostic.code, item.diagnostic.severity) for _, item in report.findings())
    for (code, severity), count in found.most_common(TOP):
        rule = CODES.get(code)
        help_ = f": {rule.remedy}" if rule is not None and severity != "info" else ""
        yield f"{count:6,} {severity} {visible(code)} {rule.name if rule is not None else ''}{help_}"
    if len(found) > TOP:
        yield f"       and {counted(len(found) - TOP, 'more code')}"


def _cores(target: str, reason: str) -> str:
    """How a kernel that was written uses the vector cores."""
    if target == "developer-threads1":
        return "threads=1"
    if target != "developer":
        return target
    return "without vector cores" if reason.startswith("cube only") else "threads=2"


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
MOST_WHYS = 3
"""So many reasons why kernels were not evaluated are shown."""


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
        lines += [*checked(report), *_possible(report)]
        lines.append(summary(report))
        return "\n".join(lines) + "\n"

    def short(self, report: Report) -> str:
        """The files that failed, the digest and the last line."""
        lines = [line for entry in report.entries if entry.error is not None for line in self._error(entry)]
        return "\n".join([*lines, *digest(report), *checked(report), *_possible(report), summary(report)]) + "\n"

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
        if entry.error is not None:
            lines += self._error(entry)
        for kernel in (*entry.kernels, None):
            if kernel is not None and report.run.task != "check":
                lines += self._kernel(entry, kernel)
            found = [one for one in entry.findings_of(kernel) if self.explain or one.diagnostic.code not in SPEED]
            above: Finding | None = None
            for first, others in same_cause(found) if not self.explain else ((one, []) for one in found):
                lines += self._finding(entry, first, _margin(report), above)
                above = first
                if others:
                    numbers = ", ".join(str(one.diagnostic.line) for one in others)
                    text = f"and {counted(len(others), 'more line')}: {numbers}"
                    lines += self._wrapped(text, _margin(report) + _INDENT, {})
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
        lines: dict[tuple[int | None, str], dict[int, None]] = {}
        for item in sorted(changes, key=order):
            unsafe = "" if item.safety == "safe" else f" [{item.safety}]"
            lines.setdefault((item.cell, f"{item.code} {item.message}{unsafe}"), {})[item.line] = None
        for (cell, text), those in lines.items():
            numbers = ", ".join(map(str, [*those][:_FEW_LINES]))
            more = f" and {len(those) - _FEW_LINES} more" if len(those) > _FEW_LINES else ""
            where = f"{'' if cell is None else f'cell {cell} '}line{'s' if len(those) > 1 else ''} {numbers}{more}"
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


def reason_beside(kernel: KernelResult, findings: Sequence[Finding]) -> str:
    """The reason of a kernel without a message that stands beside it as a finding."""
    for finding in findings:
        message = finding.diagnostic.message
        if kernel.reason == message:
            return ""
        if message and kernel.reason.endswith(f": {message}"):
            return kernel.reason.removesuffix(f": {message}")
    return kernel.reason


def speed(report: Report) -> list[str]:
    """One line on what makes kernels slow, which all other formats and ``--explain`` say one by one."""
    found = Counter(item.diagnostic.code for _, item in report.findings() if item.diagnostic.code in SPEED)
    if not found:
        return []
    codes = ", ".join(f"{code} {number}" for code, number in sorted(found.items()))
    return [f"{counted(sum(found.values()), 'note')} on speed ({codes}): --explain lists them, `tl2npu cost` has times"]


def checked(report: Report) -> list[str]:
    """One line on the kernels that were evaluated before they were written; none where nothing can be evaluated."""
    found = [kernel.checked for _, kernel in report.kernels() if kernel.checked is not None]
    if not found:
        return []
    equal = sum(one.equal for one in found)
    kernels = f"{equal:,} of {counted(len(found), 'kernel')}"
    whys = Counter(one.why for one in found if not one.equal)
    left = "".join(f"; {number:,} not checked: {visible(why)}" for why, number in whys.most_common(MOST_WHYS))
    more = f"; {len(whys) - MOST_WHYS} other reasons" if len(whys) > MOST_WHYS else ""
    triton = sum(kernel.source == "triton" and kernel.rewritten for _, kernel in report.kernels())
    more += f"; {counted(triton, 'Triton kernel')} not checked: `tl2npu verify` compares them" if triton else ""
    return [f"checked: {kernels} {'gives' if equal == 1 else 'give'} the same values on random inputs{left}{more}"]


def summary(report: Report) -> str:
    """The last line: what was changed, found, left out."""
    parts: list[str] = []
    kernels = sum(report.verdicts.values())
    lost = [
        kernel for entry in report.entries if entry.error is not None for kernel in entry.kernels if kernel.rewritten
    ]
    if report.run.task == "check":
        severities = report.severities
        parts.append(f"{counted(severities['error'], 'error')}, {counted(severities['warning'], 'warning')}")
        parts.append(f"{counted(kernels, 'kernel')} in {counted(len(report.entries), 'file')}")
    else:
        found = report.verdicts - Counter(kernel.verdict for kernel in lost)
        verdicts = ", ".join(f"{found[name]:,} {name}" for name in VERDICTS if found[name])
        parts += [changed_text(report), counted(kernels, "kernel") + (f": {verdicts}" if verdicts else "")]
    if report.failed:
        parts.append(
            f"{counted(report.failed, 'file')} failed"
            + (f", {counted(len(lost), 'kernel')} not written" if lost else "")
        )
    if report.skipped:
        parts.append(f"{len(report.skipped):,} skipped")
    return "; ".join(parts)


def verified_text(proof: Verified) -> str:
    """Who proved it, on what, how exactly: ``verified on the simulator: 2 launches, largest difference 0``."""
    where = {"sim": "the simulator"}.get(proof.backend, proof.backend)
    if proof.max_error is None:
        return f"accepted by the compiler: {counted(proof.calls, 'program')}"
    return f"verified on {where}: {counted(proof.calls, 'launch')}, largest difference {proof.max_error:.3g}"


# What an option that was not given might still do for the kernels of a run.

FP8, UNSAFE, TUNED = "--fp8 float16", "--unsafe", "--tuned NAME=VALUE"


def _possible(report: Report) -> list[str]:
    """One line with the kernels that nothing stops but what an option is for; none for a check.

    It says "up to": what else is wrong with a kernel often shows only behind the first error.
    """
    if report.run.task == "check":
        return []
    found = Counter[str]()
    for entry, kernel in report.kernels():
        if kernel.unfinished or kernel.errors:
            found[_only(entry.findings_of(kernel))] += 1
    told = [f"{found[option]:,} with `{option}`" for option in (FP8, UNSAFE, TUNED) if found[option]]
    return [f"more kernels may migrate: up to {', up to '.join(told)}"] if told else []


def _only(findings: Sequence[Finding]) -> str:
    """The one option that every error of a kernel asks for; empty if there is none."""
    options = {_option(item.diagnostic) for item in findings if item.diagnostic.severity == "error"}
    return options.pop() if len(options) == 1 else ""


def _option(item: Diagnostic) -> str:
    if item.code == "TL191":  # fp4 and others have no stand-in
        types = re.findall(r"\b(?:float|int|uint)\d+_?\w*|\bfp\d+\w*", item.message)
        return FP8 if any(map(_is_fp8, types)) and all(map(_is_fp8, types)) else ""
    if f"`tl2npu migrate {UNSAFE}`" in item.help:
        return UNSAFE
    return TUNED if item.code == "TL514" else ""


def _is_fp8(name: str) -> bool:
    return name.startswith(("float8", "fp8"))
