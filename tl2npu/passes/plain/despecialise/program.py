"""TL198: a pipeline made by hand becomes plain copies and products in program order.

Asynchronous copies and products that complete at once, in the order of the text, are one of the orders in which the
original may run, if no barrier is waited for before it is complete. :mod:`despecialise_order` finds that out. The
results of a program without races do not depend on the order, so the waiting can go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.despecialise import groups, loads
from tl2npu.passes.plain.despecialise.order import Run, group_of, has_barriers, in_order, thread_names
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.passes.plain.unsupported.names import operator_name, uses
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, mentioned, names_in, nodes_of, walk

CODES = frozenset({"TL180", "TL181", "TL182", "TL183"})
"""What is refused unless the pipeline can be put in order."""

_PLAIN = {
    "tma_copy": "copy",
    "async_copy": "copy",
    "wgmma_gemm": "gemm",
    "tcgen05_gemm": "gemm",
    "alloc_tmem": "alloc_fragment",
}
PRIVATE = frozenset({"alloc_fragment", "alloc_local", "alloc_var", "alloc_reducer"})
_DROPPED_KEYWORDS = frozenset(
    {"barrier", "mbar", "cluster_mask", "leader_scope_threads", "eviction_policy", "use_2cta"}
)
_WAITING = frozenset(
    """
    alloc_barrier barrier_arrive barrier_wait cp_async_barrier_noinc deallocate_tmem mbarrier_arrive
    mbarrier_arrive_expect_tx mbarrier_expect_tx mbarrier_wait_parity ptx_commit_group ptx_wait_group
    tcgen05_after_thread_sync tcgen05_before_thread_sync tcgen05_mma_arrive tma_store_arrive tma_store_wait
    wait_wgmma warpgroup_arrive warpgroup_commit_batch warpgroup_fence_operand warpgroup_wait
    """.split()
)


@dataclass
class Plan:
    """What has to change: calls with the operator that they become, statements that go, blocks that are unwrapped."""

    calls: list[tuple[cst.Call, str]] = field(default_factory=list)
    dropped: list[cst.BaseSmallStatement] = field(default_factory=list)
    blocks: list[cst.With | cst.If] = field(default_factory=list)
    threads: bool = False
    """Whether the code of warp groups was told apart by the index of a thread, which nothing else needs."""


def readable(job: Job) -> Job | None:
    """A copy of the job of which :func:`plan` takes the pipeline; None if there is none."""
    if not any(use.code in CODES for use in uses(job)):
        return None
    if plan(job) is not None:
        return job
    inside = {id(node) for node in walk(job.located.node.body)}
    in_macros = any(use.code in CODES and id(use.node) not in inside for use in uses(job))
    ordered: Job | None = None
    for tiles in (False, True):
        copy = job.copied()
        try:
            if in_macros:
                macros.inline(copy)
            if tiles:
                loads.as_tiles(copy)
        except (loads.Unclear, Blocked):
            continue
        groups.put(copy)
        if (found := plan(copy)) is not None:
            if found.threads or not thread_names(copy):
                return copy
            ordered = ordered or copy
    return ordered


def plan(job: Job) -> Plan | None:
    """How the kernel loses its pipeline; None if there is none, or if it cannot be put in order."""
    return job.fact(_plan)


def _plan(job: Job) -> Plan | None:
    found = [use for use in uses(job) if use.code in CODES]
    if not found:
        return None
    inside = {id(node) for node in walk(job.located.node.body)}
    result = Plan()
    for use in found:
        if id(use.node) not in inside or not _add(job, use.node, use.shown.removeprefix("T."), result):
            return None
    _groups_of_threads(job, result)
    for loop in nodes_of(job.located.node.body, cst.For):
        call = loop.iter
        if isinstance(call, cst.Call) and operator_name(job, call.func) == "unroll" and has_barriers(job, loop.body):
            result.calls.append((call, "serial"))  # for barriers with constant indices; tiles would live all along
    return result if _private_to_one_group(job, result.blocks) and in_order(job) else None


def _groups_of_threads(job: Job, result: Plan) -> None:
    """Plan to unwrap ``if tx < 32:``, if the index of a thread serves nothing else."""
    names, run = thread_names(job), Run.of(job, 1, 1)
    if not names:
        return
    blocks = [node for node in nodes_of(job.located.node.body, cst.If) if names.keys() & mentioned(node.test)]
    inside = {id(name) for node in blocks for name in names_in(node.test)}
    inside |= {id(name) for binding in names.values() for name in names_in(binding)}
    elsewhere = any(name.value in names and id(name) not in inside for name in names_in(job.located.node.body))
    if elsewhere or any(node.orelse is not None or group_of(run, node.test) is None for node in blocks):
        return
    if any(isinstance(job.file.index.parent(node), cst.If) or counts_threads(job, node.body) for node in blocks):
        return
    result.threads = True
    result.blocks += blocks
    result.dropped += names.values()


def counts_threads(job: Job, block: cst.BaseSuite) -> bool:
    """Whether each thread by itself adds to an element: not what one loop over all of them would do."""
    atomic = [call for call in calls_in(block) if operator_name(job, call.func).startswith("atomic_")]
    targets: list[cst.BaseExpression] = [node.target for node in nodes_of(block, cst.AugAssign)]
    targets += [call.args[0].value for call in atomic if call.args]
    for target in targets:
        buffer = job.kernel.buffers.get(code(target.value)) if isinstance(target, cst.Subscript) else None
        if not isinstance(target, cst.Subscript) or (buffer is not None and buffer.alloc in PRIVATE):
            continue
        loops = (loop.iter for loop in job.file.index.ancestors(target) if isinstance(loop, cst.For))
        if not any(isinstance(call, cst.Call) and operator_name(job, call.func) == "Parallel" for call in loops):
            return True
    return False


def _private_to_one_group(job: Job, blocks: Sequence[cst.With | cst.If]) -> bool:
    """False if a fragment or variable is used by two warp groups: each has its own, with its own values.

    Neither may a group give values to a variable that all threads read.
    """
    buffers = job.kernel.buffers.items()
    private = {name for name, buffer in buffers if buffer.alloc in PRIVATE}
    scalars = {name for name, buffer in buffers if buffer.alloc in ("alloc_local", "alloc_var")}
    inside = {id(name) for block in blocks for name in names_in(block)}
    inside |= {id(name) for buffer in dict(buffers).values() for name in names_in(buffer.statement or cst.Pass())}
    shared = {name.value for name in names_in(job.located.node.body) if id(name) not in inside} & scalars
    if any(shared & _stored(block) for block in blocks):
        return False
    groups: dict[str, str] = {}
    for block in blocks:
        group = code(block.items[0].item if isinstance(block, cst.With) else block.test)
        for name in names_in(block.body):
            if name.value in private and groups.setdefault(name.value, group) != group:
                return False
    return True


def _stored(block: cst.CSTNode) -> set[str]:
    """The names that a block binds, and those of which it stores to elements."""
    found: set[str] = set(assigned_names(block))
    targets = [item.target for assign in nodes_of(block, cst.Assign) for item in assign.targets]
    targets += [assign.target for assign in nodes_of(block, cst.AugAssign)]
    return found | {code(target.value) for target in targets if isinstance(target, cst.Subscript)}


def _add(job: Job, name: cst.CSTNode, operator: str, result: Plan) -> bool:
    """Plan one use; False if it has no plain form."""
    call = job.file.index.parent(name)
    if not isinstance(call, cst.Call) or call.func is not name:
        return False
    if operator in _PLAIN:
        result.calls.append((call, _PLAIN[operator]))
        keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        paired = keywords.get("use_2cta")
        return paired is None or (isinstance(paired, cst.Name) and paired.value == "False")
    if operator == "ws":
        item = job.file.index.parent(call)
        block = job.file.index.parent(item) if item is not None else None
        if not isinstance(block, cst.With) or len(block.items) != 1:
            return False
        result.blocks.append(block)
        return True
    statement = job.file.index.parent(call)
    if operator in _WAITING and isinstance(statement, (cst.Expr, cst.Assign)):
        result.dropped.append(statement)
        return True
    return False


def put_in_order(job: Job) -> None:
    """Write the plain form, where there is one."""
    copy = readable(job)
    if copy is None:
        return
    job.take(copy)
    found = plan(job)
    assert found is not None
    edits = Edits(job.file.index)
    for call, operator in found.calls:
        kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in _DROPPED_KEYWORDS]
        if kept and len(kept) < len(call.args):
            kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
        func = _renamed(job, call, operator)
        edits.replace(call, call.with_changes(func=func, args=kept))
        job.change("TL198", call, f"T.{operator_name(job, call.func)} -> T.{operator}")
    for statement in found.dropped:
        edits.remove(statement)
        job.change("TL198", statement, "removed: the compiler inserts the synchronisation")
    for block in found.blocks:
        edits.unwrap(block)
        job.change("TL198", block, "merged the code of all warps")
    job.apply(edits)
    _drop_empty(job)


def _drop_empty(job: Job) -> None:
    """Drop each ``if`` that only waited, with what it computed for that."""
    edits = Edits(job.file.index)
    often = Counter(name.value for name in names_in(job.located.node.body))
    for branch in nodes_of(job.located.node.body, cst.If):
        smalls = [
            small
            for line in branch.body.body
            for small in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
        ]
        own = Counter(name.value for small in smalls for name in names_in(small))
        bound = {name for small in smalls for name in assigned_names(small)}
        idle = all(isinstance(small, (cst.Pass, cst.Assign)) for small in smalls)
        empty = any(isinstance(small, cst.Pass) for small in smalls) and branch.orelse is None
        chained = isinstance(job.file.index.parent(branch), cst.If)
        if idle and empty and not chained and all(often[name] == own[name] for name in bound):
            edits.remove(branch)
    job.apply(edits)


def _renamed(job: Job, call: cst.Call, operator: str) -> cst.BaseExpression:
    if isinstance(call.func, cst.Attribute):
        return call.func.with_changes(attr=cst.Name(operator))
    return expression(job, f"T.{operator}", call)
