"""The command line. Commands parse options, call one function and print its result.

Each command has a file of its own, with the function that bears its name, and is imported when it is asked for.
Everything but click is imported inside of commands: ``tl2npu --help`` must not wait for libcst or black.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from tl2npu import __version__

COMMANDS = ("migrate", "check", "run", "verify", "report", "config", "rule", "rules", "devices")
"""In the order of ``tl2npu --help``."""


class Commands(click.Group):
    """The commands, each imported from ``tl2npu.cli.<name>`` when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"tl2npu.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tl2npu")
def cli() -> None:
    """Migrate TileLang kernels to Ascend Developer mode."""


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
