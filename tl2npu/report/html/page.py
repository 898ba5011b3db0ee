"""The page: head, sections, style, script."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from hashlib import sha256
from pathlib import Path

from tl2npu.report.closing import summary
from tl2npu.report.effort import duration, effort
from tl2npu.report.excerpt import excerpt
from tl2npu.report.html.ledger import ledger, proof, warnings
from tl2npu.report.html.markup import badge, code, code_link, css_class, e, long_code, message, prose
from tl2npu.report.hunks import unified
from tl2npu.report.model import SEVERITIES, Entry, Finding, Report, counted, order, place, reason_beside
from tl2npu.report.review import answers
from tl2npu.results import VERDICTS, WITH_ERRORS, Diagnostic, KernelResult
from tl2npu.rules import Rule, load_rules

_RULE_SECTIONS = ("What it does", "Why", "Use instead")


def render(report: Report) -> str:
    """The page with a final newline."""
    rules = _used(report)
    known = rules.keys()
    anchors = _places(report)
    style, script = _part("style.css"), _part("page.js")
    sections = [
        ("overview", "Overview", _overview(report)),
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
    tables = [_by_style(report) if report.run.task != "check" else "", _top_codes(report, rules, rules.keys())]
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

_NOTE = """<p>Cycles that one block spends on each pipe at the first call in its file, and their share of the sum, by a
model, not measured. <code>tl2npu cost</code> says which of them overlap, and how long the block takes.</p>
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
        bound, total = max(kernel.pipes, key=lambda item: item[1])[0], sum(cycles for _, cycles in kernel.pipes)
        bars = "".join(
            f'<tr><th scope="row">{e(pipe)}</th><td>{cycles:,.0f}</td>'
            f'<td><meter max="{total:.0f}" value="{cycles:.0f}" aria-hidden="true"></meter> '
            f"{cycles / total:.0%}</td></tr>"
            for pipe, cycles in kernel.pipes
        )
        head = f"{long_code(kernel.name)}: {total:,.0f} cycles, the sum of its pipes, most on {e(bound)}"
        rows.append(f"<details><summary>{head}</summary><table><caption>{where}</caption>{bars}</table></details>")
    left = [kernel.name for _, kernel in report.kernels() if kernel.for_npu and kernel.rewritten and not kernel.pipes]
    if rows and left:
        names = ", ".join(map(long_code, left))
        rows.append(f"<p>Not estimated, as some sizes, or the rates of the device, are not known: {names}.</p>")
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
    verified = f"; {proof(kernel)}" if kernel.rewritten else ""
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


# The figures: outcomes by source style, and the most frequent codes.

_TOP = 15
_SUMS = ("kernels", "verified", "effort")
_BAR = 100  # units of a bar's width


def _overview(report: Report) -> str:
    """The main numbers: how many kernels came to each disposition, also as a bar; for a check, how many findings."""
    if report.run.task == "check":
        return _tiles(
            [(f'<span class="{name}">{name}</span>', f"{report.severities[name]:,}") for name in SEVERITIES]
            + [("kernels", f"{sum(1 for _ in report.kernels()):,}"), ("files", f"{len(report.entries):,}")]
            + _failures(report)
        )
    found = report.verdicts
    tiles = [(badge(name), f"{found[name]:,}") for name in _shown(report)]
    tiles.append(("effort left", duration(sum(effort(*pair).minutes for pair in report.kernels()))))
    tiles.append(("files changed" if report.run.written else "files that would change", f"{report.changed:,}"))
    return _tiles(tiles + _failures(report)) + _bar(found)


def _tiles(tiles: list[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in tiles)
    return f'<dl class="tiles">{items}</dl>\n'


def _failures(report: Report) -> list[tuple[str, str]]:
    return [("files that failed", f"{report.failed:,}")] if report.failed else []


def _bar(found: Mapping[str, int]) -> str:
    """Only a picture of the numbers above it, so it is hidden from those who do not see it."""
    total = sum(found.values())
    if not total:
        return ""
    at = 0.0
    parts = []
    for name in VERDICTS:
        width = _BAR * found[name] / total
        if width:
            kind, shown = css_class(name), max(width - 0.3, 0.1)
            parts.append(f'<rect class="{kind}" x="{at:.2f}" width="{shown:.2f}" height="3"/>')
        at += width
    return f'<svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">{"".join(parts)}</svg>'


def _by_style(report: Report) -> str:
    """One row for each style of the source."""
    groups: dict[str, list[tuple[Entry, KernelResult]]] = {}
    for pair in report.kernels():
        groups.setdefault(pair[1].source, []).append(pair)
    if not groups:
        return ""
    head = "".join(f'<th scope="col" class="n">{name}</th>' for name in (*_shown(report), *_SUMS))
    rows = [_style_row(e(style), pairs, _shown(report)) for style, pairs in sorted(groups.items())]
    total = _style_row("all", list(report.kernels()), _shown(report))
    return f"""<table class="figures"><caption>Outcomes by source style</caption>
<thead><tr><th scope="col">Style</th>{head}</tr></thead>
<tbody>{"".join(rows)}</tbody><tfoot>{total}</tfoot></table>"""


def _shown(report: Report) -> list[str]:
    """The verdicts that are counted: those with errors only where there are some."""
    found = report.verdicts
    return [name for name in VERDICTS if found[name] or WITH_ERRORS not in name]


def _style_row(name: str, pairs: list[tuple[Entry, KernelResult]], shown: Sequence[str]) -> str:
    found = Counter[str](kernel.verdict for _, kernel in pairs)
    verified = sum(kernel.verified is not None for _, kernel in pairs)
    minutes = sum(effort(*pair).minutes for pair in pairs)
    numbers = [*(f"{found[name]:,}" for name in shown), f"{len(pairs):,}", f"{verified:,}", duration(minutes)]
    labels = (*shown, *_SUMS)
    cells = "".join(
        f'<td class="n" data-label="{label}">{number}</td>' for label, number in zip(labels, numbers, strict=True)
    )
    return f'<tr><th scope="row">{name}</th>{cells}</tr>'


def _top_codes(report: Report, rules: Mapping[str, Rule], known: Set[str]) -> str:
    """The codes with the most findings: errors first, since they need somebody."""
    found = Counter[tuple[str, str]]((f.diagnostic.code, f.diagnostic.severity) for _, f in report.findings())
    if not found:
        return ""
    files = _files_of_codes(report)
    ranked = sorted(found, key=lambda key: (SEVERITIES.index(key[1]), -found[key], key))[:_TOP]
    rows = "".join(
        f'<tr><th scope="row">{code_link(code, code in known)}</th>'
        f"<td>{e(rules[code].name) if code in rules else ''}</td><td>{severity}</td>"
        f'<td class="n" data-label="findings">{found[code, severity]:,}</td>'
        f'<td class="n" data-label="files">{len(files[code, severity]):,}</td></tr>'
        for code, severity in ranked
    )
    left = len(found) - len(ranked)
    caption = f"Most frequent codes, errors first{f' ({left} more not listed)' if left else ''}"
    return f"""<table class="figures"><caption>{caption}</caption>
<thead><tr><th scope="col">Code</th><th scope="col">Name</th><th scope="col">Severity</th>
<th scope="col" class="n">findings</th><th scope="col" class="n">files</th></tr></thead>
<tbody>{rows}</tbody></table>"""


def _files_of_codes(report: Report) -> dict[tuple[str, str], set[str]]:
    """The files in which each code and severity was reported."""
    found: dict[tuple[str, str], set[str]] = {}
    for entry, finding in report.findings():
        found.setdefault((finding.diagnostic.code, finding.diagnostic.severity), set()).add(entry.path)
    return found
