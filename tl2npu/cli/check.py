"""``tl2npu check``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tl2npu.cli.files import request, run_files
from tl2npu.cli.options import PATHS, common_options
from tl2npu.cli.output import Wanted, condenser, print_report, report_options, run_of

if TYPE_CHECKING:
    from tl2npu.options import CodeGenerator


@click.command(short_help="Say what is wrong with kernels for an NPU.")
@PATHS
@click.option(
    "--target",
    "generator",
    type=click.Choice(["ascendc", "pto"]),
    help="Judge for this code generator.  [default: as the kernel says]",
)
@common_options
@report_options
def check(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    shard: str | None,
    debug: bool,
    wanted: Wanted,
    generator: CodeGenerator | None,
    **settings: Any,
) -> None:
    """Say what is wrong with the kernels for an NPU in PATHS, in Developer or Expert mode; nothing is changed.

    Exit codes: 0 clean, 1 errors found, 2 a file or an option could not be used.
    """
    from tl2npu.options import Backend
    from tl2npu.sinks import Nowhere

    asked = request(paths, stdin_filename, shard, wanted.quiet, debug, settings)
    options = replace(asked.settings.options, backend=Backend(target=generator))
    asked = replace(asked, settings=replace(asked.settings, options=options))
    finished, code = run_files(asked, "check", Nowhere(), condenser(wanted), would_change_counts=False)
    print_report(finished, run_of("check", asked, written=False, exit_code=code), wanted)
    sys.exit(code)
