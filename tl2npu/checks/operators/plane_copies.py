"""TL798: copies between global memory and the chip along more than two axes, of which one plane is moved.

``src/op/ascend.cc`` writes one instruction for a copy, with as many rows as *one* axis of the region has (``validRow``:
the last but one of those longer than 1), for both targets. Of all axes before it moves the first element.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.starts import extents_of, moves, one_by_one
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.symbolic import Sym


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each copy that has more planes than one, as far as the known calls tell."""
    for move in moves(subject):
        extents = extents_of(move)
        lost = [extents[axis] for axis in sorted(one_by_one(extents)) if _is_longer(subject, extents[axis])]
        if lost:
            region = f"`{code(move.outer.node)}`"
            text = f"{region} has {' and '.join(map(str, lost))} planes, of which the compiler copies the first only"
            yield Finding("TL798", move.placed.stmt.node, text)


def _is_longer(subject: Subject, extent: Sym) -> bool:
    """Whether it may be more than 1: it is not 1 in every call that is known."""
    found = subject.numbers(extent)
    return not found or any(number != 1 for number in found)
