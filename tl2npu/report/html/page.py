"""The page: head, sections, style, script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tl2npu.report.html.estimates import estimates
from tl2npu.report.html.files import files, places
from tl2npu.report.html.ledger import ledger
from tl2npu.report.html.markup import e, prose
from tl2npu.report.html.statistics import by_style, overview, top_codes
from tl2npu.report.model import Report, counted
from tl2npu.report.text import summary
from tl2npu.rules import Rule, load_rules

_RULE_SECTIONS = ("What it does", "Why", "Use instead")


def render(report: Report) -> str:
    """The page with a final newline."""
    rules = _used(report)
    known = rules.keys()
    anchors = places(report)
    style, script = _part("style.css"), _part("page.js")
    sections = [
        ("overview", "Overview", overview(report)),
        ("statistics", "Statistics", _figures(report, rules)),
        ("ledger", "Kernels", ledger(report, anchors, known) if report.run.task != "check" else ""),
        ("estimates", "Estimates", estimates(report, anchors)),
        ("files", "Files", files(report, anchors, known)),
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
