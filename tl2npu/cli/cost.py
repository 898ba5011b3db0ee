"""``tl2npu cost``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tl2npu.cli.options import CALLS, KERNEL, SIZE, STYLE

if TYPE_CHECKING:
    from tl2npu.verify.settings import Call


@click.command(short_help="Estimate the run time of kernels, old and new, pipe by pipe.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@CALLS
@SIZE
@KERNEL
@click.option("--device", type=click.Choice(["A2", "A3", "A5"]), default="A2", show_default=True)
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Cores of the device.  [default: 24]")
@STYLE
def cost(
    paths: tuple[Path, ...],
    calls: tuple[str, ...],
    symbols: tuple[str, ...],
    kernels: tuple[str, ...],
    device: str,
    cores: int | None,
    style: str,
) -> None:
    """Estimate what the kernels in PATHS cost on an NPU, as they stand and as tl2npu would write them.

    In directories, files without kernels are skipped. The output has the cycles of each pipe for one block, the pipe
    that limits it, and how full the memories are. It is a model, not a measurement: see docs/cost.md.

    Exit codes: 0 done, 2 a file or an option could not be used.
    """
    from tl2npu.cost.estimate import NoRates
    from tl2npu.costing import sides
    from tl2npu.options import Options
    from tl2npu.report.cost import as_json, text
    from tl2npu.source.text import SourceError, read_source
    from tl2npu.source.tree import one_file
    from tl2npu.verify.calls import parse_call, parse_symbols
    from tl2npu.verify.settings import UsageError

    try:
        sizes = parse_symbols(symbols)
        asked = [parse_call(text) for text in calls]
        options = Options(device=device, calls=tuple(map(str, asked)), kernels=kernels)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    found, failed, words, files = [], False, set[str](), _files(paths)
    if unfit := next(filter(None, (_unfit(call, files) for call in asked)), ""):
        raise click.UsageError(unfit)
    for path in files:
        try:
            source = read_source(path).text
            words |= set(re.findall(r"\w+", source)) if sizes else set()
            with one_file():
                made = sides(source, str(path), options, sizes, cores)
            made = [one for one in made if options.selects(str(path), one.kernel)]
        except NoRates as error:
            raise click.UsageError(str(error)) from None
        except SourceError as error:
            click.echo(f"{path}: {error}", err=True)
            failed = True
            continue
        if not made and (kernels or path not in paths):
            continue
        found.append((str(path), made))
        if style == "text":
            click.echo(text(str(path), made), nl=False)
    if unknown := sorted(sizes.keys() - words if words else ()):
        raise click.UsageError(f"--size {unknown[0]}: no file has a size of that name")
    if kernels and not any(made for _, made in found):
        raise click.UsageError(f"no kernel is called {kernels[0]!r}")
    if style == "json":
        click.echo(as_json(found), nl=False)
    sys.exit(2 if failed else 0)


def _unfit(call: Call, files: list[Path]) -> str:
    """Why a call makes no kernel of any file; empty if it does, or if there are no kernels of TileLang in them."""
    from tl2npu.cost.signatures import signatures
    from tl2npu.source.text import SourceError, read_source
    from tl2npu.verify.calls import misfit, no_factory

    names: dict[str, None] = {}
    wrong = ""
    for path in files:
        try:
            found = signatures(read_source(path).text)
        except SourceError:
            continue  # said later
        names.update(dict.fromkeys(found))
        if call.factory in found:
            signature = found[call.factory]
            wrong = misfit(call, signature) if signature is not None else ""
            if not wrong:
                return ""
    wrong = wrong or (no_factory(call.factory, names, list(names)) if names else "")
    return f"{call}: {wrong}" if wrong else ""


def _files(paths: tuple[Path, ...]) -> list[Path]:
    """The paths, in place of directories their Python files, by the configuration that holds there."""
    from tl2npu.cli.files import settings_of
    from tl2npu.files import collect
    from tl2npu.source.notebook import is_notebook

    if not any(path.is_dir() for path in paths):
        return list(paths)
    found = collect(paths, settings_of(list(paths), {}).rules)
    return [item.path for item in found if not (item.skipped or is_notebook(str(item.path)))]
