"""``tl2npu verify``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tl2npu.cli.files import settings_of as settings_at
from tl2npu.cli.groups import Grouped
from tl2npu.cli.options import CALLS, DEVICE, KERNEL, REPORT, SIZE, STYLE, backend_of, backend_options, plain_style
from tl2npu.cli.output import say, wants_color, width_of


class _New(click.Path):
    """A file, not an argument of the script behind ``--``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).startswith("-"):
            self.fail(f"{value} is no file; arguments of the scripts are given as `--script-args '{value} ...'`", param)
        return super().convert(value, param, ctx)


@click.command(cls=Grouped, short_help="EXECUTE old and new on the same inputs and compare.")
@click.argument("old", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("new", type=_New(path_type=Path, exists=True, dir_okay=False), required=False)
@backend_options
@CALLS
@click.option(
    "--case", type=click.Path(path_type=Path, dir_okay=False), help="Run `factory` and `args` of a TOML file."
)
@KERNEL
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random inputs of calls.")
@click.option(
    "--input", "inputs", multiple=True, metavar="NAME=EXPR", help="Values of a tensor: an expression of np, rng, shape."
)
@SIZE
@click.option("--shrink", is_flag=True, help="Use smaller sizes than the call; several tiles remain.")
@click.option("--script-args", metavar="TEXT", help="Arguments of the scripts, as a shell would split them.")
@click.option("--timeout", type=float, metavar="SECONDS", help="CPU time for each kernel.  [default: 120]")
@click.option("--rtol", type=float, help="Relative tolerance.  [default: by element type]")
@click.option("--atol", type=float, help="Absolute tolerance.  [default: by magnitude]")
@click.option(
    "--threads", type=click.Choice(["auto", "1", "2"]), help="For the migration, without NEW: vector cores per tile."
)
@click.option("--fixed-core", is_flag=True, default=None, help="For the migration, as in `migrate`.")
@click.option("--rows-per-block", type=click.IntRange(min=1), metavar="N", help="For the migration, as in `migrate`.")
@click.option(
    "--fp8", type=click.Choice(["refuse", "float16"]), help="For the migration; float16 also stands for fp8 in NEW."
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["ascendc", "npuir", "tle-dsa"]),
    help="For the migration: the language to write.",
)
@click.option(
    "--arithmetic",
    type=click.Choice(["precise", "algebraic"]),
    default="precise",
    show_default=True,
    help="Compare numbers within tolerances, or elements of a ring bit for bit.",
)
@click.option(
    "--check/--no-check", "check_new", default=True, help="Errors of `tl2npu check` fail new kernels.  [default: yes]"
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="TRACE",
    help="Compare with the launches of a trace (see `tl2npu record`), in place of running OLD.",
)
@click.option(
    "--standard",
    type=click.Choice(["tl2npu", "cann-mixed", "cann-mere", "msprobe"]),
    default="tl2npu",
    show_default=True,
    help="The criteria for agreement.",
)
@click.option(
    "--tuned",
    multiple=True,
    metavar="NAME=VALUE",
    help="A constant of Triton kernels that `autotune` chooses, where its configurations are not written out; several.",
)
@click.option("--golden", type=click.Choice(["fp64"]), help="Measure old and new against OLD in float64.")
@click.option(
    "--csv",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the errors as a table, as msprobe does.",
)
@DEVICE
@STYLE
@REPORT
def verify(
    old: Path,
    new: Path | None,
    table: Path | None,
    threads: str | None,
    fixed_core: bool | None,
    rows_per_block: int | None,
    tuned: tuple[str, ...],
    fp8: str | None,
    target: str | None,
    kernels: tuple[str, ...],
    style: str,
    report: Path | None,
    **given: Any,
) -> None:
    """EXECUTE two files, launch by launch on the same inputs, and compare the results.

    Of a notebook the code cells are executed. Without NEW the migration of OLD is verified. The launches are those of
    OLD, run as a script, or the calls of --args and --case with drawn inputs, or those of --reference: then the only
    file is NEW, unless it is the one that was recorded.

    Exit codes: 0 verified, 1 not, 2 a file or an option could not be used.
    """
    from tl2npu.report import verify as reports
    from tl2npu.verify.command import exit_code, verify_files
    from tl2npu.verify.given import settings_of
    from tl2npu.verify.settings import UsageError

    style = plain_style(style, report)
    backend = backend_of(given)
    chosen = {
        "threads": threads,
        "fixed_core": fixed_core,
        "rows_per_block": rows_per_block,
        "tuned": tuned,
        "fp8": fp8,
        "target": target,
        "device": given["device"],
    }
    options = settings_at([old], chosen).options
    options = replace(options, backend=backend, kernels=kernels)
    try:
        settings = settings_of({**given, "check": given["check_new"], "table": table}, options)
        result = verify_files(old, new, settings, options)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    if table is not None:
        from tl2npu.report import csv

        table.write_text(csv.table(result), encoding="utf-8")
    if report is not None:
        say(reports.as_json(result) if style == "json" else reports.text(result), report, to_stderr=False)
    shown = style == "text" or report is not None
    color, width = shown and wants_color(sys.stdout), width_of(sys.stdout) if shown else None
    say(reports.text(result, color, width) if shown else reports.as_json(result), None, to_stderr=False)
    sys.exit(exit_code(result))
