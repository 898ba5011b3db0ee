"""SARIF 2.1.0, for code scanning and editors.

One run. Every finding is a result, and so is every kernel that can be migrated; the first such kernel of a file carries
the fix for the whole file, since its parts (imports, ``pass_configs``, kernels) only make sense together.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from importlib import metadata
from typing import Any
from urllib.parse import quote

from tl2npu.report.escape import visible
from tl2npu.report.hunks import Block, blocks
from tl2npu.report.model import Entry, Finding, Report, counted
from tl2npu.results import KernelResult
from tl2npu.rules import Rule, load_rules

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MAX_RESULTS = 25_000  # what GitHub takes of a run
MAX_COMPRESSED = 10_000_000  # bytes after gzip, likewise
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEMS = {"error": "error", "warning": "warning", "info": "recommendation"}
_GROUPS = {"gpu": "TL1", "npuir": "TL4", "expert": "TL3", "triton": "TL5"}  # of the styles; the others are TL2


def render(report: Report) -> str:
    """The log; without fixes, and with a notification that says so, where it would be too large for GitHub."""
    text = _text(report, fixes=True)
    too_large = len(text) > MAX_COMPRESSED and len(gzip.compress(text.encode(), 6)) > MAX_COMPRESSED
    return _text(report, fixes=False) if too_large else text


def _text(report: Report, *, fixes: bool) -> str:
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, fixes)]}, indent=1) + "\n"


def _run(report: Report, fixes: bool) -> dict[str, Any]:
    results = [result for entry in report.entries for result in _results(entry, report, fixes)]
    notes = [_failed(entry) for entry in report.entries if entry.error is not None]
    notes += [
        _note("note", f"{visible(file.path)} was skipped: {visible(file.reason)}", file.path) for file in report.skipped
    ]
    if not fixes:
        notes.append(_note("warning", "fixes are left out: the log would be too large"))
    if len(results) > MAX_RESULTS:
        notes.append(_note("warning", f"{counted(len(results) - MAX_RESULTS, 'result')} left out, the mildest first"))
        levels = list(_LEVELS.values())
        results = sorted(results, key=lambda result: levels.index(result["level"]))[:MAX_RESULTS]
    rules = load_rules()
    codes = sorted({result["ruleId"] for result in results})
    for result in results:
        result["ruleIndex"] = codes.index(result["ruleId"])
    run = report.run
    part = "" if run.shard is None else f"shard-{run.shard[0]}-of-{run.shard[1]}/"
    return {
        "tool": {
            "driver": {
                "name": "tl2npu",
                "version": run.version,
                "rules": [_rule(code, rules.get(code)) for code in codes],
            }
        },
        "automationDetails": {"id": f"tl2npu/{run.task}/{part}"},
        "invocations": [
            {"executionSuccessful": not report.failed, "exitCode": run.exit_code, "toolExecutionNotifications": notes}
        ],
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The directory that tl2npu was run in."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }


def _rule(code: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:  # of a report that a newer version wrote
        return {"id": code}
    found: dict[str, Any] = {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.sections["What it does"]},
        "help": {
            "text": "\n\n".join(rule.sections[name] for name in ("What it does", "Why", "Use instead", "Fix safety")),
            "markdown": rule.text,
        },
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["tilelang", rule.group], "problem.severity": _PROBLEMS[rule.severity]},
    }
    site = documentation_site()
    if site is not None:
        found["helpUri"] = f"{site}/rules/{rule.group}/{quote(rule.path.stem)}/"
    return found


def documentation_site() -> str | None:
    """Where the documentation is published: the address that the package itself names, None if it names none."""
    try:
        urls = metadata.metadata("tl2npu").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return named["Documentation"].rstrip("/") if "Documentation" in named else None


def _results(entry: Entry, report: Report, fixes: bool) -> Iterator[dict[str, Any]]:
    seen: dict[str, int] = {}
    for finding in entry.findings:
        yield _finding(entry, finding, seen)
    if report.run.written:  # there is nothing left to do
        return
    fix = fixes and bool(entry.hunks)
    for kernel in entry.kernels:
        if kernel.rewritten:
            yield _migratable(entry, kernel, fix, seen)
            fix = False


def _finding(entry: Entry, finding: Finding, seen: dict[str, int]) -> dict[str, Any]:
    item = finding.diagnostic
    region: dict[str, Any] = {"startLine": item.line, "endLine": max(item.line, item.end_line or item.line)}
    if item.file_line is not None:  # a notebook: the text of a cell is within a JSON string
        region = {"startLine": item.file_line}
    elif item.column > 1:
        region["startColumn"] = item.column
    if item.file_line is None and len(finding.source) > region["endLine"] - item.line:
        region["snippet"] = {"text": "\n".join(finding.source)}
    help = f" Help: {visible(item.help)}." if item.help else ""
    source = finding.source[0] if finding.source else ""
    return {
        "ruleId": item.code,
        "level": _LEVELS[item.severity],
        "message": {"text": f"{visible(item.message)}.{help}"},
        "locations": [_location(entry, region, item.kernel)],
        "partialFingerprints": _fingerprint((item.code, item.kernel or "", " ".join(source.split())), seen),
    }


def _migratable(entry: Entry, kernel: KernelResult, fix: bool, seen: dict[str, int]) -> dict[str, Any]:
    reason = f" ({visible(kernel.reason)})" if kernel.reason else ""
    message = f"{visible(kernel.name)} can be migrated: {visible(kernel.source)} -> {visible(kernel.target)}{reason}."
    result = {
        "ruleId": _headline(kernel),
        "level": "note",
        "message": {"text": message},
        "locations": [_location(entry, {"startLine": kernel.file_line or kernel.line}, kernel.name)],
        "partialFingerprints": _fingerprint(("migrate", kernel.name), seen),
    }
    if fix:
        replacements = [_replacement(block) for block in blocks(entry.hunks)]
        result["fixes"] = [
            {
                "description": {"text": "Migrate the kernels of this file."},
                "artifactChanges": [{"artifactLocation": _artifact(entry.path), "replacements": replacements}],
            }
        ]
    return result


def _headline(kernel: KernelResult) -> str:
    """The rule that a kernel's migration is filed under: the first one of its style."""
    group = _GROUPS.get(kernel.source, "TL2")
    codes = sorted(kernel.codes, key=lambda code: (not code.startswith(group), code))
    return codes[0] if codes else "TL101"


def _replacement(block: Block) -> dict[str, Any]:
    """Whole lines; the region of a text that ends without a newline ends behind its last character."""
    region = {"startLine": block.line, "startColumn": 1, "endLine": block.line + len(block.old), "endColumn": 1}
    if block.at_end[0] and block.old:
        region |= {"endLine": region["endLine"] - 1, "endColumn": len(block.old[-1]) + 1}
    text = "".join(f"{line}\n" for line in block.new)
    replacement: dict[str, Any] = {"deletedRegion": region}
    if text:
        replacement["insertedContent"] = {"text": text[:-1] if block.at_end[1] else text}
    return replacement


def _location(entry: Entry, region: Mapping[str, Any], kernel: str | None) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(entry.path), "region": dict(region)}}
    if kernel is not None:
        location["logicalLocations"] = [
            {"name": visible(kernel.split(".")[-1]), "fullyQualifiedName": visible(kernel), "kind": "function"}
        ]
    return location


def _artifact(path: str) -> dict[str, str]:
    try:
        uri = quote(path, safe="/", errors="surrogateescape")
    except UnicodeEncodeError:
        uri = quote(visible(path))
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _fingerprint(parts: tuple[str, ...], seen: dict[str, int]) -> dict[str, str]:
    """The same for the same finding when lines above it move; a number tells findings of one text apart."""
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    seen[digest] = seen.get(digest, 0) + 1
    return {"primaryLocationLineHash": f"{digest}:{seen[digest]}"}


def _failed(entry: Entry) -> dict[str, Any]:
    return _note("error", visible(entry.error or ""), entry.path)


def _note(level: str, text: str, path: str | None = None) -> dict[str, Any]:
    note: dict[str, Any] = {"level": level, "message": {"text": text}}
    if path is not None:
        note["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(path)}}]
    return note
