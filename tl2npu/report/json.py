"""The JSON report, documented in docs/json.md and in ``schema.json``. Keys are only ever added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tl2npu.report.effort import effort
from tl2npu.report.hunks import unified
from tl2npu.report.model import DISPOSITIONS, SEVERITIES, Entry, Report
from tl2npu.results import Diagnostic, KernelResult, Verified

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
        "diagnostics": [
            {**diagnostic_object(finding.diagnostic), "excerpt": finding.source} for finding in entry.findings
        ],
        "changes": [_object(change, "code cell line kernel safety message") for change in entry.changes],
        "diff": unified(entry.path, entry.hunks),
    }


def _kernel(entry: Entry, kernel: KernelResult) -> dict[str, Any]:
    return {
        **_object(kernel, "name cell line file_line source target disposition reason codes errors"),
        "verified": verified(kernel.verified),
        "checked": None if kernel.checked is None else _object(kernel.checked, "equal why sizes"),
        "pipes": [{"pipe": pipe, "cycles": cycles} for pipe, cycles in kernel.pipes],
        "effort": _object(effort(entry, kernel), "minutes level"),
    }


def _object(thing: object, keys: str) -> dict[str, Any]:
    return {key: getattr(thing, key) for key in keys.split()}


def verified(proof: Verified | None) -> dict[str, Any] | None:
    """Which backend proved it, on how many launches, with which largest absolute difference."""
    return None if proof is None else _object(proof, "backend calls max_error")


def diagnostic_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic."""
    return _object(diagnostic, "code name severity safety cell line file_line column end_line kernel message help")
