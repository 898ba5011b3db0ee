"""Options and arguments that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tl2npu.options import Backend, BackendName

PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))


DEVICE = click.option(
    "--device", type=click.Choice(["A2", "A3", "A5"]), help="The device whose memory sizes count.  [default: A2]"
)
ARITHMETIC = click.option(
    "--arithmetic",
    type=click.Choice(["precise", "algebraic", "structure"]),
    default="precise",
    show_default=True,
    help="Values rounded as the element types are; stand-ins that only say whether two kernels agree; or none.",
)
KERNEL = click.option(
    "--kernel", "kernels", multiple=True, metavar="NAME", help="Only this kernel, also FILE::NAME. Repeatable."
)
CALLS = click.option(
    "--args",
    "calls",
    multiple=True,
    metavar="CALL",
    help="Use this call: 'matmul(M=256, N=256, block=64)'. Repeatable.",
)
SIZE = click.option(
    "--size", "--symbol", "symbols", multiple=True, metavar="NAME=N", help="The value of a symbolic size. Repeatable."
)
STYLE = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
REPORT = click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the report there: .json, or text."
)


def plain_style(style: str, report: Path | None) -> str:
    """``text`` or ``json``: what the ending of ``--report`` names, else ``style``. Other formats are a usage error."""
    from tl2npu.report.formats import format_of

    named = None if report is None else format_of(report)
    if named not in (None, "text", "json"):
        raise click.UsageError(f"--report {report}: this command writes text or .json, not {named}")
    return named or style


def common_options(command: Any) -> Any:
    """The options of every command that looks at files."""
    for option in reversed(
        [
            click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of standard input."),
            KERNEL,
            click.option("--device", metavar="NAME", help="The device that the kernel is for (see `devices`)."),
            click.option("--ascend-version", metavar="YYYY-MM", help="The version of the Ascend compiler."),
            click.option("--select", multiple=True, metavar="CODES", help="Report only these diagnostics."),
            click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these diagnostics."),
            click.option(
                "--baseline",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Report only findings that are not in FILE.",
            ),
            click.option(
                "--write-baseline",
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="Write all findings to FILE, for --baseline; exit 0.",
            ),
            click.option("--exit-zero", is_flag=True, help="Exit 0 even if there are findings."),
            click.option(
                "--include",
                multiple=True,
                metavar="PATTERN",
                help="Files to read in directories.  [default: *.py, *.ipynb]",
            ),
            click.option("--exclude", multiple=True, metavar="PATTERN", help="Files to skip in directories."),
            click.option(
                "--force-exclude", is_flag=True, default=None, help="Skip them even if named on the command line."
            ),
            click.option("--shard", metavar="I/N", help="Process only the I-th of N equal parts of the files."),
            click.option("-j", "--jobs", type=click.IntRange(min=0), help="Number of processes.  [default: automatic]"),
            click.option("--timeout", type=float, metavar="SECONDS", help="CPU time for each file.  [default: 600]"),
            click.option("--cache/--no-cache", default=None, help="Reuse the results of earlier runs.  [default: on]"),
            click.option(
                "--cache-dir", type=click.Path(path_type=Path), help="The cache directory.  [default: .tl2npu_cache]"
            ),
            click.option("--debug", is_flag=True, help="Show the traceback of an internal error."),
        ]
    ):
        command = option(command)
    return command


def backend_options(command: Any) -> Any:
    """The options that say what executes or compiles kernels; :func:`backend_of` reads them."""
    for option in reversed(
        [
            click.option(
                "--backend",
                type=click.Choice(["sim", "compile", "npu", "camodel"]),
                help="This simulator, the installed TileLang-Ascend, an NPU, or CANN's simulator.  [default: sim]",
            ),
            click.option(
                "--target",
                "generator",
                type=click.Choice(["ascendc", "pto", "npuir"]),
                help="The code generator that compiles; --to is the language to write.  [default: as the kernel says]",
            ),
            click.option(
                "--platform",
                type=click.Choice(["A2", "A3", "A5"]),
                help="The platform to compile for.  [default: as the kernel says]",
            ),
            click.option("--python", metavar="PATH", help="The interpreter with TileLang-Ascend.  [default: this one]"),
            click.option("--device-id", type=click.IntRange(min=0), metavar="N", help="The NPU, as npu-smi counts."),
            click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Runs of a launch.  [default: 3]"),
            click.option(
                "--sanitize",
                type=click.Choice(["memcheck", "racecheck", "initcheck", "synccheck"]),
                help="Run the new kernels under msSanitizer as well.",
            ),
            click.option("--time", is_flag=True, help="Measure with msprof op as well."),
            click.option(
                "--max-elements",
                type=click.IntRange(min=1),
                metavar="N",
                help="Skip launches with more elements; camodel is slow.  [default: 262144]",
            ),
        ]
    ):
        command = option(command)
    return command


def backend_of(settings: dict[str, Any]) -> Backend:
    """Take the options of :func:`backend_options` out of ``settings``. What does not go together is a usage error."""
    from tl2npu.options import Backend

    name: BackendName = settings.pop("backend") or "sim"
    target = settings.pop("generator")
    compiles = {key: settings.pop(key) for key in ("platform", "python")}
    runs = {key: settings.pop(key) for key in ("device_id", "repeat", "sanitize", "time", "max_elements")}
    chosen = Backend(name, target, **compiles, **{key: value for key, value in runs.items() if value is not None})
    if name == "sim" and (target or any(compiles.values())):
        raise click.UsageError("--target, --platform and --python go with --backend compile, npu or camodel")
    _goes_with("npu", name, runs, ("device_id", "sanitize", "time"))
    _goes_with("camodel", name, runs, ("max_elements",))
    if runs["repeat"] and name not in ("npu", "camodel"):
        raise click.UsageError("--repeat goes with --backend npu or camodel")
    if target == "npuir" and name != "compile":
        raise click.UsageError("--target npuir goes with --backend compile")
    return chosen


def _goes_with(backend: str, name: str, given: dict[str, Any], options: tuple[str, ...]) -> None:
    for option in options:
        if name != backend and given[option] not in (None, False):
            raise click.UsageError(f"--{option.replace('_', '-')} goes with --backend {backend}")


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that the command line has; the others keep their defaults."""
    return {name: value for name, value in settings.items() if value is not None}
