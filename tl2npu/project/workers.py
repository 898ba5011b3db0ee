"""Processes that work on files, one at a time each, so that a file which brings its process down costs only itself.

``concurrent.futures`` gives up the whole pool, with all that it has in work, when one process dies, and cannot end a
task that takes too long.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any

from tl2npu.cpu_time import cpu_seconds, used_up

_GRACE = 2.0  # seconds that a process gets to end what it has started itself
_LOOK = 0.5  # seconds between two looks whether the parent is still there
_POLL = 0.1  # seconds between two looks at the CPU time of a job that has used up its time on the clock
_CALLS = 64  # for each process: what is remembered between files would grow with their number
_NEW_OBJECTS = 300_000  # between two collections: trees have no cycles, so nearly all memory is freed without them
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True)
class Lost:
    """What took the place of an answer: the process died, or was ended because its time was up."""

    reason: str


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: int | None = None
    since: tuple[float, float] = (0.0, 0.0)
    calls: int = 0

    def now(self) -> tuple[float, float]:
        """Seconds on the clock, and of CPU time where the system tells."""
        wall = time.monotonic()
        cpu = cpu_seconds(self.process.pid) if self.process.pid is not None else None
        return wall, wall if cpu is None else cpu

    def spent(self) -> tuple[float, float]:
        """What the job has used up so far."""
        (wall, cpu), (wall_then, cpu_then) = self.now(), self.since
        return wall - wall_then, cpu - cpu_then


@dataclass
class Workers:
    """``count`` processes that call ``function(task)``, each call within ``timeout`` seconds of CPU time (None: no
    limit; on the clock it may take longer while it waits for its turn, see ``cpu_time.py``).

    ``prepare`` is called before the processes start: what it imports, they need not import again. Use it as a context
    manager: whatever happens, no process is left behind.
    """

    count: int
    function: Callable[[Any], Any]
    timeout: float | None = None
    prepare: Callable[[], None] = lambda: None
    _all: list[_Worker] = field(default_factory=list)
    _prepared: bool = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._all:
            worker.process.terminate()
        limit = time.monotonic() + _GRACE
        for worker in self._all:
            _bury(worker, limit)
        self._all.clear()

    def answers(self, tasks: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, bytes | Lost]]:
        """The number of every task with its pickled answer, as they come in. Tasks begin in the order given."""
        waiting = iter(tasks)
        ahead = next(waiting, None)
        while ahead is not None or any(worker.job is not None for worker in self._all):
            while ahead is not None and (worker := self._idle()) is not None:
                number, task = ahead
                ahead = next(waiting, None)
                worker.job = number
                worker.since = worker.now()
                with suppress(OSError):  # it died while it had nothing to do: found out below
                    worker.pipe.send(task)
            yield from self._arrived()

    def _idle(self) -> _Worker | None:
        for worker in self._all:
            if worker.job is None:
                return worker
        return self._start() if len(self._all) < self.count else None

    def _arrived(self) -> list[tuple[int, bytes | Lost]]:
        """Wait until something happens; the answers that are there then, and what will never come."""
        busy = {worker.pipe: worker for worker in self._all if worker.job is not None}
        ready = wait(list(busy), self._next_look(busy.values()))
        found: list[tuple[int, bytes | Lost]] = []
        for pipe, worker in busy.items():
            number = worker.job
            assert number is not None
            if pipe in ready:
                try:
                    found.append((number, pipe.recv_bytes()))
                    self._rest(worker)
                except (EOFError, OSError):
                    self._remove(worker)
                    found.append((number, Lost(f"internal error: {_cause(worker.process.exitcode)}")))
            elif self.timeout is not None and used_up(self.timeout, *worker.spent()):
                worker.process.terminate()
                self._remove(worker)
                found.append((number, Lost(f"took longer than {self.timeout:g} seconds (--timeout)")))
        return found

    def _next_look(self, busy: Iterable[_Worker]) -> float | None:
        """Seconds until a job may have used up its time."""
        if self.timeout is None:
            return None
        return min(max(self.timeout - worker.spent()[0], _POLL) for worker in busy)

    def _rest(self, worker: _Worker) -> None:
        """It has answered; another one takes its place if it has answered often."""
        worker.job = None
        worker.calls += 1
        if worker.calls == _CALLS:
            worker.pipe.close()  # at which it ends by itself
            self._remove(worker)

    def _remove(self, worker: _Worker) -> None:
        self._all.remove(worker)
        _bury(worker, time.monotonic() + _GRACE)

    def _start(self) -> _Worker:
        context = _context()
        forks = context.get_start_method() == "fork"
        if forks and not self._prepared:
            self._prepared = True
            self.prepare()
            gc.freeze()  # nothing of it becomes garbage: collections in the new processes need not look at it
        here, there = context.Pipe()
        others = [worker.pipe for worker in self._all] + [here] if forks else []
        process = context.Process(target=_serve, args=(there, others, self.function, os.getpid()), daemon=True)
        with _no_signals():
            process.start()
        there.close()
        worker = _Worker(process, here)
        self._all.append(worker)
        return worker


def _context() -> ForkContext | SpawnContext:
    """Fork where that is safe: it takes milliseconds, where a fresh interpreter takes as long as some files."""
    if sys.platform == "linux":
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _bury(worker: _Worker, limit: float) -> None:
    """Wait for the end of a process, and from ``limit`` on make it end."""
    worker.process.join(max(0.0, limit - time.monotonic()))
    if worker.process.exitcode is None:
        worker.process.kill()
        worker.process.join()
    worker.pipe.close()


def _cause(exitcode: int | None) -> str:
    if exitcode is None or exitcode >= 0:
        return f"the process that worked on the file ended (exit code {exitcode})"
    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    hint = ", out of memory?" if name == "SIGKILL" else ""
    return f"the process that worked on the file died ({name}{hint})"


def _serve(pipe: Connection, others: list[Connection], function: Callable[[Any], Any], parent: int) -> None:
    """A worker: answers tasks until the parent closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    gc.set_threshold(_NEW_OBJECTS)
    for other in others:  # copies of the parent's ends, which would keep the pipes of dead processes open
        other.close()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(pickle.dumps(function(pipe.recv()), pickle.HIGHEST_PROTOCOL))
    os._exit(0)


@contextmanager
def _no_signals() -> Iterator[None]:
    """Ctrl-C waits until a new process knows what to do about it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)  # not at once: what was started to execute kernels is ended on the way out


def _follow(parent: int) -> None:
    """End with the parent, also if it was killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)
