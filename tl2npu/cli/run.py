"""``tl2npu run``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from tl2npu.cli.options import ARITHMETIC, DEVICE, REPORT, STYLE, given, plain_style
from tl2npu.cli.output import say


@click.command(
    short_help="EXECUTE a script with its kernels on the simulator.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@ARITHMETIC
@click.option(
    "--reading",
    type=click.Choice(["actual", "ideal"]),
    default="actual",
    show_default=True,
    help="Developer mode by the rules of the compiler, or as written.",
)
@click.option(
    "--hazards",
    type=click.Choice(["off", "warn", "fatal"]),
    default="warn",
    show_default=True,
    help="Report races, reads of unwritten memory, and flags that do not pair.",
)
@DEVICE
@STYLE
@REPORT
def run(script: Path, args: tuple[str, ...], style: str, report: Path | None, **settings: Any) -> None:
    """EXECUTE a script, or the code cells of a notebook, with the kernels on the simulator: no NPU, GPU or TileLang.

    Options go before SCRIPT; everything after it is passed to the script. Launches and hazards are reported on standard
    error, or in the file of --report.

    The exit code is the script's, or 1 if hazards are fatal and one was found.
    """
    from tl2npu.verify.threads import one_thread

    os.environ.update(one_thread())  # before NumPy is loaded
    from tl2npu.report import run as reports
    from tl2npu.source.text import SourceError
    from tl2npu.verify.script import run_file
    from tl2npu.verify.settings import Settings

    style = plain_style(style, report)
    own = {name for param in click.get_current_context().command.params for name in param.opts if name.startswith("--")}
    for name in dict.fromkeys(arg.partition("=")[0] for arg in args if arg.partition("=")[0] in own):
        click.echo(f"note: {name} stands behind the script, which gets it; options of `run` go in front", err=True)
    try:
        result = run_file(script, Settings(**given(settings), script_args=args))
    except SourceError as error:
        click.echo(f"error: {script}: {error}", err=True)
        sys.exit(2)
    say(reports.as_json(result) if style == "json" else reports.text(result), report, to_stderr=True)
    sys.exit(result.exit_code)
