"""A file with Triton kernels, all the way: TileLang for a GPU, then Developer mode, as one result."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from tl2npu.codes import CODES
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult
from tl2npu.triton.migrate import Outcome, Translated, diagnostic, to_tilelang


def migrate_triton(text: str, path: str, options: Options) -> FileResult:
    """Migrate the Triton kernels of a file; the new text belongs beside it, in ``FileResult.beside``.

    A kernel that the second half refuses stays as it is, with that refusal at its Triton line. Never raises for bad
    input.
    """
    leave: dict[str, Diagnostic] = {}
    if options.kernels:
        for outcome in to_tilelang(text, leave).kernels:
            if not options.selects(path, outcome.name):
                leave[outcome.name] = diagnostic("TL501", outcome.line, "not selected", outcome.name)
    name: str | None
    while True:
        try:
            translated = to_tilelang(text, leave)
        except (SyntaxError, ValueError) as error:
            return FileResult(path, text, text, f"line {getattr(error, 'lineno', 1)}: {error}")
        if translated.text == text:
            return _result(path, text, text, translated, {}, ())
        done = migrate_text(translated.text, beside(path), options)
        if done.error is not None:
            return FileResult(path, text, text, done.error)
        functions = _functions(translated.text)
        lines = {kernel.name: kernel.line for kernel in translated.kernels}
        refused = {}
        for kernel in done.kernels:
            name = _home(kernel.line, functions, lines)
            if kernel.disposition == "refused" and name is not None and name not in leave:
                found = next((d for d in done.diagnostics if d.kernel == kernel.name and d.severity == "error"), None)
                if found is not None:
                    refused[name] = replace(found, line=lines[name], column=1, end_line=None, kernel=name)
                else:
                    code = next((code for code in kernel.codes if CODES[code].severity == "error"), "TL530")
                    refused[name] = diagnostic(code, lines[name], kernel.reason, name)
        if not refused:
            kept = {_home(kernel.line, functions, lines): kernel for kernel in done.kernels}
            notes = tuple(_moved(item, functions, lines) for item in done.diagnostics if item.severity == "warning")
            return _result(path, text, done.new_text or text, translated, kept, notes)
        leave |= refused


def beside(path: str) -> str:
    """Where the result goes: ``kernel.py`` becomes ``kernel_tilelang.py``."""
    place = PurePath(path)
    return place.with_name(f"{place.stem}_tilelang{place.suffix}").as_posix()


def _result(
    path: str,
    old: str,
    new: str,
    translated: Translated,
    kept: Mapping[str | None, KernelResult],
    notes: tuple[Diagnostic, ...],
) -> FileResult:
    kernels = []
    diagnostics = list(notes)
    changes = []
    for outcome in translated.kernels:
        kernels.append(_verdict(outcome, kept.get(outcome.name)))
        diagnostics += outcome.notes if outcome.refused is None else [outcome.refused]
        if outcome.refused is None:
            text = f"`{outcome.name}` became a TileLang factory"
            changes.append(Change("TL501", outcome.line, text, outcome.name, CODES["TL501"].safety))
    diagnostics.sort(key=lambda item: (item.line, item.code))
    where = beside(path) if new != old else ""
    return FileResult(path, old, new, None, tuple(kernels), tuple(diagnostics), tuple(changes), beside=where)


def _verdict(outcome: Outcome, kernel: KernelResult | None) -> KernelResult:
    if outcome.refused is not None:
        found = outcome.refused
        return KernelResult(outcome.name, outcome.line, "triton", "none", "refused", found.message, (found.code,))
    codes = tuple(sorted({"TL501", *(note.code for note in outcome.notes)}))
    target = kernel.target if kernel is not None else "developer"
    reason = kernel.reason if kernel is not None else ""
    return KernelResult(outcome.name, outcome.line, "triton", target, "migrated", reason, codes)


def _functions(text: str) -> list[tuple[int, int, str]]:
    """First line, last line and name of the functions of a module."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            found.append((first, node.end_lineno or first, node.name))
    return found


def _home(line: int, functions: list[tuple[int, int, str]], lines: Mapping[str, int]) -> str | None:
    """The Triton kernel that a line of the translation comes from."""
    for first, last, name in functions:
        if first <= line <= last:
            stem, _, number = name.rpartition("_")
            return name if name in lines else stem if number.isdigit() and stem in lines else None
    return None


def _moved(item: Diagnostic, functions: list[tuple[int, int, str]], lines: Mapping[str, int]) -> Diagnostic:
    """A finding at a line of the translation, at the kernel's line in the Triton file."""
    name = _home(item.line, functions, lines)
    return replace(item, line=lines.get(name or "", 1), column=1, end_line=None, kernel=name)
