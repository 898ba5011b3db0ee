"""The page: head, sections, style, script."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Set
from hashlib import sha256
from pathlib import Path

from tl2npu.report.excerpt import excerpt
from tl2npu.report.html.ledger import ledger, proof, warnings
from tl2npu.report.html.markup import badge, code, code_link, e, long_code, message, prose
from tl2npu.report.html.statistics import by_style, overview, top_codes
from tl2npu.report.hunks import unified
from tl2npu.report.model import Entry, Finding, Report, counted, order, place
from tl2npu.report.text import reason_beside, summary
from tl2npu.results import VERDICTS, Diagnostic, KernelResult
from tl2npu.rules import Rule, load_rules

_RULE_SECTIONS = ("What it does", "Why", "Use instead")


def render(report: Report) -> str:
    """The page with a final newline."""
    rules = _used(report)
    known = rules.keys()
    anchors = _places(report)
    style, script = _part("style.css"), _part("page.js")
    sections = [
        ("overview", "Overview", overview(report)),
        ("statistics", "Statistics", _figures(report, rules)),
        ("ledger", "Kernels", ledger(report, anchors, known) if report.run.task != "check" else ""),
        ("estimates", "Estimates", _estimates(report, anchors)),
        ("files", "Files", _files(report, anchors, known)),
        ("skipped", "Skipped files", _skipped(report)),
        ("rules", "Rules", _rules(rules)),
    ]
    sections = [section for section in sections if section[2]]
    results = next((anchor for anchor, _, _ in sections if anchor in ("ledger", "files")), "overview")
    links = "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title, _ in sections)
    body = "\n".join(
        f'<section id="{anchor}" aria-labelledby="{anchor}-title" tabindex="-1">'
        f'<h2 id="{anchor}-title">{title}</h2>\n{content}\n</section>'
        for anchor, title, content in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<title>tl2npu: {e(summary(report))}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#{results}">Skip to the results</a>
<header>
<h1>tl2npu {"check" if report.run.task == "check" else "migrate"}</h1>
<p>{e(summary(report))}</p>
<p class="muted">{_origin(report)}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""


def _policy(style: str, script: str) -> str:
    """Nothing is loaded and nothing else runs, whatever a name in the report looks like."""
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script)]
    return f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _origin(report: Report) -> str:
    run = report.run
    names = ("target", "device", "ascend_version", "threads")
    options = [f"{name.replace('_', ' ')} {run.options[name]}" for name in names if name in run.options]
    shard = [] if run.shard is None else [f"shard {run.shard[0]} of {run.shard[1]}"]
    proof = ["every migrated kernel executed and compared"] if run.task == "verify" else []
    return e(", ".join([f"tl2npu {run.version}", *options, *shard, *proof]))


def _figures(report: Report, rules: Mapping[str, Rule]) -> str:
    tables = [by_style(report) if report.run.task != "check" else "", top_codes(report, rules, rules.keys())]
    return "\n".join(table for table in tables if table)


def _skipped(report: Report) -> str:
    items = "".join(f"<li><code>{e(file.path)}</code>: {e(file.reason)}</li>" for file in report.skipped)
    return f"<ul>{items}</ul>" if items else ""


def _used(report: Report) -> dict[str, Rule]:
    codes = {code for _, kernel in report.kernels() for code in kernel.codes}
    codes |= {finding.diagnostic.code for _, finding in report.findings()}
    catalogue = load_rules()
    return {code: catalogue[code] for code in sorted(codes) if code in catalogue}


def _rules(rules: Mapping[str, Rule]) -> str:
    if not rules:
        return ""
    intro = f"<p>{counted(len(rules), 'rule')}; <code>tl2npu rule CODE</code> prints a page with its examples.</p>"
    return intro + "\n".join(_rule(rule) for rule in rules.values())


def _rule(rule: Rule) -> str:
    text = "".join(f"<h3>{name}</h3>{prose(rule.sections[name])}" for name in _RULE_SECTIONS)
    return f'<details class="rule" id="{rule.code}"><summary>{rule.code} {e(rule.name)}</summary>{text}</details>'


# What the cost model says of the new kernels: a bar for each pipe of a core.

_NOTE = """<p>Cycles that one block spends on each pipe at the first call in its file, by a model, not measured.
Pipes work at the same time, so that the block takes less than their sum: <code>tl2npu cost</code> says how long.</p>
"""


def _estimates(report: Report, places: Mapping[str, str]) -> str:
    """A chart for each kernel, slowest first; empty where no call of a new kernel tells its sizes."""
    found = [(entry, kernel) for entry, kernel in report.kernels() if kernel.pipes]
    found.sort(key=lambda item: -sum(cycles for _, cycles in item[1].pipes))
    rows = []
    for entry, kernel in found:
        anchor = places.get(entry.path)
        where = long_code(place(entry.path, kernel))
        where = where if anchor is None else f'<a href="#{anchor}">{where}</a>'
        bound, most = max(kernel.pipes, key=lambda item: item[1])
        bars = "".join(
            f'<tr><th scope="row">{e(pipe)}</th><td>{cycles:,.0f}</td>'
            f'<td><meter max="{most:.0f}" value="{cycles:.0f}">{cycles / most:.0%}</meter></td></tr>'
            for pipe, cycles in kernel.pipes
        )
        total = sum(cycles for _, cycles in kernel.pipes)
        head = f"{long_code(kernel.name)}: {total:,.0f} cycles, the sum of its pipes, most on {e(bound)}"
        rows.append(f"<details><summary>{head}</summary><table><caption>{where}</caption>{bars}</table></details>")
    return _NOTE + "\n".join(rows) if rows else ""


# What there is to say about each file: its kernels, its findings, its diff.


def _places(report: Report) -> dict[str, str]:
    """The anchors of the files that there is something to say about, by path."""
    wanted = [entry.path for entry in report.entries if entry.error or entry.findings or entry.hunks]
    return {path: f"file-{number}" for number, path in enumerate(wanted, 1)}


def _files(report: Report, anchors: Mapping[str, str], known: Set[str]) -> str:
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
    return f"<li>{code(kernel.name)}, {_line(kernel)}: {outcome} {form}{reason}{verified}</li>"


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
