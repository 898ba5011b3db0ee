"""TL873: loads of 8-bit and 64-bit tiles that end with their tensor and leave the rest of the tile as it was.

``copy_gm_to_ub`` fills a tile before it loads less than all of it, but only with types that ``Duplicate`` has
(``src/tl_templates/ascend/common.h:40-45, 209-219``): of 16 and of 32 bits. With others the last block of 32 bytes of
each row is padded, and nothing else. A GPU loads zeros. Target pto has code of its own, with a fill for every type.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.operators.starts import Move, clamped_axes, extents_of, moves
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory
from tl2npu.kernel.sizes import ITEM_SIZE

_FILLED = (2, 4)


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each load that ends with its tensor in a known call; columns stop a kernel, rows are told."""
    if subject.target == "pto":
        return
    sampler = Sampler(subject)
    for move in moves(subject):
        tile, size = move.inner.buffer, ITEM_SIZE.get(move.inner.buffer.dtype)
        stmt = move.placed.stmt
        if not isinstance(stmt, Copy) or stmt.dst is not move.inner:
            continue
        if tile.memory is not Memory.UB or size is None or size in _FILLED:
            continue
        if (found := _rest(sampler, move)) is not None:
            yield found


def _rest(sampler: Sampler, move: Move) -> Finding | None:
    place, last = sampler.place(move.placed), len(move.outer.buffer.shape) - 1
    extents, dims = extents_of(move), move.outer.dims or ()
    for axis in sorted(clamped_axes(extents), reverse=True):
        extent = extents[axis]
        goal = move.outer.buffer.shape[axis] - (dims[axis].lo + extent if dims else extent)
        if place.bounds.is_not_negative(goal):
            continue
        for known in sampler.calls(move.placed, sampler.subject.values):
            where = sampler.find(move.placed, goal, known)
            if where is not None:
                text = f"`{code(move.outer.node)}` ends with `{move.outer.buffer.name}`{where}: an NPU fills the rest"
                text += f" of a tile with zeros for 16-bit and 32-bit types only, not for {move.inner.buffer.dtype}"
                return Finding("TL873", move.placed.stmt.node, text, None if axis == last else "warning")
    return None
