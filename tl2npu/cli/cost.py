"""``tl2npu cost``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tl2npu.cli.options import STYLE


def _size(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in given:
        name, sign, value = item.partition("=")
        if not sign or not name.isidentifier() or not value.isdigit():
            raise click.BadParameter(f"`{item}` is not NAME=INTEGER")
        found[name] = int(value)
    return found


@click.command(short_help="Estimate the time of kernels, old and new, pipe by pipe.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", callback=_size, help="The value of a size; several.")
@click.option("--device", type=click.Choice(["A2", "A3", "A5"]), default="A2", show_default=True)
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Cores of the device.  [default: 24]")
@STYLE
def cost(paths: tuple[Path, ...], sizes: dict[str, int], device: str, cores: int | None, style: str) -> None:
    """Estimate what the kernels in PATHS cost on an NPU, as they stand and as tl2npu would write them.

    Cycles of each pipe for one block, what bounds it, how full the memories are. A model, not a measurement:
    `docs/cost.md` says what it agrees with, and what it leaves out. Exit codes: 0, 2 a file could not be used.
    """
    from tl2npu.cost.estimate import NoRates
    from tl2npu.costing import sides
    from tl2npu.options import Options
    from tl2npu.report.cost import as_json, text
    from tl2npu.source.text import SourceError, read_source
    from tl2npu.source.tree import one_file

    found, failed = [], False
    for path in paths:
        try:
            with one_file():
                made = sides(read_source(path).text, str(path), Options(device=device), sizes, cores)
        except NoRates as error:
            raise click.UsageError(str(error)) from None
        except SourceError as error:
            click.echo(f"{path}: {error}", err=True)
            failed = True
            continue
        found.append((str(path), made))
        if style == "text":
            click.echo(text(str(path), made), nl=False)
    if style == "json":
        click.echo(as_json(found), nl=False)
    sys.exit(2 if failed else 0)
