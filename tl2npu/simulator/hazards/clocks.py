"""Vector clocks, and the table of events that they stamp.

A thread is a core, or one pipe of a core (``pipes.py``). A thread's own time moves on at its first access after a
release, so that a token says exactly which accesses lie before it, and a token without new accesses adds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Token = Any
"""What a release hands to an acquire: the clock of the releasing thread, as an int32 array."""


class Events:
    """Accesses, numbered from 2: 0 stands for "nothing wrote this", 1 for "written before the call".

    Columns: ``thread`` (block * threads per block + thread), ``time`` (the thread's own time), ``place`` (an index into
    the observer's places), ``atomic``.
    """

    def __init__(self) -> None:
        self.thread = np.zeros(1024, np.int32)
        self.time = np.zeros(1024, np.int32)
        self.place = np.zeros(1024, np.int32)
        self.atomic = np.zeros(1024, np.bool_)
        self.count = 2

    def add(self, thread: int, time: int, place: int, atomic: bool) -> int:
        """The number of a new event."""
        number = self.count
        if number == len(self.thread):
            for name in ("thread", "time", "place", "atomic"):
                column = getattr(self, name)
                setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
        self.thread[number] = thread
        self.time[number] = time
        self.place[number] = place
        self.atomic[number] = atomic
        self.count = number + 1
        return number


class Clocks:
    """The clocks of ``count`` threads. ``now[t, u]``: the time of thread u up to which thread t comes after it."""

    def __init__(self, count: int) -> None:
        self.now = np.zeros((count, count), np.int32)
        self.released = [True] * count

    def stamp(self, thread: int) -> int:
        """The thread's own time for an access made now."""
        if self.released[thread]:
            self.released[thread] = False
            self.now[thread, thread] += 1
        return int(self.now[thread, thread])

    def release(self, thread: int) -> Token:
        """Everything that the thread has done or comes after."""
        self.released[thread] = True
        return self.now[thread].copy()

    def acquire(self, thread: int, token: Token) -> bool:
        """The thread goes on after a token. False if that was known: the token orders nothing new."""
        mine = self.now[thread]
        if (token <= mine).all():
            return False
        self._join(thread, token)
        return True

    def follow(self, thread: int, other: int) -> None:
        """``thread`` goes on after what ``other`` has done so far."""
        if thread != other:
            self.released[other] = True
            self._join(thread, self.now[other])

    def _join(self, thread: int, token: Token) -> None:
        """Its own time stays, also behind one that takes all that it will do as done."""
        mine = self.now[thread]
        own = mine[thread]
        np.maximum(mine, token, out=mine)
        mine[thread] = own


def merged(tokens: list[Token]) -> Token:
    """After all of these."""
    result = tokens[0].copy()
    for token in tokens[1:]:
        np.maximum(result, token, out=result)
    return result
