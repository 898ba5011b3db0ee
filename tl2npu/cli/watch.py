"""``--watch``: once more for every file that is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from tl2npu.cli.files import Request


def watch(asked: Request, run: Callable[[Request], int]) -> None:
    """Run on all files, then again and again on those that change, until somebody interrupts."""
    try:
        import watchfiles
    except ImportError:
        from tl2npu.extras import pip_command

        raise click.UsageError(f"--watch needs the package watchfiles: {pip_command('watch')}") from None
    if asked.is_stdin:
        raise click.UsageError("--watch does not go with standard input")
    from tl2npu.files import collect

    paths = asked.paths or (Path(),)
    run(asked)
    click.echo("tl2npu: watching, Ctrl-C ends", err=True)
    for changes in watchfiles.watch(*paths, raise_interrupt=True):
        touched = {Path(name).resolve() for _, name in changes}
        files = [found.path for found in collect(paths, asked.settings.rules) if found.path.resolve() in touched]
        if files:
            run(replace(asked, paths=tuple(files)))
