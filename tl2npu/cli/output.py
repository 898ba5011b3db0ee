"""Where reports go: to a stream and to files, in which format, with colours or without."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tl2npu.cli.files import Finished, Request
    from tl2npu.report.model import Entry, Report, Run
    from tl2npu.results import FileResult

FORMATS = ["text", "json", "sarif", "github", "markdown", "html"]
_WIDEST = 120  # longer lines are hard to read, however wide a terminal is
_NARROWEST = 60


@dataclass(frozen=True)
class Wanted:
    """What the options ask for: a format for the stream, files with formats of their own, colour, silence."""

    style: str = "text"
    files: tuple[Path, ...] = ()
    color: str = "auto"
    quiet: bool = False
    summary: bool = False


class _Unwritable(click.ClickException):
    """A report that cannot be written: everything else is done by then, so the usage needs not be shown."""

    exit_code = 2


def report_options(command: Any) -> Any:
    """``--format``, ``--report``, ``--color`` and ``--quiet``, handed to the command as ``wanted``."""

    @wraps(command)
    def gathered(*, style: str, report: tuple[Path, ...], color: str, quiet: bool, summary: bool, **others: Any) -> Any:
        return command(wanted=Wanted(style, report, color, quiet, summary), **others)

    for option in reversed(
        [
            click.option("--format", "style", type=click.Choice(FORMATS), default="text", show_default=True),
            click.option(
                "--report",
                multiple=True,
                type=click.Path(path_type=Path, dir_okay=False),
                help="Also write the report there, in the format of the file's ending, else of --format. Repeatable.",
            ),
            click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True),
            click.option("--summary", is_flag=True, help="Print counts only: outcomes and the commonest codes."),
            click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
        ]
    ):
        gathered = option(gathered)
    return gathered


def run_of(task: Any, asked: Request, *, written: bool, exit_code: int) -> Run:
    """What reports say about how the results came about."""
    from dataclasses import asdict

    from tl2npu import __version__
    from tl2npu.report.model import Run

    plain = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(asked.settings.options).items()
    }
    return Run(__version__, task, written, exit_code, plain, asked.shard)


def condenser(wanted: Wanted, patched: bool = False) -> Callable[[FileResult], Entry]:
    """What a result is condensed to as soon as it is there, so that no texts pile up; ``patched``: see below."""
    from tl2npu.report.build import entry
    from tl2npu.report.formats import NEEDS_DIFFS

    styles = {wanted.style, *(style for _, style in _targets(wanted))}
    return partial(entry, diffs="all" if styles & NEEDS_DIFFS else "none" if patched else "findings")


def print_report(finished: Finished, run: Run, wanted: Wanted, *, explain: bool = False, patched: bool = False) -> None:
    """Give a run's report to the stream and the files that are wanted.

    ``explain``: the text lists every change. ``patched``: standard output has a patch or the text of a file already, so
    that the report goes to standard error.
    """
    from tl2npu.report.model import Report

    report = Report(run, finished.entries, finished.skipped)
    write_report(report, wanted, explain=explain, patched=patched)


def write_report(report: Report, wanted: Wanted, *, explain: bool = False, patched: bool = False) -> None:
    """The report in ``--format`` on the stream, unless a file has that format, and in the format of each file."""
    from tl2npu.report.escape import visible
    from tl2npu.report.formats import render
    from tl2npu.report.text import TextReport

    targets = _targets(wanted)
    stream = sys.stderr if patched else sys.stdout
    color = wants_color(stream, wanted.color)
    writer = TextReport(color=color, explain=explain, changes=not patched, width=width_of(stream))
    if wanted.quiet:
        for entry in report.entries:
            if entry.error is not None:
                click.echo(visible(f"{entry.path}: error: {entry.error}"), err=True)
        click.echo(writer.errors(report), nl=False, file=stream, color=color)
    elif wanted.style != "text" and wanted.style not in {style for _, style in targets}:
        click.echo(render(report, wanted.style), nl=False, file=stream)
    else:
        text = writer.short(report) if wanted.summary else writer.render(report)
        click.echo(text, nl=False, file=stream, color=color)
    if wanted.style == "github":
        _summarise(report)
    for path, style in targets:
        write_file(report, path, style, explain=explain)


def write_file(report: Report, path: Path, style: str, *, explain: bool = False) -> None:
    """The report in one format, to one file, without colours."""
    from tl2npu.report.formats import render
    from tl2npu.report.text import TextReport

    _write(path, TextReport(explain=explain).render(report) if style == "text" else render(report, style))


def say(text: str, report: Path | None, to_stderr: bool) -> None:
    """Write a text to its file, else to a stream."""
    if report is None:
        click.echo(text, nl=False, err=to_stderr, color=True if "\x1b" in text else None)
    else:
        _write(report, text)


def wants_color(stream: IO[str], color: str = "auto") -> bool:
    """As ``--color`` says; else NO_COLOR switches colours off, FORCE_COLOR on, and a terminal has them."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def patch_color(color: str) -> bool:
    """Is a patch coloured? Not by FORCE_COLOR where it goes to a file or to ``git apply``."""
    return color == "always" or (sys.stdout.isatty() and wants_color(sys.stdout, color))


def width_of(stream: IO[str]) -> int | None:
    """That of the terminal behind a stream, within reason; None where there is none."""
    if not stream.isatty():
        return None
    try:
        columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(stream.fileno()).columns
    except ValueError:
        columns = os.get_terminal_size(stream.fileno()).columns
    return min(_WIDEST, max(_NARROWEST, columns))


def _targets(wanted: Wanted) -> list[tuple[Path, str]]:
    from tl2npu.report.formats import format_of

    return [(path, format_of(path) or wanted.style) for path in wanted.files]


def _write(path: Path, text: str) -> None:
    """Write a file, whole or not at all; ``/dev/stdout`` and pipes as they are."""
    from tl2npu.source.inplace import WriteError, write_file

    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            write_file(path, data)
    except OSError as error:
        raise _Unwritable(f"cannot write {path}: {error.strerror or error}") from None
    except WriteError as error:
        raise _Unwritable(str(error)) from None


def _summarise(report: Report) -> None:
    """In a step of GitHub Actions: add the tables to the page of the run."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    from tl2npu.report.github import step_summary

    try:
        with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(step_summary(report))
    except OSError as error:
        click.echo(f"tl2npu: cannot write the step summary: {error.strerror}", err=True)
