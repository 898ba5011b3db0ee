"""Annotations for GitHub Actions: workflow commands on standard output, and the page of the step.

GitHub shows at most ten errors, ten warnings and ten notices of a step; what does not fit is in its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tl2npu.report import markdown
from tl2npu.report.closing import summary
from tl2npu.report.escape import visible
from tl2npu.report.model import Entry, Report

STEP_SUMMARY_LIMIT = 1024 * 1024
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> str:
    """One command a line, errors first, and the summary line."""
    lines = [line for entry in report.entries for line in _entry(entry, report)]
    lines.sort(key=lambda line: list(_COMMANDS.values()).index(line.split(" ")[0][2:]))
    return "\n".join([*lines, summary(report)]) + "\n"


def step_summary(report: Report) -> str:
    """Markdown for the file that ``$GITHUB_STEP_SUMMARY`` names."""
    return markdown.render(report, limit=STEP_SUMMARY_LIMIT)


def _entry(entry: Entry, report: Report) -> Iterator[str]:
    if entry.error is not None:
        yield _command("error", entry.path, {"title": "tl2npu"}, entry.error)
    for finding in entry.findings:
        item = finding.diagnostic
        place: dict[str, int | None]
        place = {"line": item.line, "endLine": item.end_line, "col": item.column if item.column > 1 else None}
        if item.file_line is not None:  # a notebook: the text of a cell is within a JSON string
            place = {"line": item.file_line}
        help = f"\nhelp: {visible(item.help)}" if item.help else ""
        cell = "" if item.cell is None else f" in cell {item.cell} line {item.line}"
        title = f"{item.code} {item.name}{cell}"
        yield _command(_COMMANDS[item.severity], entry.path, {**place, "title": title}, visible(item.message) + help)
    for kernel in entry.kernels:
        if kernel.rewritten and not report.run.written:
            message = f"{kernel.name} can be migrated: {kernel.source} -> {kernel.target}"
            yield _command(
                "warning",
                entry.path,
                {"line": kernel.file_line or kernel.line, "title": "tl2npu migrate"},
                visible(message),
            )


def _command(name: str, path: str, properties: Mapping[str, str | int | None], message: str) -> str:
    pairs = {"file": path, **properties}
    text = ",".join(f"{key}={_property(str(value))}" for key, value in pairs.items() if value is not None)
    return f"::{name} {text}::{_data(message)}"


def _data(text: str) -> str:
    """The runner undoes exactly these; what else could steer a terminal is made visible first."""
    shown = "\n".join(visible(line) for line in text.split("\n"))
    return shown.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return visible(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
