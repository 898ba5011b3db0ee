"""Loops over a block's own share of an axis: ``range(pid * share, min((pid + 1) * share, end), step)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tl2npu.kernel.symbolic import Opaque, Sym, const, var
from tl2npu.triton.read.ranges import Ranges


@dataclass(frozen=True)
class Share:
    """Each of ``blocks`` blocks has as many elements of the axis that ends at ``end``; ``block``: its place.

    ``planned``: the number of blocks of which the shares are the whole axis.
    """

    block: str
    blocks: Sym
    end: Sym
    planned: Sym


def share_of(ranges: Ranges, grid: Mapping[str, Sym], start: Sym, stop: Sym) -> Share | None:
    """The share that a loop goes over, if those of some number of blocks are the whole axis; else None.

    ``grid``: the number of blocks by the name of their place.
    """
    start, stop = ranges.named(start), ranges.named(stop)
    atom = stop.atom
    if not isinstance(atom, Opaque) or atom.head != "min" or len(atom.args) != 2:
        return None
    for last, end in (atom.args, atom.args[::-1]):
        for block, blocks in grid.items():
            share = last - start
            whole = not share.depends_on(block) and not end.depends_on(block) and start == share * var(block)
            planned = _planned(share, end) if whole else None
            if planned is not None and not planned.depends_on(block):
                return Share(block, blocks, end, planned)
    return None


def _planned(share: Sym, end: Sym) -> Sym | None:
    """``n`` of a share ``cdiv(end, n)``, or of that rounded up to a multiple; None for other shares."""
    for mono, coef in share.terms if len(share.terms) == 1 else ():
        for atom in mono:
            if isinstance(atom, Opaque) and atom.head == "cdiv":
                num, den = atom.args
                rest = Sym.of({tuple(a for a in mono if a is not atom): coef})
                if num == end and rest == const(1):
                    return den
                if rest == den:
                    return _planned(num, end)
    return None
