"""Views in the words of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types

from tl2npu.lsp.edits import Edit, Position, Units, edits, end_of, lines_of, position
from tl2npu.lsp.look import Kernel, View
from tl2npu.report.sarif import documentation_site
from tl2npu.results import Diagnostic
from tl2npu.rules import load_rules
from tl2npu.source.notebook import is_notebook

SOURCE = "tl2npu"
_FAULTS = {"error": 1, "warning": 2, "info": 3}
_OBSTACLES = {"error": 2, "warning": 2, "info": 4}
"""A kernel that cannot be migrated is no error of its author; a warning, as that tiles may not fit, stays one."""


def diagnostics(view: View, text: str, units: Units) -> list[Any]:
    """Everything that a view says about the text."""
    lines = lines_of(text)
    found = [can_be_migrated(kernel, lines, units) for kernel in view.kernels]
    found += [_diagnostic(item, lines, units, _FAULTS) for item in view.faults]
    found += [_diagnostic(item, lines, units, _OBSTACLES) for item in view.obstacles]
    if view.problem is not None:
        start = types.Position(line=0, character=0)
        where = types.Range(start=start, end=start)
        found.append(
            types.Diagnostic(range=where, message=view.problem, severity=types.DiagnosticSeverity.Error, source=SOURCE)
        )
    return found


def can_be_migrated(kernel: Kernel, lines: list[str], units: Units) -> Any:
    """The offer that stands at the ``def`` of a kernel."""
    result = kernel.result
    reason = f" ({result.reason})" if result.reason else ""
    return types.Diagnostic(
        range=_range(lines, result.line, 1, result.line, units),
        message=f"{result.source} kernel `{result.name}` can be migrated: {result.target}{reason}",
        severity=types.DiagnosticSeverity.Information,
        source=SOURCE,
    )


def text_edits(old: str, new: str, units: Units) -> list[Any]:
    """The edits that make one text of the other."""
    return [_edit(item) for item in edits(old, new, units)]


def rule_link(code: str) -> str | None:
    """Where the page of a rule can be read: on the site, else the file itself."""
    page = load_rules().get(code)
    if page is None:
        return None
    site = documentation_site()
    return page.path.absolute().as_uri() if site is None else f"{site}/rules/{page.group}/{page.path.stem}/"


def rule_text(code: str) -> str | None:
    """The page of a rule in Markdown."""
    page = load_rules().get(code)
    return None if page is None else f"# {page.code} {page.name}\n\n{page.text.strip()}"


def path_of(uri: str, root: str | None, *, notebook: bool) -> str:
    """The path of a document; one that has none yet lies at the root of the workspace."""
    from pygls.uris import to_fs_path

    path = to_fs_path(uri) if uri.startswith("file:") else None
    if path is None or (notebook and not is_notebook(path)):
        path = str(Path(root or ".") / ("untitled.ipynb" if notebook else "untitled.py"))
    return str(Path(path))


def _diagnostic(item: Diagnostic, lines: list[str], units: Units, levels: dict[str, int]) -> Any:
    link = rule_link(item.code)
    return types.Diagnostic(
        range=_range(lines, item.line, item.column, item.end_line or item.line, units),
        message=f"{item.message}\nhelp: {item.help}" if item.help else item.message,
        severity=types.DiagnosticSeverity(levels[item.severity]),
        code=item.code,
        code_description=None if link is None else types.CodeDescription(href=link),
        source=SOURCE,
    )


def _range(lines: list[str], line: int, column: int, last: int, units: Units) -> Any:
    """From the first word at or behind a column to the end of the last line."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    column += len(text[column - 1 :]) - len(text[column - 1 :].lstrip(" \t"))
    start, end = position(lines, line, column, units), end_of(lines, max(line, last), units)
    return types.Range(start=_position(start), end=_position(end))


def _edit(item: Edit) -> Any:
    return types.TextEdit(range=types.Range(start=_position(item.start), end=_position(item.end)), new_text=item.text)


def _position(place: Position) -> Any:
    return types.Position(line=place.line, character=place.character)
