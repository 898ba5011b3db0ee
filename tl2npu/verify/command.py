"""``tl2npu verify``: reads the files, migrates in memory where only one is given, and verifies."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tl2npu.across.modules import display
from tl2npu.across.symbols import Symbols
from tl2npu.cells import by_cells
from tl2npu.files import may_compile, may_have_kernels
from tl2npu.imported import with_compiled
from tl2npu.languages import migrate_source
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.source.text import SourceError, read_source
from tl2npu.traces.reading import TraceError, open_trace
from tl2npu.verified import VerifyResult
from tl2npu.verify import process, reference
from tl2npu.verify.backends import verify
from tl2npu.verify.judge import Runner
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import Place, places
from tl2npu.verify.notebooks import in_module, source_of, told_by_cell
from tl2npu.verify.settings import Settings, UsageError


def verify_files(
    old: Path, new: Path | None, settings: Settings, options: Options, runner: Runner = process.apart
) -> VerifyResult:
    """Verify ``new`` against ``old``, or the migration of ``old``. Executes the code of both.

    With ``settings.reference`` the launches are those of a trace; a single file is the new one then, unless it is the
    recorded one.

    A file that cannot be read or parsed comes back with ``error`` set. Raises UsageError for settings that do not fit.
    ``options.kernels``: the verdict is on these only.
    """
    return _of_the_asked(_all(old, new, settings, options, runner), options)


def _of_the_asked(found: VerifyResult, options: Options) -> VerifyResult:
    """The verdict on the kernels of ``options.kernels``. What belongs to no kernel counts, as a script that fails."""
    if not options.kernels or found.error is not None:
        return found
    asked = {kernel.name for kernel in found.kernels if options.selects(found.old, kernel.name)}
    if not asked:
        known = ", ".join(kernel.name for kernel in found.kernels) or "no kernel"
        raise UsageError(f"no kernel is called {options.kernels[0]!r}; the file has {known}")
    kernels = tuple(kernel for kernel in found.kernels if kernel.name in asked)
    diagnostics = tuple(item for item in found.diagnostics if item.kernel is None or item.kernel in asked)
    statuses = {kernel.status for kernel in kernels}
    ok = "verified" in statuses and statuses <= {"verified", "unchanged"}
    ok = ok and not any(item.severity == "error" for item in diagnostics)
    return replace(
        found,
        ok=ok and not any(script.exit_code for script in found.scripts),
        kernels=kernels,
        diagnostics=diagnostics,
        comparisons=tuple(launch for launch in found.comparisons if launch.kernel in asked),
    )


def _all(old: Path, new: Path | None, settings: Settings, options: Options, runner: Runner) -> VerifyResult:
    result = VerifyResult(
        old.as_posix(), None if new is None else new.as_posix(), settings.backend.name, settings.arithmetic
    )
    try:
        before = _read(old, options)
        after = before if new is None else _read(new, options)
    except SourceError as error:
        return replace(result, error=str(error))
    if settings.reference is not None and new is None:
        try:
            if not reference.is_recorded(open_trace(Path(settings.reference)), before):
                return replace(verify(None, before, settings, runner), old=result.old, new=result.old)
        except TraceError as error:
            return replace(result, error=str(error))
    if new is not None:
        return told_by_cell(replace(verify(before, after, settings, runner), new=result.new), before.book)
    migrated = _migrated(before, options)
    if migrated.error is not None or migrated.new_text is None:
        return replace(result, error=migrated.error or "it could not be migrated")
    others = _others(before, options)
    if others:
        texts = {Path(other.path): other.new_text or "" for other in others}
        migrated = with_compiled(migrated, options, texts)[0]
    changed = [k.name for k in migrated.kernels if k.rewritten]
    shown = f"{before.shown} (migrated)" if changed else before.shown
    after = source_of(migrated.new_text or "", before.path, shown)
    after = replace(after, others=tuple((other.path, other.new_text or "") for other in others if other.changed))
    found = _of_the_migrated(verify(before, after, settings, runner, changed or None), migrated, bool(changed))
    found = _of_others(found, others, places(before.text))
    notes: list[str] = []
    if after.others:
        names = ", ".join(display(Path(path)) for path, _ in after.others)
        notes.append(f"the new script imports {names} as `tl2npu migrate` would write it")
    elif not migrated.kernels and not found.kernels:
        notes.append("the file has no kernel")
    elif not migrated.changed and not any(k.unfinished for k in migrated.kernels):
        notes.append("nothing was migrated: the file is compared with itself")
    return told_by_cell(replace(found, new=None, notes=(*found.notes, *notes)), before.book)


def _of_the_migrated(found: VerifyResult, migrated: FileResult, some: bool) -> VerifyResult:
    """The verdict without the kernels that were refused: the text of one agrees with itself, and why it was counts.

    ``some``: other kernels were migrated.
    """
    left = {k.line: k for k in migrated.kernels if k.unfinished}
    kernels = tuple(
        replace(v, status="not migrated", reason=left[v.line].reason, verified=None) if v.line in left else v
        for v in found.kernels
    )
    names = {v.name for v in kernels if v.status == "not migrated"}
    reasons = [d for d in migrated.diagnostics if d.severity == "error" and d.kernel in {k.name for k in left.values()}]
    others = [d for d in found.diagnostics if d.kernel not in names]
    notes = tuple(note for note in found.notes if note.split(": ")[0] not in names)
    diagnostics = tuple(sorted((*others, *reasons), key=lambda d: (d.line, d.code)))
    return replace(found, kernels=kernels, diagnostics=diagnostics, notes=notes, ok=found.ok and (some or not left))


def _others(before: Source, options: Options) -> list[FileResult]:
    """The migration of the modules of the repository that a script imports, by itself or through others."""
    if before.book is not None:
        return []
    symbols = Symbols()
    waiting, seen = [(Path(before.path).resolve(), before.text)], {Path(before.path).resolve()}
    found: list[FileResult] = []
    while waiting:
        path, text = waiting.pop(0)
        for name in _imported(ast.parse(text)):
            place = symbols.locate(path, name)
            if place is None or place.resolve() in seen or not place.is_file():
                continue
            seen.add(place.resolve())
            try:
                inner = read_source(place, options.max_file_size).text
                ast.parse(inner)
            except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            waiting.append((place.resolve(), inner))
            if may_have_kernels(inner.encode()) or may_compile(inner.encode()):
                found.append(migrate_source(inner, str(place.resolve()), options))
    texts = {Path(other.path): other.new_text or "" for other in found if other.changed}
    return [with_compiled(other, options, texts)[0] for other in found if other.error is None]


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a file may import, and the names that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" if node.module else f"{module}{alias.name}" for alias in node.names)


def _of_others(found: VerifyResult, others: Sequence[FileResult], own: Sequence[Place]) -> VerifyResult:
    """The verdict with those kernels of other files that are not migrated: they were compared with themselves."""
    left = {kernel.name: kernel for other in others for kernel in other.kernels if kernel.unfinished}
    for name in {place.name for place in own}:
        left.pop(name, None)
    kernels = tuple(
        replace(v, status="not migrated", reason=left[v.name].reason, verified=None) if v.name in left else v
        for v in found.kernels
    )
    some = any(verdict.status == "verified" for verdict in kernels)
    return replace(found, kernels=kernels, ok=found.ok and (some or kernels == found.kernels))


def exit_code(result: VerifyResult) -> int:
    """0 verified, 1 not, 2 if a file could not be read or parsed."""
    return 2 if result.error is not None else int(not result.ok)


def _migrated(before: Source, options: Options) -> FileResult:
    if before.book is None:
        return migrate_source(before.text, before.path, options)
    done = by_cells(before.book.json_text, before.path, lambda code: migrate_source(code, before.path, options))
    return in_module(done, before.book)


def _read(path: Path, options: Options) -> Source:
    try:
        source = source_of(read_source(path, options.max_file_size).text, str(path), path.as_posix())
        for name, text in source.pieces:
            _compile(text, name)
    except SourceError as error:
        raise SourceError(f"{path.as_posix()}: {error}") from None
    return source


def _compile(text: str, name: str) -> None:
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SourceError(str(error)) from None
    except (RecursionError, MemoryError):
        raise SourceError("nested too deeply") from None
