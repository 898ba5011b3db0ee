"""``tl2npu mcp``."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click


@click.command(short_help="Serve a coding agent (Model Context Protocol).")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="The tools take files below this directory.  [default: .]",
)
def mcp(root: Path) -> None:
    """Serve a coding agent on the standard streams: the tools migrate, check, verify and explain.

    Nothing writes files. The tool verify EXECUTES the files that it is given. It needs the extra `mcp`.
    """
    if find_spec("mcp") is None:
        from tl2npu.extras import pip_command

        click.echo(f"tl2npu mcp needs mcp: {pip_command('mcp')}", err=True)
        sys.exit(2)
    from tl2npu.verify.threads import one_thread

    os.environ.update(one_thread())  # before NumPy is loaded
    os.chdir(root)  # paths are shown relative to it
    from tl2npu.mcp import serve

    serve(Path())
