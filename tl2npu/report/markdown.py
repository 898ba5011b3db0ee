"""Markdown for the comment of a pull request, within the length that GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tl2npu.report.closing import summary
from tl2npu.report.effort import duration, effort
from tl2npu.report.escape import visible
from tl2npu.report.hunks import unified
from tl2npu.report.model import Entry, Finding, Report, counted, order, place
from tl2npu.report.review import answers, folded, numbered
from tl2npu.results import VERDICTS, WITH_ERRORS, KernelResult, Verified

COMMENT_LIMIT = 65_536
MARKER = "<!-- tl2npu report -->"
"""The first line: by it a workflow finds the comment of an earlier run, to write over it."""

_ORDER = (
    "refused",
    "partial with errors",
    "migrated with errors",
    "unchanged with errors",
    "partial",
    "migrated",
    "unchanged",
)
"""What needs somebody comes first."""
_LONGEST = 300  # characters of one text in a line
_CODES = 8  # of one kernel
_NOTE = 400  # bytes kept free for saying what was left out
_MARKUP = re.compile(r"[\\`*\[\]<>|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""`a_b` is no markup, and none of our lines begins with a text, where more would be."""
_LEDGER = """### Kernels

| kernel | place | from, to | disposition | codes | verified by | effort |
| --- | --- | --- | --- | --- | --- | --- |
"""


def render(report: Report, *, limit: int = COMMENT_LIMIT) -> str:
    """The report in at most ``limit`` bytes of UTF-8; what does not fit is counted."""
    page = _Page(limit - _NOTE)
    task = "check" if report.run.task == "check" else "migrate"
    page.add(f"{MARKER}\n## tl2npu {task}\n\n{_prose(summary(report))}\n\n")
    page.section(_counts(report))
    rows = sorted(report.kernels(), key=lambda pair: _ORDER.index(pair[1].verdict))
    listed = [(entry, kernel) for entry, kernel in rows if kernel.disposition != "unchanged"]
    if report.run.task != "check":
        page.section([_LEDGER] if listed else [], (_row(entry, kernel) for entry, kernel in listed))
    failed = [entry for entry in report.entries if entry.error is not None]
    page.section(["### Files that failed\n\n"] if failed else [], map(_failed, failed))
    found = [pair for severity in ("error", "warning", "info") for pair in _found(report, severity)]
    title = f"<details><summary>{counted(len(found), 'finding')}</summary>\n\n"
    page.section([title] if found else [], (_finding(*pair) for pair in found), "\n</details>\n\n")
    asked = [] if report.run.task == "check" else [pair for pair in rows if pair[1].rewritten]
    title = "<details><summary>For the review</summary>\n\n"
    page.section([title] if asked else [], (_answers(*pair) for pair in asked), "\n</details>\n\n")
    changed = [entry for entry in report.entries if entry.hunks]
    page.section(["### Changes\n\n"] if changed else [], map(_diff, changed), "")
    if page.left_out:
        page.text.append(
            f"\n**Cut:** {counted(page.left_out, 'item')} left out, GitHub takes {limit:,} characters. "
            "`--report report.html` has everything.\n"
        )
    return "".join(page.text)


class _Page:
    """Text that grows up to a limit."""

    def __init__(self, room: int) -> None:
        self.text: list[str] = []
        self.left_out = 0
        self._room = room

    def add(self, text: str, reserve: int = 0) -> bool:
        """Take the text if it fits, and ``reserve`` bytes after it."""
        size = len(text.encode("utf-8", "replace"))
        if size + reserve > self._room:
            return False
        self._room -= size
        self.text.append(text)
        return True

    def section(self, head: Iterable[str], items: Iterable[str | tuple[str, str]] = (), end: str = "\n") -> None:
        """A head, items while they fit, an end; nothing without a head. Of a pair the second stands where it must."""
        title = "".join(head)
        if not title:
            return
        if not self.add(title, len(end)):
            self.left_out += sum(1 for _ in items)
            return
        for item in items:
            forms = (item,) if isinstance(item, str) else item
            self.left_out += not any(self.add(form, len(end)) for form in forms)
        self.add(end)


def _counts(report: Report) -> Iterator[str]:
    if report.run.task == "check":
        return
    yield "| disposition | kernels | verified | effort |\n| --- | ---: | ---: | ---: |\n"
    for verdict in VERDICTS:
        own = [pair for pair in report.kernels() if pair[1].verdict == verdict]
        if not own and WITH_ERRORS in verdict:
            continue
        proved = sum(kernel.verified is not None for _, kernel in own)
        minutes = sum(effort(*pair).minutes for pair in own)
        yield f"| {verdict} | {len(own):,} | {proved:,} | {duration(minutes)} |\n"


def _row(entry: Entry, kernel: KernelResult) -> str:
    target = "" if kernel.target == "none" else f" → {kernel.target}"
    cells = [
        _code(kernel.name),
        _code(place(entry.path, kernel)),
        _prose(kernel.source + target),
        (f"**{kernel.verdict}**" if kernel.unfinished or kernel.errors else kernel.verdict) + _warnings(entry, kernel),
        ", ".join(_prose(code) for code, _ in entry.codes_of(kernel)[:_CODES])
        + (" ..." if len(kernel.codes) > _CODES else ""),
        _proof(kernel.verified),
        duration(effort(entry, kernel).minutes),
    ]
    return f"| {' | '.join(cells)} |\n"


def _warnings(entry: Entry, kernel: KernelResult) -> str:
    number = sum(item.diagnostic.severity == "warning" for item in entry.findings_of(kernel))
    return f", {counted(number, 'warning')}" if number else ""


def _proof(proof: Verified | None) -> str:
    if proof is None:
        return "nothing"
    where = {"sim": "simulator"}.get(proof.backend, proof.backend)
    if proof.max_error is None:
        return "accepted by the compiler"
    return f"{_prose(where)}, {counted(proof.calls, 'launch')}, largest difference {proof.max_error:.3g}"


def _failed(entry: Entry) -> str:
    return f"- {_code(entry.path)}: {_prose(entry.error or '')}\n"


def _found(report: Report, severity: str) -> Iterator[tuple[Entry, Finding]]:
    return (pair for pair in report.findings() if pair[1].diagnostic.severity == severity)


def _finding(entry: Entry, finding: Finding) -> str:
    item = finding.diagnostic
    help = f" *{_prose(item.help)}*" if item.help else ""
    where = _code(place(entry.path, item))
    return f"- {item.severity} **{_prose(item.code)}** {_prose(item.name)} {where}: {_prose(item.message)}{help}\n"


def _answers(entry: Entry, kernel: KernelResult) -> str:
    told = "".join(f"  - {question}: {_prose(text)}\n" for question, text in answers(entry, kernel))
    return f"- {_code(kernel.name)} {_code(place(entry.path, kernel))}: {_prose(kernel.reason)}\n{told}"


def _diff(entry: Entry) -> tuple[str, str]:
    """The diff with the reason of each line, and without them."""
    lines = [line for hunk in entry.hunks for line in hunk.lines]
    counts = f"+{sum(line[0] == '+' for line in lines)} −{sum(line[0] == '-' for line in lines)}"
    text = "\n".join(visible(line.removesuffix("\r")) for line in unified("", entry.hunks).split("\n")[3:-1])
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    head = f"<details><summary>{_code(entry.path)} {counts}</summary>\n\n{fence}diff\n{text}\n{fence}\n\n"
    by_cell: dict[int, list[tuple[int, str]]] = {}
    for item in sorted(entry.changes, key=order):
        by_cell.setdefault(item.cell or 0, []).append((item.line, f"{item.code} {item.message}"))
    reasons = "".join(
        f"- {f'cell {cell} ' if cell else ''}{numbered(lines)}: {_prose(text)}\n"
        for cell, said in by_cell.items()
        for text, lines in folded(said)
    )
    return f"{head}{reasons}\n</details>\n\n", f"{head}</details>\n\n"


def _code(text: str) -> str:
    """A name or path as HTML, in which GitHub looks for neither markup nor mentions."""
    return f"<code>{_entities(_short(text))}</code>"


def _prose(text: str) -> str:
    """Plain text; what stands between backquotes is code. Nobody is mentioned, no issue is linked."""
    parts = re.split(r"`([^`]+)`", _short(text))
    return "".join(f"<code>{_entities(part)}</code>" if n % 2 else _inert(part) for n, part in enumerate(parts))


def _inert(text: str) -> str:
    """Entities for markup, and a character without width in what GitHub would take for a mention or an address."""
    parted = re.sub(r"(@|#|GH-|://|www)(?=[\w./-])", "\\1\u200b", text, flags=re.IGNORECASE)
    return _entities(parted)


def _entities(text: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match.group())};", text)


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
