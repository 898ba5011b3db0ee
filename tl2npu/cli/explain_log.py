"""``tl2npu explain-log``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, cast

import click


@click.command("explain-log", short_help="Explain the errors in a log.")
@click.argument("log", metavar="FILE", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="Text or one JSON object.")
def explain_log(log: Path, style: str) -> None:
    """Explain the errors in a log: FILE, every *.log of a directory such as plog/, or - for standard input.

    Known are messages of TileLang-Ascend, BiSheng, triton-ascend, torch_npu, CANN's runtime (plog) and msSanitizer.
    Causes come first, then symptoms, fallout of earlier faults, and envelopes.

    Exit codes: 0 something is known, 1 nothing is, 2 the file cannot be read.
    """
    from tl2npu.errors.log import explain_stream
    from tl2npu.report.errors import as_json, logs_as_json, text

    of_directory = log.is_dir()
    logs = sorted(log.rglob("*.log")) if of_directory else [log]
    if not logs:
        raise click.UsageError(f"there is no *.log in {log}")
    found = {}
    for path in logs:
        try:
            with click.open_file(str(path), "rb") as stream:
                found[str(path)] = explain_stream(cast("BinaryIO", stream))
        except OSError as error:
            raise click.UsageError(f"{path}: {error.strerror}") from None
    known = {name: explained for name, explained in found.items() if explained.found}
    if style == "json" and of_directory:
        click.echo(logs_as_json(found), nl=False)
    elif style == "json":
        click.echo(as_json(found[str(log)]), nl=False)
    else:
        for name, explained in known.items():
            click.echo((f"{name}:\n" if of_directory else "") + text(explained, log=True), nl=False)
        if not known:
            click.echo("nothing in the log is known; `tl2npu rule --error TEXT` looks for single words", err=True)
    sys.exit(0 if known else 1)
