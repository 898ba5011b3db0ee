"""What ``tl2npu doctor`` says."""

from __future__ import annotations

import json
from typing import Any

import click

from tl2npu.toolchain.findings import Machine

VERSION = 1
_MARKS = {"found": "green", "missing": "yellow", "unusable": "red"}


def text(machine: Machine, color: bool = False) -> str:
    """One line for each thing, with the command that fixes it; then one for each backend."""

    def styled(word: str, kind: str, width: int = 0) -> str:
        return click.style(word.ljust(width), fg=_MARKS[kind]) if color else word.ljust(width)

    lines: list[str] = []
    width = max(len(name) for name in machine.findings)
    for item in machine.findings.values():
        kind = "found" if item.usable else "missing" if item.value is None else "unusable"
        what = "; ".join(part for part in (item.value, item.wrong, item.note) if part)
        fix = f"; fix: {item.help}" if item.help else ""
        lines.append(f"{styled(kind, kind, 8)}  {item.name.ljust(width)}  {what}{fix}".replace("  ; ", "  ").rstrip())
    lines.append("")
    for backend, lacks in machine.lacks.items():
        runs = machine.runs(backend)
        extra = ""
        if backend == "compile" and runs:
            extra = f" with --target {' or '.join(machine.targets)}"
            extra += "" if machine.findings["bisheng"].usable else ", up to source text (no bisheng)"
        word = styled("can run" if runs else "cannot", "found" if runs else "missing")
        lines.append(f"--backend {backend.ljust(8)} {word}{extra or ('' if runs else ': lacks ' + ', '.join(lacks))}")
    return "\n".join(lines) + "\n"


def as_json(machine: Machine) -> str:
    """One JSON object with a final newline; documented in docs/json.md."""
    report: dict[str, Any] = {
        "version": VERSION,
        "python": machine.python,
        "findings": [
            {
                "name": item.name,
                "found": item.value is not None,
                "usable": item.usable,
                "value": item.value,
                "wrong": item.wrong,
                "note": item.note,
                "help": item.help,
            }
            for item in machine.findings.values()
        ],
        "backends": [
            {"name": name, "runs": machine.runs(name), "lacks": list(lacks)} for name, lacks in machine.lacks.items()
        ],
        "targets": list(machine.targets),
    }
    return json.dumps(report, indent=2) + "\n"
