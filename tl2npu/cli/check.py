"""``tl2npu check``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tl2npu.cli.files import request, run_files
from tl2npu.cli.options import PATHS, common_options
from tl2npu.cli.output import Wanted, condenser, print_report, report_options, run_of


@click.command(short_help="Say what is wrong with Developer-mode kernels.")
@PATHS
@common_options
@report_options
def check(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    shard: str | None,
    debug: bool,
    wanted: Wanted,
    **settings: Any,
) -> None:
    """Say what is wrong with the Developer-mode kernels in PATHS; nothing is changed.

    Exit codes: 0 clean, 1 errors found, 2 a file or an option could not be used.
    """
    from tl2npu.sinks import Nowhere

    asked = request(paths, stdin_filename, shard, wanted.quiet, debug, settings)
    finished, code = run_files(asked, "check", Nowhere(), condenser(wanted), would_change_counts=False)
    print_report(finished, run_of("check", asked, written=False, exit_code=code), wanted)
    sys.exit(code)
