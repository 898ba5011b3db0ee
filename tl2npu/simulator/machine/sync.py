"""Flags and barriers of one launch: counters that cores set and wait for (legacy-to-developer 2.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


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
    cores of a block, mode 0 between all cores of a kind: the wait passes when all of them have set.
    """

    vectors: int
    blocks: int
    counters: dict[Any, int] = field(default_factory=lambda: defaultdict(int))
    arrived: dict[Any, int] = field(default_factory=lambda: defaultdict(int))
    watcher: Any = None
    progress: int = 0

    def set_cross_flag(self, core: Any, site: int, pipe: str = "", flag: int = 0, mode: int = 2) -> None:
        """``T.set_cross_flag``."""
        me: Core = core.core
        self.progress += 1
        if self.watcher is not None:
            self.watcher.set_cross(me, site, pipe, flag, mode)
        if mode == 2:
            if me.kind == "C":
                for number in range(self.vectors):
                    self.counters[me.block, "V", number, flag] += 1
                return
            self.arrived[me.block, me.number, flag] += 1
            done = min(self.arrived[me.block, n, flag] for n in range(self.vectors))
            if done:
                for number in range(self.vectors):
                    self.arrived[me.block, number, flag] -= done
                self.counters[me.block, "C", 0, flag] += done
            return
        self._meet(me, flag, mode)

    def _meet(self, me: Core, flag: int, mode: int) -> None:
        """Modes 0 and 1: everybody sees a count when everybody has set."""
        scope = (me.block,) if mode == 1 else ()
        members = self.vectors if mode == 1 else self.blocks * (self.vectors if me.kind == "V" else 1)
        key = ("meet", mode, me.kind, scope, flag)
        self.arrived[(*key, me.block, me.number)] += 1
        everyone = [k for k in self.arrived if k[: len(key)] == key and self.arrived[k]]
        if len(everyone) == members:
            for k in everyone:
                self.arrived[k] -= 1
                self.counters[k[-2], me.kind, k[-1], flag] += 1

    def wait_cross_flag(self, core: Any, site: int, flag: int = 0, pipe: str = "") -> Iterator[None]:
        """``T.wait_cross_flag``: yields while the counter is 0, then takes one."""
        me: Core = core.core
        key = (me.block, me.kind, me.number if me.kind == "V" else 0, flag)
        while self.counters[key] == 0:
            me.waits_for, me.waits_at = f"cross flag {flag}", site
            yield
        self.counters[key] -= 1
        self.progress += 1
        if self.watcher is not None:
            self.watcher.wait_cross(me, site, pipe, flag)

    def sync_all(self, core: Any, site: int) -> Iterator[None]:
        """``T.sync_all``: every core of every block."""
        me: Core = core.core
        key = ("all", me.kind, me.block, me.number)
        self.arrived[key] += 1
        mine = self.arrived[key]
        self.progress += 1
        if self.watcher is not None:
            self.watcher.arrive_all(me, site)
        total = self.blocks * (1 if me.kind != "V" else self.vectors)
        while sum(1 for k, v in self.arrived.items() if k[0] == "all" and k[1] == me.kind and v >= mine) < total:
            me.waits_for, me.waits_at = "T.sync_all", site
            yield
        self.progress += 1
        if self.watcher is not None:
            self.watcher.leave_all(me, site)

    sync_grid = sync_all

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
