"""``tl2npu explain-log``."""

from __future__ import annotations

import sys
from typing import BinaryIO

import click


@click.command("explain-log", short_help="Explain the errors in a log.")
@click.argument("log", metavar="FILE", type=click.File("rb"))
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="Text or one JSON object.")
def explain_log(log: BinaryIO, style: str) -> None:
    """Explain the errors in a log: FILE, or - for standard input.

    Known are messages of TileLang-Ascend, BiSheng, triton-ascend, torch_npu, CANN's runtime (plog) and msSanitizer.
    Causes come first, then symptoms, fallout of earlier faults, and envelopes.

    Exit codes: 0 something is known, 1 nothing is, 2 the file cannot be read.
    """
    from tl2npu.errors.log import explain_stream
    from tl2npu.report.errors import as_json, text

    explained = explain_stream(log)
    if style == "json":
        click.echo(as_json(explained), nl=False)
    elif explained.found:
        click.echo(text(explained, log=True), nl=False)
    else:
        click.echo("nothing in the log is known; `tl2npu rule --error TEXT` looks for single words", err=True)
    sys.exit(0 if explained.found else 1)
