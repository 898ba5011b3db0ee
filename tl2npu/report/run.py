"""What ``tl2npu run`` says about launches and faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tl2npu.report.model import counted
from tl2npu.verified import RunResult

VERSION = 1
_NO_NUMBERS = {
    "algebraic": "`--arithmetic algebraic` computes with stand-ins that only say whether two kernels agree",
    "structure": "`--arithmetic structure` computes no values",
}


def text(result: RunResult) -> str:
    """The faults, one a line, and a last line with the counts; files are named from the working directory."""
    here = f"{Path.cwd().as_posix()}/"
    lines = [f"{fault.severity}: {fault.message.replace(here, '')}" for fault in result.faults]
    errors = sum(fault.severity == "error" for fault in result.faults)
    counts = f"{counted(len(result.launches), 'launch')}, {counted(errors, 'hazard')}"
    if warnings := sum(fault.severity == "warning" for fault in result.faults):
        counts += f", {counted(warnings, 'warning')}"
    arithmetic = "" if result.arithmetic == "precise" else f", {result.arithmetic} arithmetic"
    if result.exit_code:  # counts alone would read like success
        counts = f"failed with exit code {result.exit_code}, after {counts}"
        if (why := _NO_NUMBERS.get(result.arithmetic)) is not None:
            lines.append(f"note: {why}: comparisons with torch may fail; leave `--arithmetic` out")
    elif not result.launches:
        lines.append("note: nothing launched a kernel; `tl2npu verify FILE --args 'factory(M=256)'` does it by itself")
    lines.append(f"{result.path}: {counts} on the simulator ({result.device}{arithmetic})")
    return "\n".join(lines) + "\n"


def as_json(result: RunResult) -> str:
    """One JSON object with a final newline; documented in docs/json.md."""
    report: dict[str, Any] = {
        "version": VERSION,
        "script": result.path,
        "exit_code": result.exit_code,
        "backend": "sim",
        "device": result.device,
        "arithmetic": result.arithmetic,
        "launches": [
            {
                "kernel": launch.kernel,
                "arguments": {str(name): repr(value) for name, value in launch.arguments.items()},
                "tensors": launch.shapes,
                "seconds": round(launch.seconds, 6),
            }
            for launch in result.launches
        ],
        "hazards": [
            {"kind": fault.kind, "severity": fault.severity, "message": fault.message, **fault.details}
            for fault in result.faults
        ],
    }
    return json.dumps(report, indent=2, default=str) + "\n"
