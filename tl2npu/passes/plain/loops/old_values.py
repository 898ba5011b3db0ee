"""TL119: what a parallel loop reads of a tile, and other iterations of it write, is read from a copy of the tile.

All iterations run at once, so ``a[h, i, j] = a[3 - h, i, j]`` reads what was there before the loop. A loop that becomes
serial, over some of its axes or over all elements, would read what it has just written.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Loop, Operand, Store, walk
from tl2npu.kernel.ranges.iterations import may_meet
from tl2npu.kernel.ranges.reach import Reach, parents_of
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text, shape_text


def keep(job: Job, most_axes: int) -> None:
    """Copy such tiles in front of parallel loops with more than so many axes: these become serial ones."""

    def step() -> bool:
        loops = (s for s in job.kernel.walk() if isinstance(s, Loop) and s.kind in INDEPENDENT and not s.via)
        return any(len(_variables(loop)) > most_axes and _keep(job, loop) for loop in loops)

    until_settled(job, step)


def _variables(loop: Loop) -> list[str]:
    """Those of a parallel loop and of the parallel loops in it."""
    inside = (inner for inner in walk([loop]) if isinstance(inner, Loop) and inner.kind in INDEPENDENT)
    return [str(item.var) for inner in inside for item in inner.ranges]


def _keep(job: Job, loop: Loop) -> bool:
    """Read from copies; False if there is nothing of the kind."""
    found: dict[Buffer, list[Operand]] = {}
    for read in _old(job, loop):
        found.setdefault(read.buffer, []).append(read)
    names, plan = Names(job), Plan(job)
    edits = Edits(job.file.index)
    return bool(found)


def _old(job: Job, loop: Loop) -> Iterator[Operand]:
    """Elements of tiles that are read before an iteration, perhaps another one, writes them."""
