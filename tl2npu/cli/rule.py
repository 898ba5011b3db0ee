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
    from difflib import get_close_matches

    from tl2npu.rules import load_rules

    rules = load_rules()
    found = rules.get(code.upper()) or next((page for page in rules.values() if page.name == code), None)
    if found is None:
        close = get_close_matches(code, [*rules, *(page.name for page in rules.values())], n=1)
        raise click.UsageError(f"no rule {code!r}" + (f", did you mean {close[0]!r}?" if close else ""))
    click.echo(f"{found.code} {found.name} ({found.group})\n\n{found.text.strip()}")
