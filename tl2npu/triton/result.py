"""A file with Triton kernels, all the way: TileLang for a GPU, then Developer mode, as one result."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType

from tl2npu.codes import CODES
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult
from tl2npu.source.notebook import is_notebook
from tl2npu.triton.host.source import parse
from tl2npu.triton.migrate import Outcome, Translated, diagnostic, to_tilelang


def migrate_triton(
    text: str, path: str, options: Options, leave_lines: Mapping[int, Sequence[Diagnostic]] = MappingProxyType({})
) -> FileResult:
    """Migrate the Triton kernels of a file; the new text belongs beside it, in ``FileResult.beside``.

    ``leave_lines``: line of a kernel's ``def`` -> why it stays. A kernel that the second half refuses stays as it is,
    with that refusal at its Triton line. What else is in the file is migrated as ever: in place, where no Triton
    kernel is. Never raises for bad input.
    """
    try:
        leave = dict(_left(text, path, options, leave_lines))
    except (SyntaxError, ValueError) as error:
        return FileResult(path, text, text, f"line {getattr(error, 'lineno', 1)}: {error}")
    name: str | None
    while True:
        translated = to_tilelang(text, leave)
        if translated.text == text:
            return _with_kept(migrate_text(text, path, options, leave_lines), translated)
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


def check_triton(result: FileResult, options: Options) -> FileResult:
    """What ``check`` says of a file, with its Triton kernels."""
    if result.error is not None or result.old_text is None:
        return result
    kernels, found = list(result.kernels), list(result.diagnostics)
    for name, node in parse(result.old_text).kernels.items():
        if options.selects(result.path, name):
            kernels.append(KernelResult(name, node.lineno, "triton", "none", "unchanged", "Triton", ("TL501",)))
            said = diagnostic("TL501", node.lineno, f"`{name}` is a Triton kernel, which has not been checked", name)
            found.append(replace(said, help="translate it with `tl2npu migrate`"))
    return _sorted(result, kernels, found)


def _left(
    text: str, path: str, options: Options, lines: Mapping[int, Sequence[Diagnostic]]
) -> Iterator[tuple[str, Diagnostic]]:
    """The kernels that nobody tries, and why."""
    for name, node in parse(text).kernels.items():
        if why := lines.get(node.lineno):
            yield name, why[0]
        elif not options.selects(path, name):
            yield name, diagnostic("TL501", node.lineno, "not selected", name)
        elif is_notebook(path):
            found = diagnostic("TL501", node.lineno, "Triton kernels in notebooks are not translated", name)
            yield name, replace(found, severity="error", help="move the kernel and its launch into a `.py` file")


def _with_kept(result: FileResult, translated: Translated) -> FileResult:
    """The result of a file of which every Triton kernel stays."""
    kernels = [*result.kernels, *(_verdict(outcome, None) for outcome in translated.kernels)]
    found = [*result.diagnostics, *(outcome.refused for outcome in translated.kernels if outcome.refused is not None)]
    return _sorted(result, kernels, found)


def _sorted(result: FileResult, kernels: list[KernelResult], found: list[Diagnostic]) -> FileResult:
    """The result with these kernels and findings, by line."""
    kernels.sort(key=lambda kernel: kernel.line)
    found.sort(key=lambda item: (item.line, item.code))
    return replace(result, kernels=tuple(kernels), diagnostics=tuple(found))


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
