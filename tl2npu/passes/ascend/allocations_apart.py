"""TL207: ``a, b = T.alloc_shared(...), T.alloc_shared(...)`` as one statement for each of them.

What happens to a tile later, that it is given another size or memory or that it goes, is said of one allocation.
"""

from __future__ import annotations

from typing import cast

import libcst as cst

from tl2npu.kernel.bindings import single_assignments
from tl2npu.kernel.model import Alloc
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned


def take_apart(job: Job) -> None:
    """Write the allocations of the kernel's own text that stand in one assignment one below the other."""
    allocs = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Alloc) and not stmt.via]
    together = {
        id(stmt.node): stmt.node for stmt in allocs if stmt.buffer.node is not getattr(stmt.node, "value", None)
    }
    edits = Edits(job.file.index)
    for node in together.values():
        assert isinstance(node, cst.Assign)
        if len(node.targets) > 1:
            continue
        pairs = single_assignments(node.targets[0].target, node.value)
        if len(pairs) < 2 or not _one_by_one(pairs):
            continue
        edits.replace_many(node, [_assignment(left, right) for left, right in pairs])
        job.change("TL207", node, "wrote one statement per allocation")
    job.apply(edits)


def _one_by_one(pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]]) -> bool:
    """No value needs what a name before it had meant."""
    bound: set[str] = set()
    for left, right in pairs:
        if bound & mentioned(right):
            return False
        bound |= mentioned(left)
    return True


def _assignment(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(cast("cst.Name", target))], value)
