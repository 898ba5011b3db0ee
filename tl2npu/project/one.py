"""One file: read, looked through and processed."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from tl2npu.cells import by_cells, reason_to_skip
from tl2npu.files import Found, skip_reason, worth_a_look
from tl2npu.options import Options
from tl2npu.project.verdicts import is_known, learn, recalled
from tl2npu.results import FileResult, Skipped, judged
from tl2npu.source.notebook import Notebook, is_notebook
from tl2npu.source.text import SourceError, SourceText, TooBig, decode_source, is_python, read_bytes

Task = Literal["migrate", "check", "verify"]
"""``verify``: migrate, execute old and new, and take back what fails."""

_CALLS = 4000
"""As many calls in calls as the stack of C has room for on every system."""

_DECORATED = re.compile(rb"^[ \t]*@.*jit\b", re.MULTILINE)

_PYTHON = frozenset({".py", ".pyi", ".pyw", ""})

_LAYOUT_IS_LIKELY = 8  # among so many files with kernels one is in black's layout


@dataclass(frozen=True)
class Outcome:
    """What came of one file. ``source`` is None if it could not be read, ``skipped`` says why it was left out.

    ``group``: the outcomes, this one among them, that are written together or not at all.
    """

    found: Found
    result: FileResult
    source: SourceText | None = None
    skipped: Skipped | None = None
    group: tuple[Outcome, ...] = ()


class Memory(Protocol):
    """Results of earlier runs, by content."""

    def key(self, found: Found, data: bytes) -> str: ...

    def holds(self, key: str) -> bool: ...

    def get(self, key: str, text: str) -> FileResult | None: ...

    def put(self, key: str, result: FileResult) -> None: ...

    def shrink(self) -> None: ...


def may_promise(data: bytes) -> bool:
    """True for files whose kernels may lose parameters that callers give."""
    return b"workspace" in data or b"alloc_L0" in data


def may_be_handed(data: bytes) -> bool:
    """True for files whose kernels other files may compile: no decorator does."""
    return len(_DECORATED.findall(data)) < data.count(b"prim_func")


def look(found: Found, options: Options) -> tuple[SourceText, bytes] | Outcome:
    """The text and the bytes of a file that may have kernels, else what is known without looking closer."""
    name = display(found.path)
    if found.skipped is not None:
        return Outcome(found, FileResult(name), None, Skipped(name, found.skipped))
    if found.error is not None:
        return Outcome(found, FileResult(name, error=found.error))
    try:
        data = read_bytes(found.path, options.max_file_size)
    except TooBig as error:
        if not found.given:
            return Outcome(found, FileResult(name), None, Skipped(name, str(error)))
        return Outcome(found, FileResult(name, error=str(error)))
    except SourceError as error:
        return Outcome(found, FileResult(name, error=str(error)))
    return _look_through(found, name, data, options)


def work(found: Found, task: Task, options: Options, debug: bool = False, cache: Memory | None = None) -> Outcome:
    """Read and process one file. It never raises, but for internal errors with ``debug``."""
    seen = look(found, options)
    if isinstance(seen, Outcome):
        return seen
    source, data = seen
    done = process(task, source.text, display(found.path), options, debug, together=True, cache=cache)
    if cache is not None and not done.recalled and not debug and task != "verify":
        cache.put(cache.key(found, data), done)
    return Outcome(found, done, source)


def remembered(found: Found, task: Task, options: Options, cache: Memory) -> Outcome | None:
    """What an earlier run found out about a file, None if nothing or if the file is another one now.

    Nor is it of use once ``migrate --verify`` has taken back what it would write.
    """
    seen = look(found, options)
    if isinstance(seen, Outcome):
        return None
    source, data = seen
    result = cache.get(cache.key(found, data), source.text)
    if result is None or (task == "migrate" and is_known(cache, result)):
        return None
    return Outcome(found, result, source)


def run_text(data: bytes, name: str, task: Task, options: Options, debug: bool = False) -> Outcome:
    """Process one text that does not come from a file; ``name`` is what reports call it."""
    found = Found(Path(name), Path())
    seen = _look_through(found, name, data, options)
    if isinstance(seen, Outcome):
        return seen
    source, _ = seen
    return Outcome(found, process(task, source.text, name, options, debug), source)


def process(
    task: Task, text: str, path: str, options: Options, debug: bool, together: bool = False, cache: Memory | None = None
) -> FileResult:
    """Do the task on a text; a failure of the tool itself is an error of the file, with ``debug`` an exception.

    ``together``: what the result promises of other files is kept. ``cache``: knows what was taken back earlier.
    """

    def of_code(code: str) -> FileResult:
        from tl2npu import languages  # takes most of the start-up time, and --help does without

        if task == "verify":
            from tl2npu.verify.migration import migrate_verified  # executes the code of the file

            learned = None if cache is None else partial(learn, cache)
            book = Notebook.read(text) if is_notebook(path) else None
            return migrate_verified(code, path, options, book=book, learned=learned)
        if task == "check":
            return languages.check_source(code, path, options)
        both = together and not is_notebook(path)
        found, some = recalled(cache, lambda leave: languages.migrate_source(code, path, options, leave, both))
        return replace(found, recalled=some)

    try:
        with _room_for_nesting():
            result = by_cells(text, path, of_code) if is_notebook(path) else of_code(text)
    except RecursionError:
        if debug:
            raise
        return FileResult(path, text, text, "nested too deeply: hundreds of nested `elif` or operators")
    except Exception as error:
        if debug:
            raise
        message = " ".join(str(error).split())
        return FileResult(path, text, text, f"internal error: {type(error).__name__}: {message}")
    return reported(result, options)


def reported(result: FileResult, options: Options) -> FileResult:
    """The result with those diagnostics that shall be reported, and the verdicts that follow from them."""
    shown = tuple(item for item in result.diagnostics if _wanted(item.code, options))
    return judged(replace(result, diagnostics=shown))


@contextmanager
def _room_for_nesting() -> Iterator[None]:
    """A tree is as deep as a chain of ``elif`` is long, and code is generated by calls in calls, five for each."""
    before = sys.getrecursionlimit()
    if threading.current_thread() is threading.main_thread():  # the stacks of others may be small
        sys.setrecursionlimit(max(before, _CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def warm(task: Task, files: int) -> None:
    """Import what work on so many files will need."""
    from tl2npu import languages  # noqa: F401

    if task == "check":
        return
    from tl2npu import migration  # noqa: F401

    if files >= _LAYOUT_IS_LIKELY:
        import black  # noqa: F401

        from tl2npu.passes.pipelines import ascend, gpu  # noqa: F401


def display(path: Path) -> str:
    """A path as reports name it: relative to the working directory where it lies below, with forward slashes."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()


def _look_through(found: Found, name: str, data: bytes, options: Options) -> tuple[SourceText, bytes] | Outcome:
    reason = skip_reason(data)
    try:
        source = decode_source(data, options.max_file_size if reason is None else len(data))
    except SourceError as error:
        return Outcome(found, FileResult(name, error=str(error)))
    if reason is not None:
        return Outcome(found, FileResult(name), source, Skipped(name, reason))
    cells = is_notebook(name) and (b"tilelang" in data or b"triton" in data)  # they are looked at one by one
    asked = found.given and not is_notebook(name)  # by its name: then it has to be Python
    if not cells and not worth_a_look(data, source.text) and not (asked and not is_python(source.text)):
        if asked and found.path.suffix not in _PYTHON:
            return Outcome(found, FileResult(name, error="this is not a Python file (.py) or a notebook (.ipynb)"))
        return Outcome(found, FileResult(name, source.text, source.text), source)
    reason = reason_to_skip(source.text) if is_notebook(name) else None
    if reason is not None:
        return Outcome(found, FileResult(name), source, Skipped(name, reason))
    return source, data


def _wanted(code: str, options: Options) -> bool:
    return code.startswith(options.select or "") and not code.startswith(options.ignore or "-")
