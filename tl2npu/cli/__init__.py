"""The command line. Commands parse options, call one function and print its result.

Each command has a file of its own, with the function that bears its name, and is imported when it is asked for.
Everything but click is imported inside of commands: ``tl2npu --help`` must not wait for libcst or black.
"""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tl2npu import __version__

COMMANDS = (
    "migrate",
    "check",
    "cost",
    "run",
    "verify",
    "record",
    "report",
    "config",
    "cache",
    "completion",
    "skill",
    "rule",
    "rules",
    "explain-log",
    "devices",
    "doctor",
    "lsp",
    "mcp",
)
"""In the order of ``tl2npu --help``."""

_NEW_OBJECTS = 300_000
"""Between two collections, as in workers. Modules have no garbage in them; to look for some was a tenth of a start."""
INTERRUPTED = 130
"""The exit code after Ctrl-C or a request to terminate."""


class Commands(click.Group):
    """The commands, each imported from ``tl2npu.cli.<name>`` when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the command that a misspelt one may stand for."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            if Path(args[0]).suffix in (".py", ".ipynb") or Path(args[0]).exists():
                raise click.UsageError(f"{error.message} Did you mean `tl2npu migrate {args[0]}`?", ctx) from None
            close = get_close_matches(args[0], COMMANDS, n=1)
            if not close or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{close[0]}'?", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"tl2npu.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Where it is interrupted, everything that it has started is gone when this returns."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("tl2npu: interrupted", err=True)
            sys.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tl2npu")
def cli() -> None:
    """Check, run and migrate TileLang and Triton kernels for Ascend NPUs."""


def main() -> None:
    """The console script: no traceback reaches the user without ``--debug``."""
    gc.set_threshold(_NEW_OBJECTS)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cli(prog_name="tl2npu")
    except OSError as error:  # a full disk below standard output, a working directory that is gone
        if "--debug" in sys.argv:
            raise
        _give_up(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _give_up(f"internal error: {type(error).__name__}: {error}")


def _give_up(message: str) -> None:
    from tl2npu.source.broken import discard

    with suppress(OSError):
        click.echo(f"tl2npu: {message}", err=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard(stream)
    sys.exit(2)
