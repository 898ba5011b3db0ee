"""Flags and barriers of one launch: counters that cores set and wait for (legacy-to-developer 2.3).

A counter is a queue of tokens, one for each set that nobody has waited for; the n-th wait takes the n-th token. Tokens
are what an observer makes of a set (``watch.Watcher``), None without one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.errors import SimulatorError

COUNTER_LIMIT = 16
"""Sets of one cross flag that may be outstanding on the hardware."""


@dataclass(eq=False)
class Core:
    """One core of one block. ``kind``: ``C``, ``V`` or ``G`` (a GPU block)."""

    block: int
    kind: str
    number: int = 0
    waits_for: str = ""
    waits_at: int = 0

    def __str__(self) -> str:
        names = {"C": "cube core", "V": f"vector core {self.number}", "G": "block"}
        return f"{names[self.kind]} of block {self.block}" if self.kind != "G" else f"block {self.block}"


@dataclass(eq=False)
class Sync:
    """All flags. A cross flag is a counter per receiving core; mode 2 pairs a cube core with its vector cores.

    An AIC's set is seen by both AIVs; the AIC sees one count when all its AIVs have set. Mode 1 is between the vector
    cores of a block, mode 0 between all cores of a kind: the wait passes when all of them have set. ``barriers``: the
    kinds of cores whose program has a ``T.sync_all``; it is one barrier for all of them (``SyncAll<false>``).
    """

    vectors: int
    blocks: int
    barriers: frozenset[str] = frozenset()
    queues: dict[Any, deque[Any]] = field(default_factory=lambda: defaultdict(deque))
    arrived: dict[Any, deque[Any]] = field(default_factory=lambda: defaultdict(deque))
    meetings: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    turns: dict[Any, int] = field(default_factory=lambda: defaultdict(int))
    watcher: Any = None
    progress: int = 0

    def set_cross_flag(self, core: Any, site: int, pipe: str = "", flag: int = 0, mode: int = 2) -> None:
        """``T.set_cross_flag``. Raises SimulatorError for a mode that is not 0, 1 or 2."""
        me: Core = core.core
        self.progress += 1
        token = None if self.watcher is None else self.watcher.release(me, site, pipe, flag)
        if mode == 2:
            if me.kind == "C":
                for number in range(self.vectors):
                    self._add(me, site, flag, (me.block, "V", number, flag), token)
                return
            arrived = [self.arrived["pair", me.block, flag, number] for number in range(self.vectors)]
            arrived[me.number].append(token)
            if all(arrived):
                self._add(me, site, flag, (me.block, "C", 0, flag), self._merge([queue.popleft() for queue in arrived]))
            return
        if mode not in (0, 1):
            raise SimulatorError(f"T.set_cross_flag: mode {mode!r}; the modes are 0, 1 and 2")
        self._meet(me, site, flag, mode, token)

    def _meet(self, me: Core, site: int, flag: int, mode: int, token: Any) -> None:
        """Modes 0 and 1: everybody sees a count when everybody has set."""
        blocks = (me.block,) if mode == 1 else range(self.blocks)
        numbers = range(self.vectors) if me.kind == "V" else (0,)
        members = [(block, number) for block in blocks for number in numbers]
        arrived = [self.arrived[mode, block, flag, me.kind, number] for block, number in members]
        arrived[members.index((me.block, me.number if me.kind == "V" else 0))].append(token)
        if all(arrived):
            together = self._merge([queue.popleft() for queue in arrived])
            for block, number in members:
                self._add(me, site, flag, (block, me.kind, number, flag), together)

    def _add(self, me: Core, site: int, flag: int, key: Any, token: Any) -> None:
        queue = self.queues[key]
        queue.append(token)
        if len(queue) > COUNTER_LIMIT and self.watcher is not None:
            self.watcher.too_many(me, site, flag, len(queue))

    def _merge(self, tokens: list[Any]) -> Any:
        return None if self.watcher is None else self.watcher.merge(tokens)

    def wait_cross_flag(self, core: Any, site: int, flag: int = 0, pipe: str = "") -> Iterator[None]:
        """``T.wait_cross_flag``: yields while the counter is 0, then takes one."""
        me: Core = core.core
        queue = self.queues[me.block, me.kind, me.number if me.kind == "V" else 0, flag]
        while not queue:
            me.waits_for, me.waits_at = f"cross flag {flag}", site
            yield
        token = queue.popleft()
        self.progress += 1
        if self.watcher is not None:
            self.watcher.acquire(me, site, pipe, flag, token)

    def sync_all(self, core: Any, site: int) -> Iterator[None]:
        """``T.sync_all``: every core of every block that has one."""
        me: Core = core.core
        key = (me.kind, me.block, me.number)
        self.turns[key] += 1
        meeting = self.meetings[self.turns[key]]
        meeting.append(None if self.watcher is None else self.watcher.arrive_all(me, site))
        self.progress += 1
        kinds = self.barriers or {me.kind}
        total = self.blocks * sum(self.vectors if kind == "V" else 1 for kind in kinds)
        while len(meeting) < total:
            me.waits_for, me.waits_at = "T.sync_all", site
            yield
        self.progress += 1
        if self.watcher is not None:
            self.watcher.leave_all(me, site, meeting)

    sync_grid = sync_all

    def left(self) -> list[tuple[Any, Any, list[Any]]]:
        """Sets that nobody has waited for: receiver (block, kind, number; None for one that did not yet count), flag,
        tokens. They are forgotten."""
        found: list[tuple[Any, Any, list[Any]]] = [
            (key[:3], key[3], list(queue)) for key, queue in self.queues.items() if queue
        ]
        found += [(None, key[2], list(queue)) for key, queue in self.arrived.items() if queue]
        self.queues.clear()
        self.arrived.clear()
        return found

    # Inside one core the machine executes in program order; flags between its pipes order nothing more. The watcher
    # checks whether they would order enough on a core whose pipes run side by side.

    def set_flag(self, core: Any, site: int, src: str = "", dst: str = "", eventId: int = 0) -> None:
        """``T.set_flag``."""
        if self.watcher is not None:
            self.watcher.set_flag(core.core, site, src, dst, eventId)

    def wait_flag(self, core: Any, site: int, src: str = "", dst: str = "", eventId: int = 0) -> Iterator[None]:
        """``T.wait_flag``."""
        if self.watcher is not None:
            self.watcher.wait_flag(core.core, site, src, dst, eventId)
        return iter(())

    def pipe_barrier(self, core: Any, site: int, pipe: str = "") -> None:
        """``T.pipe_barrier``."""
        if self.watcher is not None:
            self.watcher.pipe_barrier(core.core, site, pipe)

    def barrier_all(self, core: Any, site: int) -> None:
        """``T.barrier_all``."""
        if self.watcher is not None:
            self.watcher.pipe_barrier(core.core, site, "all")
