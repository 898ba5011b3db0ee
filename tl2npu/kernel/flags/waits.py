"""Whether AUTO_SYNC orders all reads behind the writes, whatever way the loops turn: most kernels need no clocks.

A data-flow analysis over the text. Of each tile it knows the last accesses that are possible, as AUTO_SYNC does
(:mod:`tl2npu.kernel.flags.automatic`), and the pipes that certainly come behind all of its writes. Regions are left
out: where a read may come early, clocks say whether it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tl2npu.dialects.ascend.sync import RESULT_OF_SCALAR_UNIT
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of
from tl2npu.kernel.flags.automatic import Automatic, Pair, leads, on_side, pipe_on, waits_around
from tl2npu.kernel.flags.pipes import PIPES, exchanged, ordered_touches, waits_for_all
from tl2npu.kernel.model import Branch, Buffer, Inlined, Kernel, Loop, Op, ScopeBlock, Side, Stmt, Sync, children

_ALL = frozenset(PIPES)


@dataclass(frozen=True)
class _Tile:
    """``lasts``: pipes of possible last accesses, and whether these write; ``since``: flags that may be set since;
    ``behind``: the pipes that come after all writes.
    """

    lasts: frozenset[tuple[str, bool]] = frozenset()
    since: frozenset[Pair] = frozenset()
    behind: frozenset[str] = _ALL

    def joined(self, other: _Tile) -> _Tile:
        return _Tile(self.lasts | other.lasts, self.since | other.since, self.behind & other.behind)


_State = Mapping[Buffer, _Tile]


def may_come_early(kernel: Kernel, automatic: Automatic, cores: Sequence[Side], fixed: frozenset[str]) -> bool:
    """Whether a read may come before a write that stands in front of it, on the same core.

    ``fixed``: names of the factory, by which Python chooses an arm of a branch.
    """
    alone, shared = len(cores) == 1, exchanged(kernel)
    for side in cores:
        core = _Core(side, alone, automatic, fixed, shared)
        core.block(kernel.body, {})
        if core.early:
            return True
    return False


@dataclass(eq=False)
class _Core:
    """``early``: a read was found that may come early."""

    side: Side
    alone: bool
    automatic: Automatic
    fixed: frozenset[str]
    shared: frozenset[Buffer]
    early: bool = False

    def block(self, body: Iterable[Stmt], state: _State, parallel: bool = False) -> _State:
        for stmt in body:
            state = self._after(stmt, state, parallel)
        return state

    def _after(self, stmt: Stmt, state: _State, parallel: bool) -> _State:
        if isinstance(stmt, ScopeBlock):
            return self.block(stmt.body, state) if stmt.side is self.side else state
        if isinstance(stmt, Inlined):
            return self.block(stmt.body, state, parallel)
        if isinstance(stmt, Sync):
            return _synced(stmt, state) if self.automatic.authors.get(id(stmt)) is self.side else state
        if not self.alone and not children(stmt) and side_of(stmt) not in (self.side, Side.BOTH, Side.NONE):
            return state
        state = self._touched(stmt, state, parallel)
        if isinstance(stmt, Loop):
            if stmt.kind == "parallel":
                return self.block(stmt.body, state, True)
            while (after := _join(state, self.block(stmt.body, state, parallel))) != state:
                state = after
            return state
        if isinstance(stmt, Branch):
            return self._branch(stmt, state, parallel)
        return state

    def _branch(self, stmt: Branch, state: _State, parallel: bool) -> _State:
        apart = waits_around(stmt, self.side, self.fixed)
        if apart:
            state = {}
        state = _join(self.block(stmt.then, state, parallel), self.block(stmt.orelse, state, parallel))
        return {} if apart else state

    def _touched(self, stmt: Stmt, state: _State, parallel: bool) -> _State:
        touches = list(on_side(self.side, ordered_touches(stmt, parallel, self.shared)))
        now = dict(state)
        if id(stmt) in self.automatic.barriers or waits_for_all(stmt) or any(touch.element for touch in touches):
            now = _all_wait(now)
        if not touches:
            return now
        pipe = pipe_on(self.side, stmt, parallel)
        writes: dict[Buffer, bool] = {}
        for touch in touches:
            writes[touch.buffer] = writes.get(touch.buffer, False) or touch.writes
        wanted = {  # one for each last access that is possible; only what all of them ask for is certain
            buffer: {(last, pipe) if last != pipe and (wrote or mine) else None for last, wrote in now[buffer].lasts}
            for buffer, mine in writes.items()
            if buffer in now
        }
        every = {pair for pairs in wanted.values() for pair in pairs if pair is not None}
        surely = {
            pair
            for buffer, (pair, *others) in wanted.items()
            if pair is not None and not others and not leads(now[buffer].since | (every - {pair}), *pair)
        }
        product = isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM
        orders = [(dst, src) for src, dst in sorted(surely)]
        if product:
            orders += [("MTE1", "MTE2"), ("M", "FIX"), ("M", "MTE1")]
        now = _follow(now, orders)
        for touch in touches:
            own = pipe if pipe != "M" else touch.pipe
            if not touch.writes and touch.buffer in now and own not in now[touch.buffer].behind:
                self.early = True
        for buffer, tile in now.items():
            if buffer not in writes:
                now[buffer] = _Tile(tile.lasts, tile.since | every, tile.behind)
        for buffer, mine in writes.items():
            behind = frozenset({pipe}) if mine else now[buffer].behind if buffer in now else _ALL
            now[buffer] = _Tile(frozenset({(pipe, mine)}), frozenset(), behind)
        if isinstance(stmt, Op) and stmt.op.name in RESULT_OF_SCALAR_UNIT:
            now = _follow(now, [("S", "V")])
        return _follow(now, [("MTE1", "M"), ("MTE2", "MTE1"), ("FIX", "M")]) if product else now


def _synced(stmt: Sync, state: _State) -> _State:
    return _all_wait(state) if stmt.op.name == "barrier_all" else state


def _all_wait(state: _State) -> dict[Buffer, _Tile]:
    return {buffer: _Tile(tile.lasts, tile.since) for buffer, tile in state.items()}


def _follow(state: _State, orders: Sequence[Pair]) -> dict[Buffer, _Tile]:
    """The first pipe of each pair waits for the second; all wait for the scalar unit."""
    found: dict[Buffer, _Tile] = {}
    for buffer, tile in state.items():
        behind = set(tile.behind)
        for pipe, other in orders:
            if other in behind:
                behind.add(pipe)
        found[buffer] = _Tile(tile.lasts, tile.since, _ALL if "S" in behind else frozenset(behind))
    return found


def _join(state: _State, other: _State) -> _State:
    return {b: state.get(b, _Tile()).joined(other.get(b, _Tile())) for b in {**state, **other}}
