"""The cores of a block in Expert mode: the cube core and both vector cores, each with the whole program, of which it runs
its own part until it waits for a flag that the others have not set.

One core runs at a time: where the flags suffice, every order gives the same values.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from tl2npu.evaluate.values import NotChecked

VECTORS = 2
_OF_GROUP, _OF_VECTORS = 2, 1
"""Modes of ``T.set_cross_flag``: between the cube core and its vector cores, and between these."""


class _Stopped(Exception):
    """Another core has failed, or none can go on."""


class Member:
    """One core: ``C``, or ``V`` and its number."""

    def __init__(self, crew: Crew, side: str, number: int) -> None:
        self.crew, self.side, self.number = crew, side, number
        self.flags: Counter[int] = Counter()
        self.waits_for: int | None = None
        self.turn = threading.Semaphore(0)
        self.is_done = False

    def set(self, flag: int, mode: int) -> None:
        """``T.set_cross_flag``: the cube core is seen by each vector core, these by the others when both have set."""
        if mode not in (_OF_GROUP, _OF_VECTORS):
            raise NotChecked("blocks wait for each other")
        arrived = self.crew.arrived.setdefault((flag, mode), Counter())
        if self.side == "V":
            arrived[self.number] += 1
            if any(not arrived[number] for number in range(VECTORS)):
                return
            arrived.subtract(range(VECTORS))
        to = "V" if mode == _OF_VECTORS or self.side == "C" else "C"
        for member in self.crew.members:
            member.flags[flag] += member.side == to

    def wait(self, flag: int) -> None:
        """``T.wait_cross_flag``: the others go on until it is set."""
        self.waits_for = flag
        while not self.flags[flag]:
            self.crew.back.release()
            self.turn.acquire()
            if self.crew.is_stopped:
                raise _Stopped
        self.waits_for = None
        self.flags[flag] -= 1

    def run(self, block: Callable[[], None]) -> None:
        """What its thread does."""
        self.turn.acquire()
        try:
            if not self.crew.is_stopped:
                with np.errstate(all="ignore"):
                    block()
        except BaseException as error:  # goes on in the thread that waits for the crew
            self.crew.failure = self.crew.failure or error
        self.is_done = True
        self.crew.back.release()


class Crew:
    """The three cores of one block."""

    def __init__(self) -> None:
        self.members = [Member(self, "C", 0), *(Member(self, "V", number) for number in range(VECTORS))]
        self.arrived: dict[tuple[int, int], Counter[int]] = {}
        self.back = threading.Semaphore(0)
        self.failure: BaseException | None = None
        self.is_stopped = False

    def go(self, blocks: Sequence[Callable[[], None]]) -> None:
        """Run what each core does, to the end. Raises what one of them raises, and :class:`NotChecked` for flags that
        never let them finish."""
        for member, block in zip(self.members, blocks, strict=True):
            threading.Thread(target=member.run, args=(block,), daemon=True).start()
        while any(not member.is_done for member in self.members):
            ready = [m for m in self.members if not m.is_done and (m.waits_for is None or m.flags[m.waits_for])]
            self.is_stopped = self.failure is not None or not ready
            if not ready and self.failure is None:
                self.failure = NotChecked("its flags never let the cores finish")
            for member in ready[:1] or [m for m in self.members if not m.is_done]:
                member.turn.release()
                self.back.acquire()
        if self.failure is not None:
            raise self.failure
