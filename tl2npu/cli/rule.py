"""``tl2npu rule``."""

from __future__ import annotations

import click


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from tl2npu.codes import CODES

    names = [row.name for row in CODES.values()] if incomplete[:1].islower() else []
    return [word for word in (*CODES, *names) if word.startswith(incomplete)]


@click.command(short_help="Print the page of a rule.")
@click.argument("code", shell_complete=_complete)
def rule(code: str) -> None:
    """Print the documentation of a rule, given by its code or its name."""
    from tl2npu.rules import RuleError, find_rule

    try:
        found = find_rule(code)
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{found.code} {found.name} ({found.group})\n\n{found.text.strip()}")
