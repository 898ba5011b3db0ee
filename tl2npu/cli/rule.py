"""``tl2npu rule``."""

from __future__ import annotations

import sys

import click


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from tl2npu.codes import CODES

    names = [row.name for row in CODES.values()] if incomplete[:1].islower() else []
    return [word for word in (*CODES, *names) if word.startswith(incomplete)]


@click.command(short_help="Print the page of a rule, or what an error means.")
@click.argument("code", required=False, shell_complete=_complete)
@click.option("--error", metavar="TEXT", help="Explain a code or message of compiler, runtime or device instead.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", help="Of --error.")
def rule(code: str | None, error: str | None, style: str) -> None:
    """Print the documentation of a rule, given by its code or its name.

    With --error: what an error code (507015), a message or words of one mean, and which rules are about it. Exit
    code 1 if nothing is known.
    """
    if (code is None) == (error is None):
        raise click.UsageError("give the code of a rule, or --error TEXT")
    if error is not None:
        _explain(error, style)
    from tl2npu.rules import RuleError, find_rule

    try:
        found = find_rule(code or "")
    except RuleError as wrong:
        from tl2npu.report.errors import answer

        hint = f"; `tl2npu rule --error {code}` says what is known of this error" if answer(code or "") else ""
        raise click.UsageError(f"{wrong}{hint}") from None
    click.echo(f"{found.code} {found.name} ({found.group})\n\n{found.text.strip()}")


def _explain(error: str, style: str) -> None:
    from tl2npu.report.errors import answer

    known = answer(error, style)
    if not known:
        click.echo("nothing is known about this; give the words of the message, or a code", err=True)
    click.echo(known, nl=False)
    sys.exit(0 if known else 1)
