"""The JSON report, documented in docs/json.md and in ``schema.json``. Keys are only ever added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tl2npu.report.effort import effort
from tl2npu.report.hunks import unified
from tl2npu.report.model import DISPOSITIONS, SEVERITIES, Entry, Finding, Report
from tl2npu.results import Change, Diagnostic, KernelResult, SelfCheck, Verified

VERSION = 1


def render(report: Report) -> str:
    """One JSON object with a final newline; ASCII only, so that it survives any terminal."""
    run = report.run
    dispositions, severities = report.dispositions, report.severities
    content = {
        "version": VERSION,
        "tool": {"name": "tl2npu", "version": run.version},
        "run": {
            "task": run.task,
            "written": run.written,
            "exit_code": run.exit_code,
            "shard": None if run.shard is None else list(run.shard),
            "options": dict(run.options),
        },
        "summary": {
            "files": len(report.entries),
            "changed": report.changed,
            "failed": report.failed,
            "skipped": len(report.skipped),
            "kernels": {name: dispositions[name] for name in DISPOSITIONS},
            "with_errors": sum(bool(kernel.errors) for _, kernel in report.kernels()),
            "diagnostics": {name: severities[name] for name in SEVERITIES},
        },
        "files": [_file(entry) for entry in report.entries],
        "skipped": [{"path": file.path, "reason": file.reason} for file in report.skipped],
    }
    return json.dumps(content, indent=2) + "\n"


def schema() -> str:
    """The JSON Schema of :func:`render`'s object."""
    return Path(__file__).with_name("schema.json").read_text(encoding="utf-8")


def _file(entry: Entry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "changed": entry.changed,
        "beside": entry.beside,
        "error": entry.error,
        "kernels": [_kernel(entry, kernel) for kernel in entry.kernels],
        "diagnostics": [_finding(finding) for finding in entry.findings],
        "changes": [_change(change) for change in entry.changes],
        "diff": unified(entry.path, entry.hunks),
    }


def _kernel(entry: Entry, kernel: KernelResult) -> dict[str, Any]:
    work = effort(entry, kernel)
    return {
        "name": kernel.name,
        "cell": kernel.cell,
        "line": kernel.line,
        "file_line": kernel.file_line,
        "source": kernel.source,
        "target": kernel.target,
        "disposition": kernel.disposition,
        "reason": kernel.reason,
        "codes": list(kernel.codes),
        "errors": list(kernel.errors),
        "verified": verified(kernel.verified),
        "checked": _checked(kernel.checked),
        "pipes": [{"pipe": pipe, "cycles": cycles} for pipe, cycles in kernel.pipes],
        "effort": {"minutes": work.minutes, "level": work.level},
    }


def _checked(found: SelfCheck | None) -> dict[str, Any] | None:
    return None if found is None else {"equal": found.equal, "why": found.why, "sizes": found.sizes}


def verified(proof: Verified | None) -> dict[str, Any] | None:
    """Which backend proved it, on how many launches, with which largest absolute difference."""
    if proof is None:
        return None
    return {"backend": proof.backend, "calls": proof.calls, "max_error": proof.max_error}


def diagnostic_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic."""
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "safety": diagnostic.safety,
        "cell": diagnostic.cell,
        "line": diagnostic.line,
        "file_line": diagnostic.file_line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "kernel": diagnostic.kernel,
        "message": diagnostic.message,
        "help": diagnostic.help,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {**diagnostic_object(finding.diagnostic), "excerpt": list(finding.source)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "code": change.code,
        "cell": change.cell,
        "line": change.line,
        "kernel": change.kernel,
        "safety": change.safety,
        "message": change.message,
    }
