"""TL180 to TL196, TL199: what an Ascend NPU has no counterpart for.

A reader wants every reason at once, so one diagnostic stands for each kind of construct, at its first line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, Stmt, Store
from tl2npu.passes.job import Job
from tl2npu.passes.plain import reused_memory
from tl2npu.passes.plain.despecialise import program as despecialise
from tl2npu.passes.plain.threads import loops as threads
from tl2npu.passes.plain.unsupported.names import Use, uses
from tl2npu.passes.plain.unsupported.types import foreign_types
from tl2npu.source.tree import names_in


def symbolic_tiles(job: Job) -> Iterator[tuple[cst.CSTNode, str]]:
    """On-chip buffers that depend on ``T.dynamic``, a scalar parameter, the block or a loop; with a message each."""
    for buffer in job.kernel.buffers.values():
        if not buffer.is_tile or buffer.alloc == "alloc_global":
            continue
        for extent, node in zip(buffer.shape, buffer.shape_nodes, strict=False):
            if job.late.is_late(extent):
                yield buffer.node, f"the extent `{code(node)}` of the tile `{buffer.name}` is known at run time only"
                break


_SHOWN = 4
_SECOND_NAMES = frozenset({"tilelang.language.reshape", "tilelang.language.view"})


@dataclass
class Reason:
    """One kind of construct: the first place, what it is, how the kernel spells it."""

    code: str
    node: cst.CSTNode
    what: str
    names: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        """One sentence without full stop."""
        shown = ", ".join(self.names[:_SHOWN])
        more = len(self.names) - _SHOWN
        listed = f"{shown} and {more} more" if more > 0 else shown
        return f"the NPU has no counterpart for {self.what}: {listed}" if self.names else self.what


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for the first construct without an equivalent; the others become notes of the job."""
    found = reasons(job)
    if not found:
        return
    first = min(found, key=lambda reason: job.line(reason.node))
    for reason in found:
        if reason is not first:
            job.note(reason.code, reason.node, reason.message, "error")
    raise Blocked(first.code, first.node, first.message)


def reasons(job: Job) -> list[Reason]:
    """Every kind of construct that has no equivalent, each once."""
    found = {reason.code: reason for reason in _by_name(uses(job))}
    if found.keys() & despecialise.CODES and (ordered := despecialise.readable(job)) is not None:
        planned = despecialise.plan(ordered)
        done = despecialise.CODES | ({threads.CODE} if planned is not None and planned.threads else set())
        left = {use.code for use in uses(ordered)} - done
        found = {code: reason for code, reason in found.items() if code in left}
    if threads.CODE in found and (copy := threads.readable(job)) is not None:
        left = {use.code for use in uses(copy)} - {threads.CODE}
        found = {code: reason for code, reason in found.items() if code in left}
    for node, message in foreign_types(job):
        found.setdefault("TL191", Reason("TL191", node, message))
    for node, message in symbolic_tiles(job):
        found.setdefault("TL195", Reason("TL195", node, message))
    own = {view.name for view in reused_memory.own_tiles(job)}
    for stmt in job.kernel.walk():
        if _stores_several(job, stmt):
            found.setdefault("TL199", Reason("TL199", stmt.node, "one assignment stores several elements"))
        if _is_second_name(stmt, job) and stmt.name not in own:
            what = f"reshaped alias `{stmt.name}` is not supported: index the original tile"
            found.setdefault("TL903", Reason("TL903", stmt.node, what))
    return list(found.values())


def _is_second_name(stmt: Stmt, job: Job) -> TypeGuard[Let]:
    """``b = T.reshape(a, shape)``: statements that use ``b`` would not be seen to reach ``a``."""
    value = stmt.value.node if isinstance(stmt, Let) else None
    if not isinstance(value, cst.Call) or job.file.names.resolve(value.func) not in _SECOND_NAMES:
        return False
    return any(name.value in job.kernel.buffers for name in names_in(value))


def _stores_several(job: Job, stmt: Stmt) -> bool:
    """``a[i], b[j] = x, y``, also to scalars that are memory; to names that stand for values it is no obstacle."""
    node = stmt.node
    if not isinstance(node, cst.Assign) or not isinstance(node.targets[0].target, (cst.Tuple, cst.List)):
        return False
    if isinstance(stmt, Let):
        buffer = job.kernel.buffers.get(stmt.name)
        return buffer is not None and buffer.memory is Memory.VAR
    return isinstance(stmt, Store)


def _by_name(found: list[Use]) -> list[Reason]:
    kinds: dict[str, Reason] = {}
    for use in found:
        reason = kinds.setdefault(use.code, Reason(use.code, use.node, use.what))
        if use.shown not in reason.names:
            reason.names.append(use.shown)
    return list(kinds.values())
