"""TL119: a tile that has the name of another one gets a name of its own, as the Ascend compiler takes each name once.

``ol = T.alloc_fragment(...)`` in two loops makes two tiles. Each is used in its own block only, behind its allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_ALLOCATE = "tilelang.language.alloc_"


def apart(job: Job) -> Job:
    """The kernel with such names; the job itself where there are none."""
    found = list(_namesakes(job))
    if not found:
        return job
    done, names = job.copied(), Names(job)
    edits = Edits(done.file.index)
    for allocation, uses in found:
        new = names.fresh(f"{uses[0].value}_2")
        for use in uses:
            edits.replace(use, use.with_changes(value=new))
        done.change("TL119", allocation, f"`{uses[0].value}` -> `{new}`: another tile has this name")
    done.apply(edits)
    return done


def _namesakes(job: Job) -> Iterator[tuple[cst.Assign, Sequence[cst.Name]]]:
    """Allocations in a block of their own for a name that another block allocates first, with all uses of the tile."""
    index, body = job.file.index, job.located.node.body
    named: dict[str, list[tuple[cst.Assign, cst.IndentedBlock]]] = {}
    for node in nodes_of(body, cst.Assign):
        target, block = node.targets[0].target, index.enclosing(node, cst.IndentedBlock)
        if len(node.targets) > 1 or not isinstance(target, cst.Name) or block is None:
            continue
        if isinstance(call := node.value, cst.Call) and (job.file.names.resolve(call.func) or "").startswith(_ALLOCATE):
            named.setdefault(target.value, []).append((node, block))
    for name, places in named.items():
        uses = {id(block): [use for use in names_in(block) if use.value == name] for _, block in places}
        inside = {id(use) for found in uses.values() for use in found}
        everywhere = sum(use.value == name for use in names_in(body))
        if len(places) < 2 or not len(inside) == everywhere == sum(map(len, uses.values())):
            continue  # also where one block is a part of another one
        if any(uses[id(block)][0] is not node.targets[0].target for node, block in places):
            continue
        for number, (node, block) in enumerate(places):
            if any(not _are_arms(job, block, other) for _, other in places[:number]):
                yield node, uses[id(block)]


def _are_arms(job: Job, one: cst.IndentedBlock, other: cst.IndentedBlock) -> bool:
    """Whether two blocks stand in different arms of an ``if``, which may be Python's."""
    index = job.file.index
    chains = [{id(node): node for node in index.ancestors(block)} for block in (one, other)]
    shared = next((node for key, node in chains[0].items() if key in chains[1]), None)
    return isinstance(shared, cst.If)
