"""TL119: what a parallel loop reads of a tile, and other iterations of it write, is read from a copy of the tile.

All iterations run at once, so ``a[h, i, j] = a[3 - h, i, j]`` reads what was there before the loop. A loop that becomes
serial, over its outer axes or over all elements, would read what it has just written.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Operand, Stmt, Store, walk_with_parents
from tl2npu.kernel.ranges.iterations import may_meet
from tl2npu.kernel.ranges.reach import Reach, parents_of
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import Tiles, dtype_text, shape_text
from tl2npu.source.edits import Edits

_FOR_ALL = frozenset({"alloc_shared", "alloc_fragment"})
"""Memory that all iterations see; what ``alloc_local`` gives, each has for itself."""


def keep(job: Job, axes: int) -> None:
    """Copy such tiles in front of parallel loops, of which only the last ``axes`` axes stay parallel."""
    edits, tiles = Edits(job.file.index), Tiles(job, Names(job))
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not stmt.via and _is_parallel(stmt) and not any(map(_is_parallel, parents)):
            assert isinstance(stmt, Loop)
            _read_copies(job, stmt, axes, edits, tiles)
    tiles.commit(edits)
    job.apply(edits)


def _read_copies(job: Job, loop: Loop, axes: int, edits: Edits, tiles: Tiles) -> None:
    copies: dict[str, str] = {}
    for read in dict.fromkeys(_old(job, loop, axes)):
        name = read.buffer.name
        if name not in copies:
            copies[name] = new = tiles.names.fresh(f"{name}_old")
            text = f"{new} = T.{read.buffer.alloc}({shape_text(read.buffer)}, {dtype_text(read.buffer)})"
            tiles.add(read.buffer, text)
            edits.replace_many(loop.node, [*parse(job, f"T.copy({name}, {new})", loop.node), loop.node])
            job.change("TL119", loop.node, f"copied `{name}`: the loop reads elements that it overwrites")
        assert isinstance(read.node, cst.Subscript)
        edits.replace(read.node.value, cst.Name(copies[name]))


def _old(job: Job, loop: Loop, axes: int) -> Iterator[Operand]:
    """Elements that are read before other iterations write them; raises :class:`Blocked` for those read behind."""
    inside = list(walk_with_parents([loop]))
    for place, (store, parents) in enumerate(inside):
        around = [above for above in parents if isinstance(above, Loop)]
        parallel = [str(item.var) for above in around if above.kind in INDEPENDENT for item in above.ranges]
        outer = parallel[: len(parallel) - axes]
        if not isinstance(store, Store) or store.target.buffer.alloc not in _FOR_ALL or not outer:
            continue
        target, buffer = store.target, store.target.buffer
        reads = [(n, read) for n, (stmt, _) in enumerate(inside) for read in _reads(stmt) if read.buffer is buffer]
        if not reads:
            continue
        bounds = Reach(job.kernel, job.located.evaluator).bounds(parents_of(job.kernel, store), store)
        moving = [str(item.var) for above in around for item in above.ranges]
        serial = any(above.kind not in INDEPENDENT for above in around)
        changed = next(n for n, (s, _) in enumerate(inside) if isinstance(s, Store) and s.target.buffer is buffer)
        for number, read in reads:
            if may_meet(bounds, outer, moving, read, target):
                if serial or number > min(place, changed):
                    text = f"`{code(read.node)}` is written by other iterations of this loop: use two loops"
                    raise Blocked("TL120", read.node, text)
                yield read


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind in INDEPENDENT


def _reads(stmt: Stmt) -> Iterator[Operand]:
    return (access.operand for access in accesses(stmt) if access.reads and not access.writes)
