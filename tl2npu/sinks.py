"""Where migrated text goes: into the file, a patch, another place or nowhere; and what a run's exit code is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from tl2npu.project import Outcome, Task
from tl2npu.results import FileResult, Skipped
from tl2npu.source.broken import discard
from tl2npu.source.diff import coloured, unified_diff
from tl2npu.source.inplace import InPlace, WriteError, repository_root, write_file
from tl2npu.source.text import SourceError, SourceText


class SinkError(Exception):
    """A destination that cannot take what it is given; ``str()`` is one line, ``place`` the file among several."""

    place: Path | None = None


Item = tuple[Outcome, bytes, bytes]
"""An outcome with the bytes that its file has and those that it gets."""


class Sink(Protocol):
    """Takes the new bytes of one file; raises :class:`SinkError`, :class:`WriteError` or :class:`SourceError`.

    ``whole``: it wants files that do not change, too.
    """

    whole: bool

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None: ...


def deliver(outcomes: Iterable[Outcome], sink: Sink) -> Iterator[FileResult | Skipped]:
    """Send every outcome to the sink; what the sink refuses becomes an error of that file, and of its whole group."""
    refused: dict[Path, str | None] = {}
    for outcome in outcomes:
        result = outcome.result
        if outcome.group:
            if outcome.found.path not in refused:
                refused |= _deliver_together(outcome.group, sink)
            error = refused[outcome.found.path]
            yield result if error is None else replace(result, error=error)
            continue
        if outcome.source is not None and result.error is None:
            try:
                old = outcome.source.encode()
                new = _new_bytes(outcome.source, result)
                result = replace(result, stands=not sink.whole and _stands(outcome, new))
                sink.take(outcome, old, new)
            except (SinkError, WriteError, SourceError) as error:
                result = replace(result, error=str(error))
        yield result if outcome.skipped is None else outcome.skipped


def _deliver_together(group: tuple[Outcome, ...], sink: Sink) -> dict[Path, str | None]:
    """Send the outcomes of a group, all or none; the error of each."""
    items: list[Item] = []
    place = group[0].found.path
    try:
        for outcome in group:
            place = outcome.found.path
            assert outcome.source is not None
            items.append((outcome, outcome.source.encode(), _new_bytes(outcome.source, outcome.result)))
        if isinstance(sink, (ToFiles, ToPlace)):
            sink.take_together(items)
        else:
            for item in items:
                place = item[0].found.path
                sink.take(*item)
    except (SinkError, WriteError, SourceError) as error:
        failed = place if isinstance(error, SourceError) or error.place is None else error.place
        why = f"not written, because it goes together with {failed.as_posix()}: {error}"
        return {o.found.path: str(error) if o.found.path == failed else why for o in group}
    return dict.fromkeys((outcome.found.path for outcome in group), None)


def exit_code(file: FileResult, task: Task, would_change_counts: bool) -> int:
    """What one file makes of a run: 0 clean, 1 findings, 2 if it could not be read, parsed, processed or written."""
    if file.error is not None:
        return 2
    if task == "check":
        return int(any(item.severity == "error" for item in file.diagnostics))
    refused = any(kernel.unfinished or kernel.errors for kernel in file.kernels)
    refused |= any(item.code == "TL816" and item.severity == "error" for item in file.diagnostics)
    unproved = task == "verify" and any(kernel.verified is None and kernel.rewritten for kernel in file.kernels)
    return int(refused or unproved or (would_change_counts and file.changed))


def beside(outcome: Outcome) -> Path | None:
    """The file that the new text goes to where the input stays as it is."""
    name = outcome.result.beside
    return outcome.found.path.with_name(Path(name).name) if name else None


def _stands(outcome: Outcome, new: bytes) -> bool:
    """Whether the file beside the input has this text already."""
    target = beside(outcome)
    with suppress(OSError):
        return target is not None and target.read_bytes() == new
    return False


class Nowhere:
    """For ``--check``: nothing is written."""

    whole = False

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None:
        """Do nothing."""


class ToFiles:
    """Rewrites the input files."""

    whole = False

    def __init__(self, allow_dirty: bool) -> None:
        self._writer = InPlace(allow_dirty)

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None:
        """Write the file if it changes."""
        if new == old:
            return
        target = beside(outcome)
        if target is None:
            self._writer.write(outcome.found.path, old, new)
        elif target.exists():
            self._writer.write(target, target.read_bytes(), new)
        else:
            write_file(target, new)

    def take_together(self, items: Sequence[Item]) -> None:
        """Write all files that change, or none; an error names its ``place``."""
        changed = [(item.found.path, old, new) for item, old, new in items if new != old]
        written: list[tuple[Path, bytes, bytes, Path | None]] = []
        path = Path()
        try:
            for path, old, new in changed:
                self._writer.check(path, old, new)
            for path, old, new in changed:
                written.append((path, old, new, self._writer.write(path, old, new)))
        except BaseException as error:  # also Ctrl-C
            for done in reversed(written):
                self._writer.take_back(*done)
            if isinstance(error, WriteError):
                error.place = path
            raise


class ToPatch:
    """Writes a patch that ``git apply`` takes at the root of the repository, else in the working directory.

    ``color``: for eyes, as a terminal shows it.
    """

    whole = False

    def __init__(self, stream: BinaryIO, color: bool = False) -> None:
        self._stream = _Stream(stream)
        self._color = color

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None:
        """Append the change of the file."""
        if new == old or _stands(outcome, new):
            return
        target = beside(outcome)
        before = old if target is None else target.read_bytes() if target.exists() else None
        patch = unified_diff(before, new, _patch_path(target or outcome.found.path))
        self._stream.write(coloured(patch) if self._color else patch)


class ToStream:
    """Writes the text itself: for standard input."""

    whole = True

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = _Stream(stream)

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None:
        """Write the whole text, changed or not."""
        self._stream.write(new)


class _Stream:
    """A stream that takes all or, after something went wrong once, nothing more: a patch must not have holes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._broken: str | None = None

    def write(self, data: bytes) -> None:
        if self._broken is None:
            try:
                self._stream.write(data)
                self._stream.flush()
            except BrokenPipeError:  # nobody reads on: no error of a file
                raise
            except OSError as error:
                self._broken = f"cannot write to standard output: {error.strerror or error}"
                discard(self._stream)
        if self._broken is not None:
            raise SinkError(self._broken)


class ToPlace:
    """Writes every file, changed or not, to another place: ``output`` itself or, as a directory, below it.

    The tree below ``base`` is kept, a directory above all files; None: that below the directory that was given.
    """

    whole = True

    def __init__(self, output: Path, as_directory: bool, base: Path | None = None) -> None:
        self._output = output
        self._as_directory = as_directory
        self._base = base
        self._taken: dict[Path, Path] = {}

    def take(self, outcome: Outcome, old: bytes, new: bytes) -> None:
        """Write the file to its place; never onto an input file, nor two files to one place."""
        write_file(self._target(outcome), new)

    def take_together(self, items: Sequence[Item]) -> None:
        """Write all files, or none."""
        targets: list[Path] = []
        written: list[tuple[Path, bytes | None]] = []
        place = Path()
        try:
            for outcome, _, _ in items:
                place = outcome.found.path
                targets.append(self._target(outcome))
            for target, (outcome, _, new) in zip(targets, items, strict=True):
                place = outcome.found.path
                written.append((target, self._now(target)))
                write_file(target, new)
        except BaseException as error:  # also Ctrl-C
            for target, before in reversed(written):
                self._take_back(target, before)
            if isinstance(error, (SinkError, WriteError)):
                error.place = place
            raise

    def _target(self, outcome: Outcome) -> Path:
        source = outcome.found.path
        target = self._output
        if self._as_directory:
            base = self._base or outcome.found.root
            target = target / os.path.relpath(source, base)  # the same text for `./a`, `b/../a`
        if target.resolve() == source.resolve():
            raise SinkError("the output is the input; leave out -o to rewrite in place")
        other = self._taken.setdefault(target.resolve(), source)
        if other != source:
            raise SinkError(f"{other.as_posix()} is written to {target.as_posix()} already")
        return target

    @staticmethod
    def _now(target: Path) -> bytes | None:
        try:
            return target.read_bytes() if target.is_file() else None
        except OSError as error:
            raise WriteError(f"cannot read {target.as_posix()}: {error.strerror or error}") from None

    @staticmethod
    def _take_back(target: Path, before: bytes | None) -> None:
        """What was there before, or nothing."""
        with suppress(OSError, WriteError):
            if before is not None:
                write_file(target, before)
            elif target.is_file():
                target.unlink()


def _new_bytes(source: SourceText, result: FileResult) -> bytes:
    return source.encode() if result.new_text is None else source.with_text(result.new_text).encode()


def _patch_path(path: Path) -> str:
    full = path.absolute()
    base = repository_root(full) or Path.cwd()
    real = full.resolve()
    try:
        return real.relative_to(base.resolve()).as_posix()
    except ValueError:  # elsewhere: git takes no path that leads out of the tree
        return real.relative_to(full.anchor).as_posix()
