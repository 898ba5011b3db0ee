"""``tl2npu devices``."""

from __future__ import annotations

import click


@click.command(short_help="Print the memory sizes of the devices.")
def devices() -> None:
    """Print the capacity table: what memory planning allows per kernel, in bytes."""
    from tl2npu.report.devices import render

    click.echo(render(), nl=False)
