"""Where reports go: a stream or a file, with colours or without."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tl2npu.sinks import Finished


def print_report(
    finished: Finished,
    task: Any,
    style: str,
    report: Path | None,
    quiet: bool,
    explain: bool,
    written: bool,
    to_stderr: bool,
) -> None:
    """The report: in the format asked for to its file or stream, and as text to the terminal beside a report file."""
    from tl2npu.report import json
    from tl2npu.report.text import TextReport

    def text(color: bool) -> str:
        report = TextReport(task, color=color, explain=explain, written=written)
        return report.render(finished.files, finished.skipped)

    if report is not None:
        content = json.render(finished.files, finished.skipped) if style == "json" else text(color=False)
        try:
            report.write_text(content, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"cannot write {report}: {error.strerror}") from None
    stream = sys.stderr if to_stderr else sys.stdout
    if quiet:
        for file in finished.files:
            if file.error is not None:
                click.echo(f"{file.path}: error: {file.error}", err=True)
    elif style == "json" and report is None:
        click.echo(json.render(finished.files, finished.skipped), nl=False, file=stream)
    else:
        color = wants_color(stream)
        click.echo(text(color), nl=False, file=stream, color=color)


def say(text: str, report: Path | None, to_stderr: bool) -> None:
    """Write a report to its file, else to a stream."""
    if report is None:
        click.echo(text, nl=False, err=to_stderr, color=True if "\x1b" in text else None)
        return
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {report}: {error.strerror}") from None


def wants_color(stream: IO[str]) -> bool:
    """NO_COLOR switches colours off, FORCE_COLOR on, else a terminal has them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()
