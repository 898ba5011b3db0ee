"""The cores of a block, the cube core and both vector cores, each with the whole program.

Each runs its own part of it until it waits for another one: for a flag in Expert mode, or, where the compiler puts the
flags, for a workspace to be filled (``ascend_combinecv.cc``: its reads and writes in pairs, in the order of each core).
One runs at a time: where the flags suffice, every order gives the same values.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

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
        self.may_go_on: Callable[[], bool] = lambda: True
        self.is_patient = False
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

    def pause(self) -> None:
        """Behind a statement."""
        if self.crew.alternates:
            self.may_go_on = lambda: True
            self._yield()

    def wait(self, flag: int) -> None:
        """``T.wait_cross_flag``."""
        self.until(lambda: self.flags[flag] > 0)
        self.flags[flag] -= 1

    def until(self, holds: Callable[[], bool], is_patient: bool = True) -> None:
        """The others go on until something holds; a core that ``is_patient`` waits in vain where it never does."""
        if holds():
            return
        self.may_go_on, self.is_patient = holds, is_patient
        self._yield()

    def _yield(self) -> None:
        self.crew.back.release()
        self.turn.acquire()
        if self.crew.is_stopped:
            raise _Stopped

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
    """The three cores of one block; ``alternates``: another one goes on behind each statement, and shows races."""

    def __init__(self, alternates: bool = False) -> None:
        self.alternates = alternates
        self.members = [Member(self, "C", 0), *(Member(self, "V", number) for number in range(VECTORS))]
        self.arrived: dict[tuple[int, int], Counter[int]] = {}
        self.back = threading.Semaphore(0)
        self.failure: BaseException | None = None
        self.is_stopped = False
        self.current = self.members[0]

    def go(self, blocks: Sequence[Callable[[], None]]) -> None:
        """Run what each core does, to the end. Raises what one of them raises, and :class:`NotChecked` for flags that
        never let them finish."""
        for member, block in zip(self.members, blocks, strict=True):
            threading.Thread(target=member.run, args=(block,), daemon=True).start()
        while left := [member for member in self.members if not member.is_done]:
            ready = [m for m in left if m.may_go_on()] or [m for m in left if not m.is_patient]
            if not ready and self.failure is None:
                self.failure = NotChecked("its flags never let the cores finish")
            self.is_stopped = self.failure is not None
            others = [m for m in ready if m is not self.current]
            self.current = others[-1] if self.alternates and others else (ready or left)[0]
            self.current.turn.release()
            self.back.acquire()
        if self.failure is not None:
            raise self.failure


class Slots:
    """What of a workspace was written and not yet read, for each core that reads it."""

    def __init__(self, shape: tuple[int, ...], readers: str) -> None:
        self.readers = readers
        self.shape = shape

    def begin(self, crew: Crew) -> None:
        """A block begins: nothing of it was written."""
        self.crew = crew
        self.full = {m: np.zeros(self.shape, bool) for m in crew.members if m.side == self.readers}

    def take(self, place: Any) -> None:
        """Before a part is read: wait until it is written."""
        full = self.full.get(self.crew.current)
        if full is not None:
            self.crew.current.until(lambda: bool(full[place].all()))
            full[place] = False

    def put(self, place: Any, adds: bool) -> None:
        """Before a part is written: wait until what was there is read, unless this ``adds`` to it."""
        if self.crew.current.side == self.readers:
            return
        if not adds:
            self.crew.current.until(lambda: not any(full[place].any() for full in self.full.values()), is_patient=False)
        for full in self.full.values():
            full[place] = True
