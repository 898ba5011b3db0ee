"""The report of ``tl2npu check --compare``: kernel by kernel, what is found for one device and not for another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tl2npu import __version__
from tl2npu.report.escape import visible
from tl2npu.report.model import Entry, counted
from tl2npu.results import Diagnostic, KernelResult


@dataclass(frozen=True)
class Differing:
    """A finding, and the devices for which it holds: some of those that are compared."""

    diagnostic: Diagnostic
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """A kernel, or what is outside of all kernels of a file (``name`` empty). ``errors``: how many, by device."""

    path: str
    name: str
    line: int
    errors: Mapping[str, int]
    findings: tuple[Differing, ...]


@dataclass(frozen=True)
class Comparison:
    """``devices`` as they were asked for; ``kernels``: how many there are; ``differing``: those with differences;
    ``failed``: (path, why) of files that could not be read."""

    devices: tuple[str, ...]
    kernels: int
    differing: tuple[Compared, ...]
    failed: tuple[tuple[str, str], ...]


def compare(entries: Mapping[str, Sequence[Entry]]) -> Comparison:
    """What the runs of several devices, each over the same files, differ in."""
    devices = tuple(entries)
    differing: list[Compared] = []
    of_files = list(zip(*entries.values(), strict=True))
    for files in of_files:
        for number, kernel in enumerate((*files[0].kernels, None)):
            found = _compared(dict(zip(devices, files, strict=True)), kernel, number)
            if found.findings:
                differing.append(found)
    failed = tuple((files[0].path, files[0].error) for files in of_files if files[0].error is not None)
    return Comparison(devices, sum(len(files[0].kernels) for files in of_files), tuple(differing), failed)


def _compared(files: Mapping[str, Entry], kernel: KernelResult | None, number: int) -> Compared:
    holds: dict[tuple[object, ...], tuple[Diagnostic, list[str]]] = {}
    errors: dict[str, int] = {}
    for device, entry in files.items():
        mine = [item.diagnostic for item in entry.findings_of(None if kernel is None else entry.kernels[number])]
        errors[device] = sum(item.severity == "error" for item in mine)
        for item in mine:
            key = (item.line, item.column, item.code, item.severity, item.message)
            known = holds.setdefault(key, (item, []))[1]
            if device not in known:
                known.append(device)
    findings = tuple(Differing(item, tuple(on)) for item, on in holds.values() if len(on) < len(files))
    path = next(iter(files.values())).path
    return Compared(path, kernel.name if kernel else "", kernel.line if kernel else 1, errors, findings)


def as_text(found: Comparison) -> str:
    """Lines for a terminal, ended by a count."""
    lines = [f"{path}: error: {why}" for path, why in found.failed]
    for kernel in found.differing:
        where = f"{kernel.path}:{kernel.line} {kernel.name}" if kernel.name else kernel.path
        lines.append(f"{where}: {_verdict(kernel)}")
        width = max(len(", ".join(item.devices)) for item in kernel.findings)
        for item in kernel.findings:
            said = item.diagnostic
            on = ", ".join(item.devices).ljust(width)
            lines.append(f"  {on}  line {said.line}: {said.severity} {said.code} {said.name}: {said.message}")
    named = sum(bool(kernel.name) for kernel in found.differing)
    of = counted(found.kernels, "kernel")
    lines.append(f"{named} of {of} {'differs' if named == 1 else 'differ'} between {', '.join(found.devices)}")
    return "".join(f"{visible(line)}\n" for line in lines)


def _verdict(kernel: Compared) -> str:
    bad = [device for device, count in kernel.errors.items() if count]
    good = [device for device, count in kernel.errors.items() if not count]
    if bad and good:
        return f"errors on {', '.join(bad)}, none on {', '.join(good)}"
    return "errors on all, but not the same" if bad else "no errors, but not the same findings"


def as_json(found: Comparison) -> str:
    """One object: ``devices``, ``kernels`` with differences, ``failed``, ``summary``."""
    kernels = [
        {
            "path": kernel.path,
            "kernel": kernel.name or None,
            "line": kernel.line,
            "errors": dict(kernel.errors),
            "findings": list(_findings(kernel)),
        }
        for kernel in found.differing
    ]
    whole = {
        "version": __version__,
        "task": "compare",
        "devices": list(found.devices),
        "kernels": kernels,
        "failed": [{"path": path, "error": why} for path, why in found.failed],
        "summary": {"kernels": found.kernels, "differ": sum(bool(k.name) for k in found.differing)},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _findings(kernel: Compared) -> Iterator[dict[str, Any]]:
    for item in kernel.findings:
        said = item.diagnostic
        yield {
            "devices": list(item.devices),
            "line": said.line,
            "column": said.column,
            "code": said.code,
            "name": said.name,
            "severity": said.severity,
            "message": said.message,
            "help": said.help,
        }
