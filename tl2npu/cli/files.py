"""What the commands that look at files have in common: their settings, and a run over the files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tl2npu.cli import INTERRUPTED
from tl2npu.files import Found

if TYPE_CHECKING:
    from tl2npu.config import Settings
    from tl2npu.project import Outcome, Task
    from tl2npu.project.cache import Cache
    from tl2npu.report.baseline import Baseline
    from tl2npu.report.model import Entry
    from tl2npu.results import FileResult, Skipped
    from tl2npu.sinks import Sink

STDIN = Path("-")


@dataclass(frozen=True)
class Request:
    """Which files, and how: what is the same for every command.

    ``name`` is that of standard input. ``progress``: a bar may be shown where standard error is a terminal.
    ``write_baseline``: where what is found goes. ``exit_zero``: findings do not count.
    """

    paths: tuple[Path, ...]
    settings: Settings
    name: Path | None = None
    shard: tuple[int, int] | None = None
    progress: bool = True
    debug: bool = False
    write_baseline: Path | None = None
    exit_zero: bool = False

    @property
    def is_stdin(self) -> bool:
        """True for `-`."""
        return STDIN in self.paths


def request(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    shard: str | None,
    quiet: bool,
    debug: bool,
    given: dict[str, Any],
) -> Request:
    """What is asked for; ``given`` are the settings of the command line. What is wrong is a usage error."""
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("standard input does not go with other paths")
    if STDIN in paths and shard is not None:
        raise click.UsageError("standard input does not go with --shard")
    places = [stdin_filename or Path.cwd()] if STDIN in paths else list(paths)
    kernels = given.pop("kernels")
    write_baseline, exit_zero = given.pop("write_baseline"), given.pop("exit_zero")
    if write_baseline is not None and given["baseline"] is not None:
        raise click.UsageError("--write-baseline writes everything: it does not go with --baseline")
    settings = settings_of(places, given)
    settings = replace(settings, options=replace(settings.options, kernels=kernels))
    return Request(paths, settings, stdin_filename, _shard(shard), not quiet, debug, write_baseline, exit_zero)


def settings_of(places: list[Path], given: dict[str, Any]) -> Settings:
    """The effective settings for the paths; a wrong one is a usage error."""
    from tl2npu.config import ConfigError, common_directory, load_settings

    try:
        return load_settings(common_directory(places), given)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


@dataclass(frozen=True)
class Finished:
    """What a run came to, condensed for its report."""

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]


def run_files(
    asked: Request, task: Task, sink: Sink, condense: Callable[[FileResult], Entry], would_change_counts: bool
) -> tuple[Finished, int]:
    """Take the files through ``task`` and into ``sink``; also the exit code."""
    from tl2npu.options import names
    from tl2npu.results import Skipped
    from tl2npu.sinks import deliver, exit_code

    entries: list[Entry] = []
    skipped: list[Skipped] = []
    baseline = _baseline(asked)
    code = 0
    changed = 0
    try:
        with closing(_outcomes(asked, task, sink.whole)) as outcomes:
            for item in deliver(outcomes, sink):
                if isinstance(item, Skipped):
                    skipped.append(item)
                else:
                    changed += item.changed
                    shown = asked.settings.reported(item)
                    entry = condense(shown)
                    if baseline is not None:
                        shown, entry = baseline.without_known(shown, entry)
                    code = max(code, exit_code(shown, task, would_change_counts))
                    entries.append(entry)
    except KeyboardInterrupt:
        click.echo(f"tl2npu: interrupted after {len(entries)} files, {changed} of them changed", err=True)
        sys.exit(INTERRUPTED)
    for wanted in asked.settings.options.kernels:
        if not any(names(wanted, entry.path, kernel.name) for entry in entries for kernel in entry.kernels):
            click.echo(f"tl2npu: no kernel is called {wanted!r}{_close(wanted, entries)}", err=True)
            code = 2
    if baseline is not None:
        _told(baseline, asked)
    if code == 1 and (asked.exit_zero or asked.write_baseline is not None):
        code = 0
    return Finished(tuple(entries), tuple(skipped)), code


def _baseline(asked: Request) -> Baseline | None:
    """What is known already; one that cannot be read is a usage error."""
    from tl2npu.report.baseline import Baseline
    from tl2npu.report.model import ReportError

    if asked.write_baseline is not None:
        return Baseline(asked.write_baseline)
    if asked.settings.baseline is None:
        return None
    try:
        return Baseline.read(asked.settings.baseline)
    except ReportError as error:
        raise click.UsageError(str(error)) from None


def _told(baseline: Baseline, asked: Request) -> None:
    if asked.write_baseline is None:
        click.echo(f"tl2npu: {baseline.told()}", err=True)
        return
    from tl2npu.source.inplace import WriteError, write_file

    try:
        write_file(asked.write_baseline, baseline.written().encode("utf-8", "backslashreplace"))
    except WriteError as error:
        raise click.UsageError(str(error)) from None


def _close(wanted: str, entries: list[Entry]) -> str:
    from difflib import get_close_matches

    known = sorted({kernel.name for entry in entries for kernel in entry.kernels})
    close = get_close_matches(wanted.rpartition("::")[2], known, n=1, cutoff=0.4)
    return f"; did you mean {close[0]!r}?" if close else ""


def _outcomes(asked: Request, task: Task, whole: bool) -> Generator[Outcome, None, None]:
    from tl2npu.cli.files import shard
    from tl2npu.files import collect
    from tl2npu.project import Batch, run, run_text

    settings = asked.settings
    if asked.is_stdin:
        data = sys.stdin.buffer.read()
        name = "<stdin>" if asked.name is None else asked.name.as_posix()
        yield run_text(data, name, task, settings.options, asked.debug)
        return
    files = collect(asked.paths or (Path(),), settings.rules)
    if asked.shard is not None:
        files = shard(files, *asked.shard)
    with _bar(len(files), asked.progress) as progress:
        batch = Batch(settings.jobs, settings.timeout, whole, progress, _cache(asked, task))
        with closing(run(files, task, settings.options, batch, asked.debug)) as outcomes:
            yield from outcomes


def _cache(asked: Request, task: Task) -> Cache | None:
    """Where results are remembered, and of executed code what was taken back."""
    from tl2npu.config import common_directory
    from tl2npu.project.cache import Cache

    settings = asked.settings
    directory = cache_place(common_directory(list(asked.paths)), settings) if settings.cache else None
    return None if directory is None else Cache.of(directory, task, settings.options)


def cache_place(start: Path, settings: Settings) -> Path | None:
    """The folder of the cache, None outside of projects; one that must not be a cache is a usage error."""
    from tl2npu.project.cache_folder import CacheError, cache_directory

    try:
        return cache_directory(start, settings.cache_dir, settings.file)
    except CacheError as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def _bar(files: int, wanted: bool) -> Iterator[Callable[[int], None] | None]:
    """A progress bar where somebody looks at it."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=files, label="files", file=sys.stderr, show_pos=True) as bar:
        yield bar.update


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not slash or not (number.isdecimal() and count.isdecimal()) or not 1 <= int(number) <= int(count):
        raise click.UsageError(f"--shard: must be such as 2/5, from 1/5 to 5/5, not {text!r}")
    return int(number), int(count)


def shard(files: Sequence[Found], number: int, count: int) -> list[Found]:
    """The part ``number`` (from 1) of ``count``, in the order of ``files``.

    The parts are equal to one file, and the same wherever the tree lies: files are dealt in the order of the hashes of
    their paths below the directories that were given, so that neighbours, which are often alike, do not stay together.
    """
    order = sorted(range(len(files)), key=lambda index: (_hash(files[index]), index))
    mine = set(order[number - 1 :: count])
    return [found for index, found in enumerate(files) if index in mine]


def _hash(found: Found) -> bytes:
    path = found.path.relative_to(found.root) if found.path.is_relative_to(found.root) else found.path
    return blake2b(path.as_posix().encode("utf-8", "surrogateescape"), digest_size=16).digest()
