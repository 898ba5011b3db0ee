"""The figures: outcomes by source style, and the most frequent codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from tl2npu.report.effort import duration, effort
from tl2npu.report.html.markup import badge, code_link, css_class, e
from tl2npu.report.model import SEVERITIES, Entry, Report
from tl2npu.results import VERDICTS, WITH_ERRORS, KernelResult
from tl2npu.rules import Rule

_TOP = 15
_SUMS = ("kernels", "verified", "effort")
_BAR = 100  # units of a bar's width


def overview(report: Report) -> str:
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


def by_style(report: Report) -> str:
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


def top_codes(report: Report, rules: Mapping[str, Rule], known: Set[str]) -> str:
    """The codes with the most findings: errors first, since they need somebody."""
    found = Counter[tuple[str, str]]((f.diagnostic.code, f.diagnostic.severity) for _, f in report.findings())
    if not found:
        return ""
    files = _files(report)
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


def _files(report: Report) -> dict[tuple[str, str], set[str]]:
    """The files in which each code and severity was reported."""
    found: dict[tuple[str, str], set[str]] = {}
    for entry, finding in report.findings():
        found.setdefault((finding.diagnostic.code, finding.diagnostic.severity), set()).add(entry.path)
    return found
