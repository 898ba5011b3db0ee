"""TL820 in a migration: ``threads=2`` halves buffers that the old kernel did not halve, and an odd extent loses a row.

What the old kernel split itself must have been even, or its halves did not cover the tile. Everything else that the
compiler halves now needs a proof: a literal, every call of the factory in the file, or a tile of the cube core with
such an extent, which has to be a multiple of 16 in any case (facts 4, g4_s_*).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.fractals import FRACTAL
from tl2npu.kernel.model import CUBE_MEMORY, Buffer
from tl2npu.kernel.symbolic import Sym, Var, var


def unproved_evenness(
    subject: Subject,
    split: Collection[str],
    known: Collection[str],
    needed: Collection[str],
    overlapping: Collection[str],
) -> Iterator[Finding]:
    """Findings of a kernel whose halves have become whole tiles.

    ``split`` names buffers that the old kernel split, ``known`` extents that are even because it halved them,
    ``needed`` extents that it rounded up, so that an odd one was right; of these ``overlapping`` are rounded up in
    one place and down in another, so that one whole tile would be a row longer than the two halves together.
    """
    node = subject.located.node
    for name in sorted({*overlapping, *(needed if subject.threads == 2 else ())}):
        if not _is_even_always(subject, var(name), known, ()) and not _is_even_as_called(subject, var(name)):
            text = f"cannot prove that `{name}` is even: the old kernel also took an odd one, Developer mode does not"
            yield Finding("TL820", node, text, lacks="even rows")
    if subject.threads != 2:
        return
    for buffer in rows_not_even(subject, split, known):
        rows = code(buffer.shape_nodes[0])
        text = f"cannot prove that `{rows}`, the rows of `{buffer.name}`, is even; assert it to get `threads=2`"
        yield Finding("TL820", buffer.node, text, lacks="even rows")


def rows_not_even(subject: Subject, split: Collection[str] = (), known: Collection[str] = ()) -> list[Buffer]:
    """The tiles that lose a row if they are halved, or may for all that is known."""
    tiles = _open(subject, split, known)
    return [buffer for buffer in tiles if not _is_even_as_called(subject, buffer.shape[0])]


def rows_even_as_called(subject: Subject, split: Collection[str], known: Collection[str]) -> list[Buffer]:
    """The tiles whose rows are even in the calls of the file, and may be odd in others."""
    tiles = _open(subject, split, known)
    return tiles if all(_is_even_as_called(subject, buffer.shape[0]) for buffer in tiles) else []


def _open(subject: Subject, split: Collection[str], known: Collection[str]) -> list[Buffer]:
    """The halved tiles whose rows only a call can tell to be even."""
    found = split_of(subject)
    cube = {size.atom for b in subject.kernel.buffers.values() if b.memory in CUBE_MEMORY for size in b.shape}
    fractals = {atom.name for atom in cube if isinstance(atom, Var)}
    used = [buffer for buffer in dict.fromkeys(use.buffer for use in found.uses) if found.has_rows(buffer)]
    return [b for b in used if b.name not in split and not _is_even_always(subject, b.shape[0], known, fractals)]


def _is_even_always(subject: Subject, sym: Sym, known: Collection[str], fractals: Collection[str]) -> bool:
    factors = dict.fromkeys(known, 2) | dict.fromkeys(fractals, FRACTAL)
    if sym in subject.even:
        return True
    doubled = sym.map_variables(lambda name: Sym.of({(Var(name),): factors[name]}) if name in factors else None)
    return all(coefficient % 2 == 0 for _, coefficient in doubled.terms)


def _is_even_as_called(subject: Subject, sym: Sym) -> bool:
    return all(number is not None and number % 2 == 0 for number in subject.numbers(sym))
