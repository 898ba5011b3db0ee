"""Flags: who sets, who waits, what is left over, what is superfluous.

Flags inside a core are per (source pipe, destination pipe, event id); the n-th wait goes with the n-th set. A wait may
stand before its set in the text (the pipe waits, not the scalar unit); the order that the set gives is then taken as
given from the wait on, and whether the pipe that sets it ever comes so far is another question (:mod:`.stalls`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy as np

from tl2npu.dialects.ascend.sync import EVENT_IDS, OLD_IDS
from tl2npu.simulator.hazards.clocks import Token, merged
from tl2npu.simulator.hazards.hazard import DEADLOCK, ERROR, FLAG_RANGE, NOTE, REDUNDANT, UNPAIRED, Hazard, Party
from tl2npu.simulator.hazards.stalls import Stalls
from tl2npu.simulator.ir.stmt import Site
from tl2npu.simulator.machine.sync import Core

if TYPE_CHECKING:
    from tl2npu.simulator.hazards.observer import Observer

_FAR = np.iinfo(np.int32).max


class Flags:
    """The flags of one call."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.queues: dict[Any, deque[tuple[Token, Party]]] = defaultdict(deque)
        self.owed: dict[Any, deque[tuple[Party, int]]] = defaultdict(deque)
        self.needed: set[Site] = set()
        self.stalls: dict[tuple[int, str, int], Stalls] = defaultdict(Stalls)
        self.useful: dict[tuple[Any, ...], tuple[Party, Party, str] | None] = {}

    def _party(self, core: Core, site: int, action: str, pipe: str) -> Party:
        name = pipe.upper().removeprefix("PIPE_") or "S"
        sites = self.observer.runner.sites
        return Party(sites[site], action, self.observer.core_name(core), core.block, name)

    # cross flags: the machine keeps the counters

    def token(self, clock: Token, core: Core, site: int, pipe: str) -> Token:
        """A clock with the place where it was released."""
        return clock, self._party(core, site, "Set", pipe)

    def merge(self, tokens: list[Token]) -> Token:
        """The join; the last place stands for all."""
        return merged([clock for clock, _ in tokens]), tokens[-1][1]

    def waited(self, core: Core, site: int, token: Token, useful: bool) -> None:
        """A wait is over; did it order anything?"""
        if token[0].any():  # a set before the first access says only that something is free: not what it is for
            self._judge(token[1], self._party(core, site, "Wait", ""), useful, "cross flag")

    def range(self, core: Core, site: int, number: Any, what: str, limit: int, hard: int = 0) -> None:
        """Ids that the hardware does not have: from ``hard`` on; from ``limit`` on they are not the user's."""
        if isinstance(number, int) and not 0 <= number < limit:
            party = self._party(core, site, "Set", "")
            message = f"{what} {number} at {party.site} is out of range: the ids are 0 to {limit - 1}"
            severity = NOTE if 0 <= number < hard else ERROR
            self.observer.report.add(Hazard(FLAG_RANGE, message, "", "", None, party, severity))

    def too_many(self, core: Core, site: int, flag: Any, count: int) -> None:
        """More sets outstanding than a counter holds."""
        party = self._party(core, site, "Set", "")
        message = (
            f"cross flag {flag} may be set {count} times at {party.site} before it is waited for: nothing holds the "
            "core back, and the counter holds 16"
        )
        self.observer.report.add(Hazard(FLAG_RANGE, message, "", "", None, party, NOTE))

    # flags between the pipes of a core

    def set(self, core: Core, site: int, src: str, dst: str, number: int, clock: Token) -> None:
        """A set; a pipe that waits already gets its due."""
        self.range(core, site, number, "event id", EVENT_IDS, OLD_IDS)
        key = (core.block, core.kind, core.number, src.upper(), dst.upper(), number)
        party = self._party(core, site, "Set", src)
        self.stalls[key[:3]].hand_out("Set", key[3:], party)
        if self.owed[key]:
            self.owed[key].popleft()
            return
        self.queues[key].append((clock, party))

    def wait(self, core: Core, site: int, src: str, dst: str, number: int) -> None:
        """A wait takes the oldest set."""
        observer = self.observer
        key = (core.block, core.kind, core.number, src.upper(), dst.upper(), number)
        party = self._party(core, site, "Wait", dst)
        self.stalls[key[:3]].hand_out("Wait", key[3:], party)
        thread = observer.pipe_thread(core, dst)
        if observer.pipes:
            observer.clocks.follow(thread, observer.thread(core))
        if not self.queues[key]:
            self.owed[key].append((party, thread))
            if observer.pipes:
                observer.clocks.now[thread, observer.pipe_thread(core, src)] = _FAR
            return
        clock, setter = self.queues[key].popleft()
        if observer.pipes:
            useful = observer.clocks.acquire(thread, clock)
            if clock.any():
                self._judge(setter, party, useful, f"flag {src} -> {dst} {number}")

    def all_wait(self, core: Core, site: int) -> None:
        """A barrier of all pipes of a core."""
        found = self.stalls.get((core.block, core.kind, core.number))
        if found is not None:
            found.hand_out("Barrier", None, self._party(core, site, "Wait", ""))

    def product(self, core: Core, site: int) -> None:
        """A matrix product that sets and waits for flags of its own."""
        found = self.stalls.get((core.block, core.kind, core.number))
        if found is not None:
            found.product(self._party(core, site, "Wait", ""))

    # what is left

    def end(self, left: list[tuple[Core | None, Any, list[Token]]]) -> None:
        """The block, or the launch, is over. ``left``: cross flags that were set and not waited for."""
        report = self.observer.report
        for _, flag, tokens in left:
            for party in {token[1]: None for token in tokens}:
                report.add(_alone(f"cross flag {flag}", party))
        for (*_, src, dst, number), queue in self.queues.items():
            for party in {party: None for _, party in queue}:
                report.add(_alone(f"flag {src} -> {dst} {number}", party))
        circles: set[Any] = set()
        for core, stalls in self.stalls.items():
            if (found := stalls.message()) is not None:
                report.without_races(found[0].block, found[0].core)
                report.add(Hazard(DEADLOCK, found[1], "", "", found[0]))
                circles |= {(*core, *wait.flag) for wait, _ in stalls.circle() if wait.flag is not None}
        for key, waits in self.owed.items():
            src, dst, number = key[3:]
            for party, _ in waits if key not in circles else ():
                message = (
                    f"deadlock: PIPE_{dst} of block {party.block} ({party.core}) waits for flag {src} -> {dst} "
                    f"{number} at {party.site}, which nothing sets"
                )
                report.add(Hazard(DEADLOCK, message, "", "", party))
        self.queues.clear()
        self.owed.clear()
        self.stalls.clear()

    def _judge(self, setter: Party, waiter: Party, useful: bool, what: str) -> None:
        key = (waiter.site, what)
        if useful:
            self.useful[key] = None
            self.needed.add(setter.site)
        else:
            self.useful.setdefault(key, (setter, waiter, what))

    def finish(self) -> None:
        """Waits none of which ordered anything that was not in order before, for flags that no other wait needs."""
        for found in self.useful.values():
            own = found is not None and found[1].site not in self.observer.automatic_sites
            if found is not None and own and found[0].site not in self.needed:
                setter, waiter, what = found
                message = (
                    f"the wait for {what} at {waiter.site} orders nothing: what precedes its set at {setter.site} is "
                    "in order already"
                )
                self.observer.report.add(Hazard(REDUNDANT, message, "", "", setter, waiter, NOTE))
        self.useful.clear()
        self.needed.clear()


def _alone(what: str, party: Party) -> Hazard:
    where = f"at {party.site} in block {party.block} ({party.core})"
    return Hazard(UNPAIRED, f"{what} is set {where} and never waited for", "", "", party)
