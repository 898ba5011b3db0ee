"""TL626: a mask of what lies behind the end of a tensor is asked for where the tiles do not end with it.

``where(k * N + j < size, x, -inf)`` changes nothing in a loop over ``ceildiv(size, N)`` tiles if ``N`` divides
``size``, which Python knows while it builds the kernel. A GPU hides such a mask behind its loads, a vector core pays.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Loop, Stmt, walk_with_parents
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.reach import facts, parts
from tl2npu.kernel.symbolic import Div, Sym, Var
from tl2npu.passes.gpu.memory.masked_products import Mask, masks_of
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def ask_for_tails(job: Job) -> None:
    """Put the masks under the condition that there is a tail."""
    edits = Edits(job.file.index)
    known = Known(job.kernel, job.located.evaluator)
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.via or not isinstance(stmt.node, cst.BaseStatement):
            continue
        tiles = {access.operand.buffer for one in stmt.body for access in accesses(one) if access.writes}
        masks = masks_of(job.late, stmt, tiles.pop()) if len(tiles) == 1 else []
        if len(masks) != 1 or not masks[0].in_place:
            continue
        found = _divided(job, known, stmt, parents, masks[0])
        if found is None:
            continue
        size, tile = found
        asked = cst.parse_expression(f"{size} % {tile} != 0")
        edits.replace_many(stmt.node, [cst.If(asked, cst.IndentedBlock([stmt.node]))])
        job.change("TL626", stmt.node, f"masked the tail where `{tile}` does not divide `{size}`")
    job.apply(edits)


def _divided(job: Job, known: Known, loop: Loop, parents: tuple[Stmt, ...], mask: Mask) -> tuple[str, str] | None:
    """A size and a tile that leave nothing to mask if one divides the other."""
    evaluator, env = job.located.evaluator, mask.store.env
    if parts(evaluator, mask.condition) is not None:
        return None
    kept = list(facts(evaluator, mask.condition, env, mask.keeps))
    bounds = known.around(mask.store, (*parents, loop))
    for size, tile in _pairs(bounds) if len(kept) == 1 else ():
        if job.late.is_late(tile) or job.late.is_late(Sym.of({(size,): 1})) or not kept[0].depends_on(size.name):
            continue
        if bounds.divided(size.name, tile).is_not_negative(kept[0]):
            return size.name, str(tile)
    return None


def _pairs(bounds: Bounds) -> Iterator[tuple[Var, Sym]]:
    """Sizes, with the tiles of which ``ceildiv(size, tile)`` are gone through."""
    ends = [bounds.expanded(end) for _, end in bounds.ranges.values()]
    for atom in dict.fromkeys(atom for end in ends for atom in end.atoms()):
        if not isinstance(atom, Div) or not (str(atom.den).isidentifier() or atom.den.constant is not None):
            continue
        for size in (atom.num + 1, atom.num + 1 - atom.den):
            if len(size.names) == 1 and size == Sym.of({(name := Var(*size.names),): 1}) and name.name.isidentifier():
                yield name, atom.den
