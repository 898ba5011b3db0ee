"""The formats by name, and which one a file's name asks for. Each is imported only when it is wanted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tl2npu.report.model import Report

NEEDS_DIFFS = frozenset({"json", "sarif", "markdown", "html"})
_ENDINGS = {
    ".json": "json",
    ".sarif": "sarif",
    ".sarif.json": "sarif",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}


def format_of(path: Path) -> str | None:
    """The format that a file's ending names, None if it names none."""
    name = path.name.lower()
    found = [style for ending, style in _ENDINGS.items() if name.endswith(ending)]
    return found[-1] if found else None


def render(report: Report, style: str) -> str:
    """The report in a format, complete and with a final newline."""
    if style == "text":
        from tl2npu.report.text import TextReport

        return TextReport().render(report)
    text = import_module(f"tl2npu.report.{style}").render(report)
    assert isinstance(text, str)
    return text
