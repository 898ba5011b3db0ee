"""What there is to say about each file: its kernels, its findings, its diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from tl2npu.report.excerpt import excerpt
from tl2npu.report.html.ledger import proof, warnings
from tl2npu.report.html.markup import badge, code, code_link, e, message
from tl2npu.report.hunks import unified
from tl2npu.report.model import Entry, Finding, Report, counted, order
from tl2npu.report.review import answers
from tl2npu.report.text import reason_beside
from tl2npu.results import VERDICTS, Diagnostic, KernelResult


def places(report: Report) -> dict[str, str]:
    """The anchors of the files that there is something to say about, by path."""
    wanted = [entry.path for entry in report.entries if entry.error or entry.findings or entry.hunks]
    return {path: f"file-{number}" for number, path in enumerate(wanted, 1)}


def files(report: Report, anchors: Mapping[str, str], known: Set[str]) -> str:
    """One closed element for each of them."""
    return "\n".join(_file(entry, anchors[entry.path], known) for entry in report.entries if entry.path in anchors)


def _file(entry: Entry, anchor: str, known: Set[str]) -> str:
    found = Counter[str](kernel.verdict for kernel in entry.kernels)
    facts = [f"{found[name]} {name}" for name in VERDICTS if found[name]]
    facts += [counted(len(entry.findings), "finding")] if entry.findings else []
    facts += [_size(entry)] if entry.hunks else []
    facts += ["failed"] if entry.error is not None else []
    parts = [f"<summary>{code(entry.path)} <span>{', '.join(facts)}</span></summary>"]
    if entry.error is not None:
        parts.append(f'<p class="error">Error: {message(entry.error)}</p>')
    if entry.kernels:
        parts.append("<ul>" + "".join(_kernel(entry, kernel) for kernel in entry.kernels) + "</ul>")
    if entry.findings:
        ranked = sorted(entry.findings, key=Finding.rank)
        parts.append("<ul>" + "".join(_finding(finding, known) for finding in ranked) + "</ul>")
    if entry.hunks:
        text = "\n".join(e(line.removesuffix("\r")) for line in unified("", entry.hunks).split("\n")[3:-1])
        # A newline right after <pre> is dropped by browsers, and the first line is never empty.
        parts.append(f'<pre class="diff" data-name="{e(entry.path)}">{text}</pre>')
        parts.append(_reasons(entry, known))
    return f'<details class="file" id="{anchor}">{"".join(parts)}</details>'


def _reasons(entry: Entry, known: Set[str]) -> str:
    """Why each line was changed. The script moves those of lines that the diff shows to their line."""
    texts = dict.fromkeys(
        (item.cell, item.line, f"{code_link(item.code, item.code in known)} {message(item.message)}")
        for item in sorted(entry.changes, key=order)
    )
    items = [
        f'<li data-line="{line if cell is None else ""}"><span>{_at(cell, line)}: </span>{text}</li>'
        for cell, line, text in texts
    ]
    return f'<ul class="reasons">{"".join(items)}</ul>' if items else ""


def _size(entry: Entry) -> str:
    lines = [line[0] for hunk in entry.hunks for line in hunk.lines]
    return f"+{lines.count('+')} −{lines.count('-')}"


def _kernel(entry: Entry, kernel: KernelResult) -> str:
    form = f"{e(kernel.source)} → {e(kernel.target)}" if kernel.target != "none" else e(kernel.source)
    why = reason_beside(kernel, entry.findings_of(kernel))
    reason = f": {message(why)}" if why else ""
    verified = f"; {proof(kernel.verified)}" if kernel.rewritten else ""
    outcome = badge(kernel.verdict) + warnings(entry, kernel)
    told = "".join(f"<li><b>{e(question)}</b>: {message(text)}</li>" for question, text in answers(entry, kernel))
    told = f"<ul>{told}</ul>" if told else ""
    return f"<li>{code(kernel.name)}, {_line(kernel)}: {outcome} {form}{reason}{verified}{told}</li>"


def _line(item: KernelResult | Diagnostic) -> str:
    return _at(item.cell, item.line)


def _at(cell: int | None, line: int) -> str:
    return f"line {line}" if cell is None else f"cell {cell}, line {line}"


def _finding(finding: Finding, known: Set[str]) -> str:
    item = finding.diagnostic
    link = code_link(item.code, item.code in known)
    head = f'<span class="{item.severity}">{item.severity}</span> {link} {e(item.name)}'
    help = f'<p class="muted">Help: {message(item.help)}</p>' if item.help else ""
    source = "\n".join(e(line) for line in excerpt(finding))
    shown = f"<pre>{source}</pre>" if source else ""
    return f"<li>{head}, {_line(item)}: {message(item.message)}{shown}{help}</li>"
