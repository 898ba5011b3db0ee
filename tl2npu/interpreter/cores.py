"""Cores that run at the same time, with counted events between them, one of them at a time.

Each core is a thread, and one thread runs until it waits or ends: a run is the same run every time. Which core goes
next is the schedule's choice, and there are two opposite ones. A program whose events order all that matters gives
the same result under both; where they differ, something was read while another core could have written it.

What an event does is read from triton-ascend's front end (triton-lang/triton-ascend a84b1eb5,
``third_party/ascend/language/cann/extension``): a counting semaphore for each sender, receiver and number. That a set
by the cube core wakes both vector cores, and that the cube core waits for both, is the hardware's cross-core mode 2.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["cube", "vector"]
CUBE: Kind = "cube"
VECTOR: Kind = "vector"
VECTORS = 2
"""Vector cores beside a cube core."""
EVENTS = 16
"""Numbers of events."""


class Deadlock(Exception):
    """No core can go on; ``str()`` says who waits for what."""


class _Stopped(BaseException):
    """Ends the thread of a core when another one has failed."""


@dataclass(eq=False)
class Core:
    """A core of a block: the cube core, or vector core 0 or 1.

    ``body`` is what it runs; ``resume`` is called whenever its turn comes. ``scope`` is the kind of the scope it is in,
    None outside of scopes.
    """

    kind: Kind
    number: int
    block: int
    body: Callable[[], None]
    resume: Callable[[], None] = lambda: None
    scope: Kind | None = None
    waits: Callable[[], str] = str
    ready: Callable[[], bool] = lambda: True
    ended: bool = False
    error: BaseException | None = None
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def name(self) -> str:
        """As messages call it."""
        return "the cube core" if self.kind == CUBE else f"vector core {self.number}"


@dataclass(frozen=True)
class Schedule:
    """Which of several cores goes first: those of the kinds in ``order``, and with ``eager`` also at each event that
    is set, not only where the core that runs has to wait."""

    name: str
    order: tuple[tuple[Kind, int], ...]
    eager: bool
    last_block_first: bool = False

    def rank(self, core: Core) -> tuple[int, int]:
        """The lowest goes first."""
        block = -core.block if self.last_block_first else core.block
        return block, self.order.index((core.kind, core.number))


CUBE_FIRST = Schedule("the cube core is ahead", ((CUBE, 0), (VECTOR, 0), (VECTOR, 1)), eager=False)
VECTOR_FIRST = Schedule("the vector cores are ahead", ((VECTOR, 1), (VECTOR, 0), (CUBE, 0)), True, True)

_current: Cores | None = None


def current() -> Cores | None:
    """The cores that run now, None where a kernel runs as one program."""
    return _current


class Cores:
    """The cores of one or more blocks, and the events between the cores of a block.

    Without ``scoped`` the program has no parts for cube and vector cores: each core runs all of it, and its own order
    is the order that events ask for. ``shared`` is for what the cores have in common.
    """

    def __init__(self, cores: Sequence[Core], schedule: Schedule, scoped: bool = True) -> None:
        self.cores = list(cores)
        self.schedule = schedule
        self.scoped = scoped
        self.shared: dict[Any, Any] = {}
        self.running: Core | None = None
        self.counts: Counter[tuple[int, str, str, int]] = Counter()
        self.places: dict[tuple[int, str, str, int], str] = {}
        self.arrived: dict[tuple[str, int, int | None], set[Core]] = {}
        self._back = threading.Semaphore(0)
        self._stopping = False

    @property
    def core(self) -> Core:
        """The core that runs."""
        assert self.running is not None
        return self.running

    def run(self) -> None:
        """Run all cores to their ends. Raises Deadlock, and what a core raises."""
        global _current
        before, _current = _current, self
        threads = [threading.Thread(target=self._live, args=(core,), daemon=True) for core in self.cores]
        try:
            for thread in threads:
                thread.start()
            self._go_round()
        finally:
            self._stopping = True
            for core in self.cores:
                core.turn.release()
            for thread in threads:
                thread.join()
            _current = before

    @property
    def left(self) -> list[str]:
        """Events that were set and not waited for."""
        keys = [key for key, count in self.counts.items() if count]
        return [
            f"event {key[3]} from {_called(key[1])} to {_called(key[2])}, set at {self.places[key]}" for key in keys
        ]

    def set(self, receiver: Kind, number: int, place: str) -> None:
        """The running core sets an event for the cores of the other kind."""
        core = self.core
        if not self.scoped:
            return
        for other in self._others(core, receiver):
            key = (core.block, _id(core), _id(other), number)
            self.counts[key] += 1
            self.places[key] = place
        if self.schedule.eager:
            self._pause(str, _at_once)

    def wait(self, sender: Kind, number: int, place: str) -> None:
        """The running core waits until every core of the other kind has set an event, and takes it from each."""
        core = self.core
        if not self.scoped:
            return
        senders = self._others(core, sender)
        keys = [(core.block, _id(other), _id(core), number) for other in senders]
        if not all(self.counts[key] for key in keys):

            def waits() -> str:
                missing = [other.name for other, key in zip(senders, keys, strict=True) if not self.counts[key]]
                return f"event {number} from {' and '.join(missing)} at {place}"

            self._pause(waits, lambda: all(self.counts[key] for key in keys))
        for key in keys:
            self.counts[key] -= 1

    def meet(self, mode: str, number: int, place: str) -> None:
        """The running core waits until all cores that ``mode`` names have come to the barrier.

        ``all_cube``, ``all_vector`` and ``all`` are the cores of all blocks, ``all_sub_vector`` the vector cores of
        one.
        """
        core = self.core
        own = core.block if mode == "all_sub_vector" else None
        kinds = {"all_cube": {CUBE}, "all": {CUBE, VECTOR}}.get(mode, {VECTOR}) if self.scoped else {CUBE, VECTOR}
        if core.kind not in kinds:
            return
        members = {c for c in self.cores if c.kind in kinds and (own is None or c.block == own)}
        key = (mode, number, own)
        group = self.arrived.setdefault(key, set())
        group.add(core)
        if group == members:
            self.arrived[key] = set()
        else:
            self._pause(
                lambda: f"sync_block_all({mode!r}, {number}) at {place}", lambda: self.arrived[key] is not group
            )
            return
        if self.schedule.eager:
            self._pause(str, _at_once)

    def _others(self, core: Core, kind: Kind) -> list[Core]:
        return [other for other in self.cores if other.block == core.block and other.kind == kind]

    def _go_round(self) -> None:
        while alive := [core for core in self.cores if not core.ended]:
            able = [core for core in alive if core.ready()]
            if not able:
                raise Deadlock(self._told(alive))
            core = self.running = min(able, key=self.schedule.rank)
            core.waits, core.ready = str, _at_once
            core.resume()
            core.turn.release()
            self._back.acquire()
            if core.error is not None:
                raise core.error

    def _told(self, waiting: list[Core]) -> str:
        several = len({core.block for core in self.cores}) > 1
        said = [f"{c.name}{f' of block {c.block}' if several else ''} waits for {c.waits()}" for c in waiting[:6]]
        more = [f"and {len(waiting) - 6} more wait"] if len(waiting) > 6 else []
        set_ = [f"{text} is not waited for" for text in self.left[:4]]
        return "deadlock: " + "; ".join([*said, *more, *set_])

    def _live(self, core: Core) -> None:
        core.turn.acquire()
        try:
            if not self._stopping:
                core.body()
        except _Stopped:
            pass
        except BaseException as error:
            core.error = error
        core.ended = True
        self._back.release()

    def _pause(self, waits: Callable[[], str], ready: Callable[[], bool]) -> None:
        core = self.core
        core.waits, core.ready = waits, ready
        self._back.release()
        core.turn.acquire()
        if self._stopping:
            raise _Stopped


def _at_once() -> bool:
    return True


def _id(core: Core) -> str:
    return f"{core.kind} {core.number}"


def _called(name: str) -> str:
    return "the cube core" if name.startswith(CUBE) else f"vector core {name.split()[1]}"
