"""Tiles that are fetched an iteration ahead into the next slot are fetched where they are used.

Before the loop the slab 0 is copied into slot 0; in iteration ``k`` the slab ``k + 1`` into slot ``(k + 1) % slots``,
and slot ``k % slots`` is read. So iteration ``k`` reads slab ``k``, which the compiler can fetch ahead itself. That is
proved by putting numbers for the loop variable: the copy of the iteration before the first must be the one before the
loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.comparisons import is_all_but_last
from tl2npu.kernel.flow import Flow, reads_of, slots, writes_of
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Loop, Memory, Operand, Stmt, Sync
from tl2npu.kernel.symbolic import Mod, Sym
from tl2npu.passes.ascend.mma.numbers import Numbers
from tl2npu.passes.ascend.mma.texts import map_indices, moved
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_STAGED = (Memory.L1, Memory.L0A, Memory.L0B)


@dataclass(frozen=True, eq=False)
class Prefetch:
    """``ahead`` in ``loop`` (under ``branch``, if any) loads what the next iteration reads; ``first`` stands before."""

    buffer: Buffer
    loop: Loop
    branch: Branch | None
    ahead: Copy
    first: Copy


def load_in_place(job: Job) -> None:
    """Move every load that runs one iteration ahead into the iteration that needs it."""
    while True:
        flow = Flow(job.kernel)
        found = [p for buffer in job.kernel.buffers.values() if (p := _find(flow, buffer)) is not None]
        if not found:
            return
        group = [p for p in found if p.loop is found[0].loop and p.branch is found[0].branch]
        _check_minimum(job, group)
        _write(job, flow, group)


def _find(flow: Flow, buffer: Buffer) -> Prefetch | None:
    if buffer.memory not in _STAGED:
        return None
    writes = writes_of(flow.kernel.body, buffer)
    for stmt, _ in writes:
        loops = flow.loops(stmt)
        if not isinstance(stmt, Copy) or stmt.via or not loops:
            continue
        loop = loops[-1]
        branch = next((p for p in reversed(flow.parents[stmt]) if isinstance(p, Branch)), None)
        if branch is not None and loop not in flow.parents[branch]:
            branch = None
        name = _variable(loop)
        slot = slots(stmt.dst)
        if name is None or not slot or not any(_is_next(s, name) for s in slot):
            continue
        first = _before_loop(flow, loop, buffer, stmt)
        if first is not None:
            return Prefetch(buffer, loop, branch, stmt, first)
    return None


def _variable(loop: Loop) -> str | None:
    item = loop.ranges[0] if len(loop.ranges) == 1 and loop.kind in ("serial", "unroll") else None
    if item is None or not item.start.is_zero or (item.step is not None and item.step.constant != 1):
        return None
    variables = item.var.variables()
    return next(iter(variables)) if len(variables) == 1 else None


def _is_next(slot: Sym, name: str) -> bool:
    """``(name + 1) % slots``."""
    atom = _modulo(slot)
    return atom is not None and (atom.num - 1).variables() == {name} and (atom.num - 1).substitute({name: 0}).is_zero


def _modulo(slot: Sym) -> Mod | None:
    return slot.atom if isinstance(slot.atom, Mod) else None


def _before_loop(flow: Flow, loop: Loop, buffer: Buffer, ahead: Copy) -> Copy | None:
    """The copy before the loop that is the one of the iteration before the first."""
    name = _variable(loop)
    assert name is not None
    block = flow.block(loop)
    for stmt in reversed(block[: list(block).index(loop)]):
        if not writes_of([stmt], buffer):
            continue
        if not isinstance(stmt, Copy) or stmt.via:
            return None
        same = _at(ahead.src, name) == _plain(stmt.src) and _at(ahead.dst, name) == _plain(stmt.dst)
        return stmt if same and ahead.src.buffer is stmt.src.buffer else None
    return None


def _at(operand: Operand, name: str) -> list[tuple[Sym, Sym | None]]:
    """The region of the iteration before the first: -1 in the place of the loop variable."""
    found = [(d.lo.substitute({name: -1}), d.extent) for d in operand.dims or ()]
    return found or [(d, d) for d in operand.buffer.shape]


def _plain(operand: Operand) -> list[tuple[Sym, Sym | None]]:
    return [(d.lo, d.extent) for d in operand.dims or ()] or [(d, d) for d in operand.buffer.shape]


def _check(flow: Flow, item: Prefetch) -> None:
    """Raise :class:`Blocked` unless every iteration reads what the iteration before it has loaded, and nothing else."""
    name = _variable(item.loop)
    assert name is not None
    node = item.ahead.node
    source = item.ahead.src.buffer
    others = [s for s, _ in writes_of(flow.kernel.body, item.buffer) if s not in (item.ahead, item.first)]
    others = [s for s in others if item.loop in flow.parents[s] or _between(flow, item, s)]
    if others:
        raise Blocked("TL321", others[0].node, f"`{item.buffer.name}` is prefetched, but also written here")
    if any(s for s, _ in writes_of([item.loop], source)) or any(
        _between(flow, item, s) for s, _ in writes_of(flow.kernel.body, source)
    ):
        raise Blocked("TL321", node, f"`{source.name}` changes while `{item.buffer.name}` is prefetched from it")
    if item.branch is not None and not _leaves_out_the_last(item):
        raise Blocked("TL323", item.branch.node, "this condition is not equivalent to `there is a next iteration`")
    expected = [s.substitute({name: _var(item.loop) - 1}) for s in slots(item.ahead.dst) or ()]
    for stmt, operand in reads_of(flow.kernel.body, item.buffer):
        if item.loop not in flow.parents[stmt]:
            if _reads_it(flow, item, stmt):
                raise Blocked(
                    "TL321", stmt.node, f"`{item.buffer.name}` is prefetched in a loop, but read outside of it"
                )
        elif list(slots(operand) or ()) != expected:
            raise Blocked(
                "TL321", stmt.node, f"this read of `{item.buffer.name}` does not use the slot of its iteration"
            )


def _var(loop: Loop) -> Sym:
    return loop.ranges[0].var


def _between(flow: Flow, item: Prefetch, stmt: Stmt) -> bool:
    block = list(flow.block(item.loop))
    inside = block[block.index(item.first) + 1 : block.index(item.loop)]
    return any(stmt is s or s in flow.parents[stmt] for s in inside)


def _reads_it(flow: Flow, item: Prefetch, stmt: Stmt) -> bool:
    """True unless another write stands between the loop and a read outside of it."""
    for step in flow.before(stmt):
        if step.stmt is item.loop:
            return True
        if writes_of([step.stmt], item.buffer):
            return False
    return True


def _leaves_out_the_last(item: Prefetch) -> bool:
    """``k < extent - 1`` and its likes: true in every iteration but the last."""
    assert item.branch is not None
    if item.branch.orelse or not _holds(item.branch.then, item.ahead):
        return False
    return is_all_but_last(item.branch.cond.sym, _var(item.loop), item.loop.ranges[0].extent)


def _holds(body: Sequence[Stmt], stmt: Stmt) -> bool:
    return all(isinstance(s, (Copy, Let, Sync)) for s in body) and stmt in body


def _check_minimum(job: Job, group: Sequence[Prefetch]) -> None:
    flow, numbers = Flow(job.kernel), Numbers(job)
    for item in group:
        _check(flow, item)
    for item in group:
        slot = next((s for s in slots(item.ahead.dst) or () if _modulo(s) is not None), None)
        atom = _modulo(slot) if slot is not None else None
        if atom is None:
            continue
        enough = numbers.at_least(atom.den, 2)
        if enough or _read_before(flow, item):
            continue
        name = item.buffer.name
        if enough is False:
            raise Blocked("TL321", item.ahead.node, f"`{name}` has one slot, which the next prefetch overwrites")
        text = f"cannot prove that `{name}` has at least two slots; with one, the old kernel has a race"
        job.note("TL321", item.ahead.node, text, "warning")


def _read_before(flow: Flow, item: Prefetch) -> bool:
    """True if every read of the loop stands before the load."""
    top = item.branch if item.branch is not None else item.ahead
    body = list(item.loop.body)
    place = body.index(top) if top in body else 0
    return not reads_of(body[place:], item.buffer)


def _write(job: Job, flow: Flow, group: Sequence[Prefetch]) -> None:
    edits = Edits(job.file.index)
    evaluator = job.located.evaluator
    for item in group:
        env = item.ahead.env
        back = partial(moved, env=env, evaluator=evaluator, item=item.loop.ranges[0], by=1)
        for operand in (item.ahead.src, item.ahead.dst):
            edits.replace(operand.node, map_indices(operand.node, back))
        edits.remove(item.first.node)
        job.change("TL301", item.ahead.node, f"loaded `{item.buffer.name}` in the iteration that reads it")
    branch = group[0].branch
    if branch is not None:
        rest = [s for s in branch.then if isinstance(s, Copy) and s not in [p.ahead for p in group]]
        if rest:
            raise Blocked(
                "TL321", rest[0].node, "this copy is among the prefetches, but does not load for the next iteration"
            )
        assert isinstance(branch.node, cst.If)
        edits.unwrap(branch.node)
    job.apply(edits)
