"""Many files: each read, looked through and processed on its own, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tl2npu.files import Found, may_have_kernels, skip_reason
from tl2npu.options import Options
from tl2npu.results import FileResult, Skipped
from tl2npu.source.text import SourceError, SourceText, decode_source, read_bytes

Task = Literal["migrate", "check", "verify"]
"""``verify``: migrate, execute old and new, and take back what fails."""

_POOL_PAYS_FROM = 8  # files with kernels; starting processes costs more than a few files take


@dataclass(frozen=True)
class Outcome:
    """What came of one file. ``source`` is None if it could not be read, ``skipped`` says why it was left out."""

    found: Found
    result: FileResult
    source: SourceText | None = None
    skipped: Skipped | None = None


def run(files: Sequence[Found], task: Task, options: Options, jobs: int = 0, debug: bool = False) -> Iterator[Outcome]:
    """Process files, in ``jobs`` processes (0: as many as pay), and hand the outcomes back in input order.

    A file that cannot be processed is an outcome with ``result.error`` set, also when the tool itself fails; with
    ``debug`` the exception comes through instead.
    """
    read = [_read(found, options) for found in files]
    work = {number: item for number, item in enumerate(read) if isinstance(item, SourceText)}
    if jobs == 0:
        jobs = (os.cpu_count() or 1) if len(work) >= _POOL_PAYS_FROM else 1
    results = _results(work, files, task, options, min(jobs, len(work)), debug)
    for number, (found, item) in enumerate(zip(files, read, strict=True)):
        yield Outcome(found, next(results), work[number]) if isinstance(item, SourceText) else item


def run_text(data: bytes, name: str, task: Task, options: Options, debug: bool = False) -> Outcome:
    """Process one text that does not come from a file; ``name`` is what reports call it."""
    found = Found(Path(name), Path())
    try:
        source = decode_source(data, options.max_file_size)
    except SourceError as error:
        return Outcome(found, FileResult(name, error=str(error)))
    reason = skip_reason(data)
    skipped = Skipped(name, reason) if reason is not None else None
    if skipped is not None or not may_have_kernels(data):
        return Outcome(found, FileResult(name, source.text, source.text), source, skipped)
    return Outcome(found, _process(task, source.text, name, options, debug), source)


def display(path: Path) -> str:
    """A path as reports name it: relative to the working directory where it lies below, with forward slashes."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()


def _read(found: Found, options: Options) -> SourceText | Outcome:
    """The text of a file that may have kernels, else what is known without looking closer."""
    name = display(found.path)
    try:
        data = read_bytes(found.path, options.max_file_size)
        reason = skip_reason(data)
        if reason is not None:
            return Outcome(found, FileResult(name), decode_source(data, len(data)), Skipped(name, reason))
        source = decode_source(data, options.max_file_size)
    except SourceError as error:
        return Outcome(found, FileResult(name, error=str(error)))
    if not may_have_kernels(data):
        return Outcome(found, FileResult(name, source.text, source.text), source)
    return source


def _results(
    work: dict[int, SourceText], files: Sequence[Found], task: Task, options: Options, jobs: int, debug: bool
) -> Iterator[FileResult]:
    """The results of ``work`` in its order."""
    arguments = {
        number: (task, source.text, display(files[number].path), options, debug) for number, source in work.items()
    }
    if jobs <= 1:
        for number in work:
            yield _process(*arguments[number])
        return
    with ProcessPoolExecutor(jobs) as pool:
        largest_first = sorted(work, key=lambda number: -len(work[number].text))
        futures: dict[int, Future[FileResult]] = {}
        for number in largest_first:
            futures[number] = pool.submit(_process, *arguments[number])
        for number in work:
            try:
                yield futures[number].result()
            except BrokenProcessPool:  # some file brought a process down, and the pool with it: find out which
                yield _process_alone(*arguments[number])


def _process_alone(task: Task, text: str, path: str, options: Options, debug: bool) -> FileResult:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(_process, task, text, path, options, debug).result()
        except BrokenProcessPool:
            return FileResult(path, text, text, "internal error: the process that worked on the file died")


def _process(task: Task, text: str, path: str, options: Options, debug: bool) -> FileResult:
    from tl2npu import migrate  # takes most of the start-up time, and --help does without

    try:
        if task == "verify":
            from tl2npu.verify.migration import migrate_verified  # executes the code of the file

            result = migrate_verified(text, path, options)
        else:
            result = (migrate.check_text if task == "check" else migrate.migrate_text)(text, path, options)
    except Exception as error:
        if debug:
            raise
        message = " ".join(str(error).split())
        return FileResult(path, text, text, f"internal error: {type(error).__name__}: {message}")
    return replace(result, diagnostics=tuple(item for item in result.diagnostics if _reported(item.code, options)))


def _reported(code: str, options: Options) -> bool:
    return code.startswith(options.select or "") and not code.startswith(options.ignore or "-")
