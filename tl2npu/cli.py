"""The command line. Commands parse options, call one function and print its result.

Everything but click is imported inside of commands: ``tl2npu --help`` must not wait for libcst or black.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tl2npu import __version__

if TYPE_CHECKING:
    from tl2npu.options import Options
    from tl2npu.sinks import Finished, Sink

_PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
_STDIN = Path("-")


def _common_options(command: Any) -> Any:
    """The options of every command that looks at files."""
    for option in reversed(
        [
            click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of standard input."),
            click.option("--device", metavar="NAME", help="The device that the kernel is for (see `devices`)."),
            click.option("--ascend-version", metavar="YYYY-MM", help="The version of the Ascend compiler."),
            click.option("--select", multiple=True, metavar="CODES", help="Report only these diagnostics."),
            click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these diagnostics."),
            click.option("-j", "--jobs", type=click.IntRange(min=0), default=0, help="Processes; 0: as many as pay."),
            click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True),
            click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the report there."),
            click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
            click.option("--debug", is_flag=True, help="Show the traceback of an internal error."),
        ]
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tl2npu")
def cli() -> None:
    """Migrate TileLang kernels to Ascend Developer mode."""


@cli.command()
@_PATHS
@click.option("--diff", is_flag=True, help="Print a patch for `git apply`; change no file.")
@click.option("--check", is_flag=True, help="Change no file; exit 1 if one would change.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file or directory instead.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["ascendc", "npuir"]),
    help="The language to write: Ascend C's Developer mode, or AscendNPU IR's.  [default: ascendc]",
)
@click.option("--grid2d", is_flag=True, default=None, help="With --to npuir: a grid of two axes keeps them.")
@click.option("--threads", type=click.Choice(["auto", "1", "2"]), help="Vector cores per tile.  [default: auto]")
@click.option(
    "--pass-config-policy",
    type=click.Choice(["needed", "four", "keep"]),
    help="Which pass_configs to write: those needed, the usual four, or none where a dict exists.  [default: needed]",
)
@click.option(
    "--keep-expert", is_flag=True, default=None, help="Leave kernels with hand-written mma pipelines as they are."
)
@click.option("--unsafe", is_flag=True, default=None, help="Also write smaller tiles where those asked for do not fit.")
@click.option(
    "--partial", is_flag=True, default=None, help="Mark in refused kernels, by comments, where a person must go on."
)
@click.option("--explain", is_flag=True, help="List every change with its reason.")
@click.option("--allow-dirty", is_flag=True, help="Also rewrite files with uncommitted changes.")
@click.option(
    "--verify", is_flag=True, help="EXECUTE each file, old and migrated, and take back the kernels that fail."
)
@click.option("--verify-timeout", type=float, metavar="SECONDS", help="Time for each executed kernel.  [default: 120]")
@_common_options
def migrate(
    paths: tuple[Path, ...],
    diff: bool,
    check: bool,
    output: Path | None,
    explain: bool,
    allow_dirty: bool,
    verify: bool,
    stdin_filename: Path | None,
    jobs: int,
    style: str,
    report: Path | None,
    quiet: bool,
    debug: bool,
    **settings: Any,
) -> None:
    """Rewrite the kernels in PATHS (default: the working directory) in place; `-` is standard input.

    --select and --ignore choose which diagnostics are reported. They do not choose what is migrated.

    Exit codes: 0 clean, 1 a kernel was refused, marked or not (or, with --check, a file would change; or, with
    --verify, a kernel that was migrated could not be executed), 2 a file or an option could not be used. Without
    --verify the code of the files is never executed.
    """
    from tl2npu.sinks import Nowhere, ToFiles, ToPatch, ToPlace, ToStream

    stdout = sys.stdout.buffer
    standard_input = _is_stdin(paths)
    sink: Sink
    if output is not None and (diff or check):
        raise click.UsageError("-o does not go with --diff or --check")
    if diff:
        sink = ToPatch(stdout)
    elif check:
        sink = Nowhere()
    elif output is not None:
        several = len(paths) != 1 or paths[0].is_dir()
        if several and (output.is_file() or output.suffix == ".py"):
            raise click.UsageError("several files need a directory as output")
        sink = ToPlace(output, several or output.is_dir())
    else:
        sink = ToStream(stdout) if standard_input else ToFiles(allow_dirty)
    options = _options(paths, stdin_filename, settings)
    task = "verify" if verify else "migrate"
    finished, code = _run(paths, task, options, sink, check, stdin_filename, jobs, debug)
    taken = diff or (standard_input and not check and output is None)
    written = not (diff or check)
    _print(finished, "migrate", style, report, quiet, explain, written, to_stderr=taken)
    sys.exit(code)


@cli.command()
@_PATHS
@_common_options
def check(
    paths: tuple[Path, ...],
    stdin_filename: Path | None,
    jobs: int,
    style: str,
    report: Path | None,
    quiet: bool,
    debug: bool,
    **settings: Any,
) -> None:
    """Say what is wrong with the Developer-mode kernels in PATHS; nothing is changed.

    Exit codes: 0 clean, 1 errors found, 2 a file or an option could not be used.
    """
    from tl2npu.sinks import Nowhere

    options = _options(paths, stdin_filename, settings)
    finished, code = _run(paths, "check", options, Nowhere(), False, stdin_filename, jobs, debug)
    _print(finished, "check", style, report, quiet, explain=False, written=False, to_stderr=False)
    sys.exit(code)


_DEVICE = click.option("--device", type=click.Choice(["A2", "A3", "A5"]), help="Whose memories.  [default: A2]")
_ARITHMETIC = click.option(
    "--arithmetic",
    type=click.Choice(["precise", "algebraic", "structure"]),
    default="precise",
    show_default=True,
    help="Rounded like the element types, exact in a ring, or control flow and copies only.",
)
_STYLE = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
_REPORT = click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the report there.")


@cli.command(context_settings={"allow_interspersed_args": False})
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@_ARITHMETIC
@click.option(
    "--reading",
    type=click.Choice(["actual", "ideal"]),
    default="actual",
    show_default=True,
    help="Developer mode as the compiler reads it, or as its author means it.",
)
@click.option(
    "--hazards",
    type=click.Choice(["off", "warn", "fatal"]),
    default="warn",
    show_default=True,
    help="Look for races, reads of unwritten memory, flags that do not pair.",
)
@_DEVICE
@_STYLE
@_REPORT
def run(script: Path, args: tuple[str, ...], style: str, report: Path | None, **settings: Any) -> None:
    """EXECUTE a script with its kernels on the simulator: no NPU, no GPU, no TileLang.

    Options stand before SCRIPT, what follows are its own arguments. Its output goes where it goes; what is said about
    launches and hazards goes to standard error, or to the file of --report.

    The exit code is the script's, or 1 if hazards are fatal and there was one.
    """
    from tl2npu.verify.threads import one_thread

    os.environ.update(one_thread())  # before NumPy is loaded
    from tl2npu.report import run as reports
    from tl2npu.verify.script import run_file
    from tl2npu.verify.settings import Settings

    result = run_file(script, Settings(**_given(settings), script_args=args))
    _say(reports.as_json(result) if style == "json" else reports.text(result), report, to_stderr=True)
    sys.exit(result.exit_code)


@cli.command()
@click.argument("old", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("new", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option(
    "--backend", type=click.Choice(["sim", "pto", "npu"]), default="sim", show_default=True, help="What runs."
)
@click.option("--args", "calls", multiple=True, metavar="CALL", help="Run this call: 'matmul(M=256, N=256, block=64)'.")
@click.option(
    "--case", type=click.Path(path_type=Path, dir_okay=False), help="Run `factory` and `args` of a TOML file."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the inputs of calls.")
@click.option(
    "--input", "inputs", multiple=True, metavar="NAME=EXPR", help="A tensor: an expression of np, rng, shape."
)
@click.option("--symbol", "symbols", multiple=True, metavar="NAME=N", help="A symbolic extent.  [default: 256]")
@click.option("--shrink", is_flag=True, help="Make the extents of calls smaller; several tiles remain.")
@click.option("--script-args", metavar="TEXT", help="Arguments of the scripts, as a shell would split them.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Time for each kernel.  [default: 120]")
@click.option("--rtol", type=float, help="Relative tolerance.  [default: by element type]")
@click.option("--atol", type=float, help="Absolute tolerance.  [default: by magnitude]")
@click.option("--threads", type=click.Choice(["auto", "1", "2"]), help="Of the migration, where there is no NEW.")
@click.option("--to", "target", type=click.Choice(["ascendc", "npuir"]), help="Of the migration: what it writes.")
@click.option(
    "--arithmetic",
    type=click.Choice(["precise", "algebraic"]),
    default="precise",
    show_default=True,
    help="Compare numbers within tolerances, or elements of a ring bit for bit.",
)
@_DEVICE
@_STYLE
@_REPORT
def verify(
    old: Path,
    new: Path | None,
    threads: str | None,
    target: str | None,
    style: str,
    report: Path | None,
    **given: Any,
) -> None:
    """EXECUTE two files, launch by launch on the same inputs, and compare the results.

    Without NEW the migration of OLD is verified. The launches are those of OLD, run as a script, or the calls of --args
    and --case with drawn inputs.

    Exit codes: 0 verified, 1 not, 2 a file or an option could not be used.
    """
    from tl2npu.report import verify as reports
    from tl2npu.verify.command import exit_code, verify_files
    from tl2npu.verify.settings import UsageError, settings_of

    options = _options((old,), None, {"threads": threads, "target": target, "device": given["device"]})
    try:
        result = verify_files(old, new, settings_of(given, options), options)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    color = style == "text" and report is None and _wants_color(sys.stdout)
    _say(reports.as_json(result) if style == "json" else reports.text(result, color), report, to_stderr=False)
    sys.exit(exit_code(result))


@cli.command()
@click.argument("code")
def rule(code: str) -> None:
    """Print the documentation of a rule, given by its code or its name."""
    from difflib import get_close_matches

    from tl2npu.rules import load_rules

    rules = load_rules()
    found = rules.get(code.upper()) or next((page for page in rules.values() if page.name == code), None)
    if found is None:
        close = get_close_matches(code, [*rules, *(page.name for page in rules.values())], n=1)
        raise click.UsageError(f"no rule {code!r}" + (f", did you mean {close[0]!r}?" if close else ""))
    click.echo(f"{found.code} {found.name} ({found.group})\n\n{found.text.strip()}")


@cli.command()
def rules() -> None:
    """List all rules."""
    from tl2npu.rules import load_rules

    for page in load_rules().values():
        click.echo(f"{page.code}  {page.name}  {page.summary}")


@cli.command()
def devices() -> None:
    """Print the capacity table: what memory planning allows per kernel, in bytes."""
    from tl2npu.report.devices import render

    click.echo(render(), nl=False)


def main() -> None:
    """The console script: no traceback reaches the user without ``--debug``."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="tl2npu")
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        click.echo(f"tl2npu: internal error: {type(error).__name__}: {error}", err=True)
        sys.exit(2)


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that the command line has; the others keep their defaults."""
    return {name: value for name, value in settings.items() if value is not None}


def _say(text: str, report: Path | None, to_stderr: bool) -> None:
    """Write a report to its file, else to a stream."""
    if report is None:
        click.echo(text, nl=False, err=to_stderr, color=True if "\x1b" in text else None)
        return
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {report}: {error.strerror}") from None


def _is_stdin(paths: tuple[Path, ...]) -> bool:
    if _STDIN in paths and len(paths) > 1:
        raise click.UsageError("standard input does not go with other paths")
    return _STDIN in paths


def _options(paths: tuple[Path, ...], stdin_filename: Path | None, settings: dict[str, Any]) -> Options:
    from tl2npu.config import ConfigError, common_directory, load_options

    places = [stdin_filename or Path.cwd()] if _is_stdin(paths) else list(paths)
    try:
        return load_options(common_directory(places), settings)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _run(
    paths: tuple[Path, ...],
    task: Any,
    options: Options,
    sink: Sink,
    would_change_counts: bool,
    stdin_filename: Path | None,
    jobs: int,
    debug: bool,
) -> tuple[Finished, int]:
    from tl2npu.files import collect
    from tl2npu.project import run, run_text
    from tl2npu.sinks import exit_code, finish

    if _is_stdin(paths):
        data = sys.stdin.buffer.read()
        name = "<stdin>" if stdin_filename is None else stdin_filename.as_posix()
        finished = finish([run_text(data, name, task, options, debug)], sink)
    else:
        finished = finish(run(collect(paths or (Path(),)), task, options, jobs, debug), sink)
    return finished, exit_code(finished, task, would_change_counts)


def _print(
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
        color = _wants_color(stream)
        click.echo(text(color), nl=False, file=stream, color=color)


def _wants_color(stream: IO[str]) -> bool:
    """NO_COLOR switches colours off, FORCE_COLOR on, else a terminal has them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


if __name__ == "__main__":
    main()
