"""The kernels of a file as they stand and as tl2npu would write them, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

from tl2npu.cost.file import estimates
from tl2npu.costs import Estimate, Sides
from tl2npu.languages import migrate_source
from tl2npu.options import Options
from tl2npu.results import FileResult


def sides(text: str, path: str, options: Options, sizes: Mapping[str, int], cores: int | None = None) -> list[Sides]:
    """Every kernel of a text; ``sizes`` and ``cores`` are those that the user gives, and win.

    Raises :class:`~tl2npu.cost.estimate.NoRates` and :class:`~tl2npu.source.text.SourceError`.
    """
    old = estimates(text, path, options, sizes, cores)
    result = migrate_source(text, path, options)
    if not result.changed or result.new_text is None:
        return [Sides(one, None) for one in old]
    # An eager kernel has become the prim_func of a factory of its name.
    done = {kernel.name for kernel in result.kernels if kernel.rewritten}
    made = estimates(result.new_text, path, options, sizes, cores)
    new = [one for one in made if any(part in done for part in (one.kernel, one.kernel.rpartition(".")[0]))]
    if not result.beside:
        new = [_on_old_lines(one, result) for one in new]
    found: list[Sides] = []
    for name in dict.fromkeys(one.kernel for one in (*old, *new)):
        pairs = zip_longest((one for one in old if one.kernel == name), (one for one in new if one.kernel == name))
        found += [Sides(before, after) for before, after in pairs]
    return found


def _on_old_lines(made: Estimate, result: FileResult) -> Estimate:
    """An estimate of a new kernel with the lines of the old one: the new text may be nowhere to look at."""
    own = next(kernel for kernel in result.kernels if kernel.name in (made.kernel, made.kernel.rpartition(".")[0]))
    lines = {item.code: item.line for item in reversed(result.diagnostics) if item.kernel == own.name}
    advice = tuple(replace(note, line=lines.get(note.code, own.line)) for note in made.advice)
    return replace(made, line=own.line, advice=advice)
