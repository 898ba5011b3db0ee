"""``tl2npu report``: what can be done with JSON reports."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tl2npu.cli.output import FORMATS, Wanted, say, write_file, write_report

if TYPE_CHECKING:
    from tl2npu.report.model import Report

_SOURCE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
_FORMAT = click.option(
    "--format", "style", type=click.Choice(FORMATS), help="What to write; else what the ending of -o names."
)
_OUTPUT = click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write there, not to standard output."
)
_COLOR = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)


@click.group()
def report() -> None:
    """Join or compare JSON reports, or show them in another format."""


@report.command()
@click.argument("reports", nargs=-1, required=True, type=_SOURCE)
@_FORMAT
@_OUTPUT
@_COLOR
def merge(reports: tuple[Path, ...], style: str | None, output: Path | None, color: str) -> None:
    """Join the JSON REPORTS of the shards of a run into one report.

    They must come from the same version of tl2npu with the same options, and no file may be in two of them.

    The exit code is that of the whole run: 0 clean, 1 findings, 2 if a file could not be used, if reports do not belong
    together or if one is missing.
    """
    from tl2npu.report.merge import merge as joined
    from tl2npu.report.merge import missing_shards
    from tl2npu.report.model import ReportError

    loaded = [(str(path), _load(path)) for path in reports]
    try:
        whole = joined(loaded)
    except ReportError as error:
        raise click.UsageError(str(error)) from None
    missing = missing_shards([item for _, item in loaded])
    if missing:
        whole = replace(whole, run=replace(whole.run, exit_code=2))
    _write(whole, style, output, color, "json")
    if missing:
        numbers = ", ".join(map(str, missing))
        click.echo(f"tl2npu: the reports of these shards are missing: {numbers}", err=True)
    sys.exit(whole.run.exit_code)


@report.command()
@click.argument("file", metavar="REPORT", type=_SOURCE)
@_FORMAT
@_OUTPUT
@_COLOR
def render(file: Path, style: str | None, output: Path | None, color: str) -> None:
    """Show a JSON report in another format; `-` is standard input."""
    _write(_load(file), style, output, color, "text")


@report.command()
@click.argument("old", type=_SOURCE)
@click.argument("new", type=_SOURCE)
def compare(old: Path, new: Path) -> None:
    """Compare an earlier JSON report of a repository with a later one: counts, and kernels with another outcome.

    Exit codes: 0 no kernel got worse, 1 one that was ready for an NPU is not any more, 2 a report could not be used.
    """
    from tl2npu.report.progress import compared

    text, worse = compared(_load(old), _load(new))
    click.echo(text, nl=False)
    sys.exit(int(worse))


@report.command()
@click.argument("file", metavar="REPORT", type=_SOURCE)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file: .svg, or .json.")
def badge(file: Path, output: Path | None) -> None:
    """Draw a badge of a JSON report: how many kernels are ready for an NPU."""
    from tl2npu.report.progress import badge as drawn

    say(drawn(_load(file), svg=output is None or output.suffix != ".json"), output, False)


@report.command()
def schema() -> None:
    """Print the JSON Schema of JSON reports."""
    from tl2npu.report.json import schema as text

    click.echo(text(), nl=False)


def _load(path: Path) -> Report:
    from tl2npu.report.load import load
    from tl2npu.report.model import ReportError

    try:
        data = sys.stdin.buffer.read() if path == Path("-") else path.read_bytes()
        return load(data, str(path))
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except ReportError as error:
        raise click.UsageError(str(error)) from None


def _write(report: Report, style: str | None, output: Path | None, color: str, default: str) -> None:
    from tl2npu.report.formats import format_of

    named = format_of(output) if output is not None else None
    style = style or named or default
    if output is None:
        write_report(report, Wanted(style, color=color))
    else:
        write_file(report, output, style)
