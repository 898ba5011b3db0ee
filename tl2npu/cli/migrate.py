"""``tl2npu migrate``."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tl2npu.cli.files import Request, request, run_files
from tl2npu.cli.groups import Grouped
from tl2npu.cli.options import PATHS, backend_of, backend_options, common_options
from tl2npu.cli.output import Wanted, condenser, patch_color, print_report, report_options, run_of

if TYPE_CHECKING:
    from tl2npu.project import Task
    from tl2npu.sinks import Sink


@click.command(cls=Grouped, short_help="Rewrite kernels to Developer mode, in files and directories.")
@PATHS
@click.option("--diff", is_flag=True, help="Print a patch for `git apply`; change no file.")
@click.option("--check", is_flag=True, help="Change no file; exit 1 if one would change.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file or directory instead.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["ascendc", "npuir", "tle-dsa"]),
    help="The language to write: Ascend C's Developer mode, AscendNPU IR's, or tle.dsa in Triton.  [default: ascendc]",
)
@click.option("--grid2d", is_flag=True, default=None, help="With --to npuir: keep the axes of two-axis grids.")
@click.option("--threads", type=click.Choice(["auto", "1", "2"]), help="Vector cores per tile.  [default: auto]")
@click.option(
    "--rows-per-block",
    type=click.IntRange(min=1),
    metavar="N",
    help="Rows of a block where a Triton kernel computes one, if they are computed apart.  [default: 1]",
)
@click.option(
    "--tuned",
    multiple=True,
    metavar="NAME=VALUE",
    help="A constant of Triton kernels that `autotune` chooses, where its configurations are not written out; several.",
)
@click.option(
    "--fp8",
    type=click.Choice(["refuse", "float16"]),
    help="Kernels with 8-bit floats: refuse them, or use float16 instead.  [default: refuse]",
)
@click.option(
    "--pass-config-policy",
    type=click.Choice(["needed", "four", "keep"]),
    help="Which pass_configs to write: those needed, the usual four, or none where a dict exists.  [default: needed]",
)
@click.option(
    "--fixed-core",
    is_flag=True,
    default=None,
    help="GPU kernels with more blocks than cores: start one block per core, which loops over its tasks.",
)
@click.option(
    "--keep-expert", is_flag=True, default=None, help="Leave kernels with hand-written pipelines as they are."
)
@click.option(
    "--unsafe", is_flag=True, default=None, help="Also write smaller tiles where the requested ones do not fit."
)
@click.option(
    "--self-check/--no-self-check",
    default=None,
    help="Evaluate old and new GPU kernels and refuse those that differ.  [default: on]",
)
@click.option(
    "--partial",
    is_flag=True,
    default=None,
    help="Add a TODO comment above each statement that a kernel was refused for.",
)
@click.option(
    "--notes",
    is_flag=True,
    default=None,
    help="Add a NOTE comment to migrated kernels where a person should look: warnings, assumptions, what costs speed.",
)
@click.option("--explain", is_flag=True, default=None, help="List every change with its reason.")
@click.option("--allow-dirty", is_flag=True, default=None, help="Also rewrite files with uncommitted changes.")
@click.option("--verify", is_flag=True, help="EXECUTE each file, old and migrated, and revert the kernels that differ.")
@click.option("--verify-timeout", type=float, metavar="SECONDS", help="CPU time of each kernel.  [default: 120]")
@backend_options
@click.option("--print-after", metavar="PASS", multiple=True, help="Print the kernel after this pass.")
@click.option("--print-all", is_flag=True, help="Print the kernel after every pass.")
@click.option("--bisect", is_flag=True, help="Name the pass since which the values of a kernel are wrong (TL970).")
@click.option("--watch", is_flag=True, help="Run again whenever a file is saved.")
@common_options
@report_options
def migrate(
    paths: tuple[Path, ...],
    diff: bool,
    check: bool,
    output: Path | None,
    verify: bool,
    print_after: tuple[str, ...],
    print_all: bool,
    bisect: bool,
    watch: bool,
    stdin_filename: Path | None,
    shard: str | None,
    debug: bool,
    wanted: Wanted,
    **settings: Any,
) -> None:
    """Rewrite the kernels in PATHS (default: the working directory) in place; `-` is standard input.

    --select and --ignore choose which diagnostics are reported. They do not choose what is migrated.

    Exit codes: 0 clean, 1 a kernel was refused, marked or not, or has errors (or, with --check, a file would change;
    or, with --verify, a kernel that was migrated could not be executed), 2 a file or an option could not be used.
    Without --verify the code of the files is never executed.
    """
    if output is not None and (diff or check):
        raise click.UsageError("-o does not go with --diff or --check")
    if output is not None and watch:
        raise click.UsageError("-o does not go with --watch")
    backend = backend_of(settings)
    if backend.name != "sim" and not verify:
        raise click.UsageError("--backend goes with --verify")
    asked = request(paths, stdin_filename, shard, wanted.quiet, debug, settings)
    asked = replace(asked, settings=replace(asked.settings, options=replace(asked.settings.options, backend=backend)))
    if print_after or print_all or bisect:  # by this process, each file once
        asked = replace(asked, debug=True, progress=False)
    if diff and sys.stdout.isatty():
        asked = replace(asked, progress=False)  # the patch and the bar would be mixed up
    patched = diff or (asked.is_stdin and not check and output is None)
    task: Task = "verify" if verify else "migrate"

    def once(asked: Request) -> int:
        sink = _sink(asked, diff, check, output, patch_color(wanted.color))
        condense = condenser(wanted, patched)
        if sink.whole:  # the result goes where -o or standard output says, and to no file beside
            condensed, condense = condense, lambda result: condensed(replace(result, beside=""))
        with _printing(print_after, print_all), _remembering(bisect):
            finished, code = run_files(asked, task, sink, condense, would_change_counts=check)
        run = run_of(task, asked, written=not (diff or check), exit_code=code)
        print_report(finished, run, wanted, explain=asked.settings.explain, patched=patched)
        return code

    if watch:
        from tl2npu.cli.watch import watch as keep_watching

        keep_watching(asked, once)
    sys.exit(once(asked))


def _printing(names: tuple[str, ...], everything: bool) -> AbstractContextManager[None]:
    if not names and not everything:
        return nullcontext()
    from tl2npu.printed import printing

    return printing(frozenset() if everything else frozenset(names), sys.stderr.write)


def _remembering(bisect: bool) -> AbstractContextManager[None]:
    if not bisect:
        return nullcontext()
    from tl2npu.printed import remembering

    return remembering()


def _sink(asked: Request, diff: bool, check: bool, output: Path | None, color: bool) -> Sink:
    from tl2npu.config import common_directory
    from tl2npu.sinks import Nowhere, ToFiles, ToPatch, ToPlace, ToStream

    if diff:
        return ToPatch(sys.stdout.buffer, color)
    if check:
        return Nowhere()
    if output is not None:
        several = len(asked.paths) != 1 or asked.paths[0].is_dir()
        base = common_directory([Path(os.path.abspath(path)) for path in asked.paths])  # noqa: PTH100
        if several and (output.is_file() or output.suffix in (".py", ".ipynb")):
            raise click.UsageError("several files need a directory as output")
        return ToPlace(output, several or output.is_dir(), base)
    return ToStream(sys.stdout.buffer) if asked.is_stdin else ToFiles(asked.settings.allow_dirty)
