"""What the commands that look at files have in common: their options, and a run over the files."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tl2npu.options import Options
    from tl2npu.sinks import Finished, Sink

STDIN = Path("-")


def is_stdin(paths: tuple[Path, ...]) -> bool:
    """True for `-`, which goes with no other path."""
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("standard input does not go with other paths")
    return STDIN in paths


def options_of(paths: tuple[Path, ...], stdin_filename: Path | None, settings: dict[str, Any]) -> Options:
    """The options that hold for the paths; a wrong one is a usage error."""
    from tl2npu.config import ConfigError, common_directory, load_options

    places = [stdin_filename or Path.cwd()] if is_stdin(paths) else list(paths)
    try:
        return load_options(common_directory(places), settings)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def run_files(
    paths: tuple[Path, ...],
    task: Any,
    options: Options,
    sink: Sink,
    would_change_counts: bool,
    stdin_filename: Path | None,
    jobs: int,
    debug: bool,
) -> tuple[Finished, int]:
    """Take the files through ``task`` and into ``sink``; also the exit code."""
    from tl2npu.files import collect
    from tl2npu.project import Batch, run, run_text
    from tl2npu.sinks import exit_code, finish

    if is_stdin(paths):
        data = sys.stdin.buffer.read()
        name = "<stdin>" if stdin_filename is None else stdin_filename.as_posix()
        finished = finish([run_text(data, name, task, options, debug)], sink)
    else:
        batch = Batch(jobs, whole=sink.whole)
        with closing(run(collect(paths or (Path(),)), task, options, batch, debug)) as outcomes:
            finished = finish(outcomes, sink)
    return finished, exit_code(finished, task, would_change_counts)
