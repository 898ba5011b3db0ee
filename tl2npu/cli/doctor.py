"""``tl2npu doctor``."""

from __future__ import annotations

import sys

import click

from tl2npu.cli.output import wants_color


@click.command(short_help="Show the compilers and devices that are available.")
@click.option("--python", metavar="PATH", help="Ask this interpreter.  [default: the one that runs tl2npu]")
@click.option("--backend", type=click.Choice(["compile", "npu", "camodel"]), help="Exit 0 only if this one can run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(python: str | None, backend: str | None, as_json: bool) -> None:
    """List what compiles and executes kernels here: found, or missing with the command that fixes it.

    Exit codes: 0 if a backend besides the simulator can run (with --backend: that one), 1 if not.
    """
    from tl2npu.report import doctor as reports
    from tl2npu.toolchain.doctor import examine

    machine = examine(python)
    click.echo(reports.as_json(machine) if as_json else reports.text(machine, wants_color(sys.stdout)), nl=False)
    wanted = [backend] if backend else [name for name in machine.lacks if name != "sim"]
    sys.exit(int(not any(machine.runs(name) for name in wanted)))
