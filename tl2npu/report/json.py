"""The JSON report, documented in docs/json.md. Keys are only ever added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tl2npu.results import Change, Diagnostic, FileResult, KernelResult, Skipped, Verified

VERSION = 1


def render(files: Sequence[FileResult], skipped: Sequence[Skipped] = ()) -> str:
    """One JSON object with a final newline; ASCII only, so that it survives any terminal."""
    report = {
        "version": VERSION,
        "files": [_file(file) for file in files],
        "skipped": [{"path": file.path, "reason": file.reason} for file in skipped],
    }
    return json.dumps(report, indent=2) + "\n"


def _file(file: FileResult) -> dict[str, Any]:
    return {
        "path": file.path,
        "changed": file.changed,
        "error": file.error,
        "kernels": [_kernel(kernel) for kernel in file.kernels],
        "diagnostics": [diagnostic_object(diagnostic) for diagnostic in file.diagnostics],
        "changes": [_change(change) for change in file.changes],
    }


def _kernel(kernel: KernelResult) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "line": kernel.line,
        "source": kernel.source,
        "target": kernel.target,
        "disposition": kernel.disposition,
        "codes": list(kernel.codes),
        "verified": verified(kernel.verified),
    }


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
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_line": diagnostic.end_line,
        "kernel": diagnostic.kernel,
        "message": diagnostic.message,
        "help": diagnostic.help,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "code": change.code,
        "line": change.line,
        "kernel": change.kernel,
        "safety": change.safety,
        "message": change.message,
    }
