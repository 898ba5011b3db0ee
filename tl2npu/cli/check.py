"""``tl2npu check``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tl2npu.cli.files import Request, request, run_files
from tl2npu.cli.groups import Grouped
from tl2npu.cli.options import PATHS, common_options, plain_style
from tl2npu.cli.output import Wanted, condenser, print_report, report_options, run_of, say

if TYPE_CHECKING:
    from tl2npu.options import CodeGenerator


@click.command(cls=Grouped, short_help="Report what the compiler rejects or the device computes wrongly.")
@PATHS
@click.option(
    "--target",
    "generator",
    type=click.Choice(["ascendc", "pto"]),
    help="Check for this code generator.  [default: as the kernel says]",
)
@click.option("--compare", metavar="DEVICES", help="Compare devices instead, kernel by kernel: A2,A3,A5. Text or JSON.")
@common_options
@report_options
def check(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    shard: str | None,
    debug: bool,
    wanted: Wanted,
    generator: CodeGenerator | None,
    compare: str | None,
    **settings: Any,
) -> None:
    """Check the kernels for an NPU in PATHS, in Developer or Expert mode. No file is changed.

    Exit codes: 0 clean, 1 errors found (--compare: something differs), 2 a file or an option could not be used.
    """
    from tl2npu.options import Backend
    from tl2npu.sinks import Nowhere

    asked = request(paths, stdin_filename, shard, wanted.quiet, debug, settings)
    options = replace(asked.settings.options, backend=Backend(target=generator))
    asked = replace(asked, settings=replace(asked.settings, options=options))
    if compare is not None:
        sys.exit(_compare(compare, asked, wanted))
    finished, code = run_files(asked, "check", Nowhere(), condenser(wanted), would_change_counts=False)
    print_report(finished, run_of("check", asked, written=False, exit_code=code), wanted)
    sys.exit(code)


def _compare(names: str, asked: Request, wanted: Wanted) -> int:
    """Check for each of the devices, and say what differs. The exit code: 1 where something does."""
    from tl2npu.devices import DEVICES
    from tl2npu.report.compare import as_json, as_text, compare
    from tl2npu.sinks import Nowhere

    devices = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in devices if name not in DEVICES]
    if unknown:
        raise click.UsageError(f"--compare: no device {unknown[0]!r}; known are {', '.join(DEVICES)}")
    if len(devices) < 2:
        raise click.UsageError("--compare needs two devices or more: --compare A2,A5")
    if asked.is_stdin:
        raise click.UsageError("--compare does not go with standard input")
    if wanted.style not in ("text", "json"):
        raise click.UsageError("--compare is printed as text or JSON")
    styles = [plain_style("text", path) for path in wanted.files]
    entries, worst = {}, 0
    for device in devices:
        options = replace(asked.settings.options, device=device)
        one = replace(asked, settings=replace(asked.settings, options=options))
        finished, code = run_files(one, "check", Nowhere(), condenser(wanted), would_change_counts=False)
        entries[device], worst = finished.entries, max(worst, code)
    found = compare(entries)
    say((as_json if wanted.style == "json" else as_text)(found), None, False)
    for path, style in zip(wanted.files, styles, strict=True):
        say((as_json if style == "json" else as_text)(found), path, False)
    return 2 if worst > 1 or found.failed else int(bool(found.differing))
