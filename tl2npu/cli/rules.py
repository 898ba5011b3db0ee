"""``tl2npu rules``."""

from __future__ import annotations

import click


@click.command()
def rules() -> None:
    """List all rules."""
    from tl2npu.rules import load_rules

    for page in load_rules().values():
        click.echo(f"{page.code}  {page.name}  {page.summary}")
