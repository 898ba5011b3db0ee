"""What an emulated kernel works on: tensors and buffers on numpy, and the channels between the cores of a block."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

_TIMEOUT = 3.0
#: The running process: core ("C", "V", "probe"), block, vector core, machine, and what it has counted so far.
here = threading.local()


class Stuck(Exception):
    """A process waited for something that never comes, or did something impossible."""


class Ref:
    """A buffer with indices; a number where all of them are points."""

    def __init__(self, buf: Buf, index: Any) -> None:
        self.buf, self.index = buf, index if isinstance(index, tuple) else (index,)

    def __float__(self) -> float:
        return float(self.buf.array[tuple(int(i) for i in self.index)])

    __int__ = __index__ = lambda self: int(float(self))


for _name in "add sub mul truediv floordiv mod lt le gt ge eq ne radd rsub rmul rtruediv neg".split():

    def _operate(self: Ref, *other: Any, name: str = f"__{_name}__") -> Any:
        with np.errstate(all="ignore"):
            return getattr(np.float64(float(self)), name)(*(np.float64(float(o)) for o in other))

    setattr(Ref, f"__{_name}__", _operate)


class Buf:
    """A tensor or an on-chip buffer; every process has its own on-chip memory."""

    def __init__(self, array: np.ndarray, memory: str, name: str = "") -> None:
        self.array, self.memory, self.name = array, memory, name

    def __getitem__(self, index: Any) -> Ref:
        return Ref(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.memory in ("GM", "UB") and here.core == "V" and active():
            self.array[tuple(int(i) for i in (index if isinstance(index, tuple) else (index,)))] = float(value)


def active() -> bool:
    """Whether the process executes what it sees: not inside the other core's Scope."""
    scope = getattr(here, "scope", None)
    return scope is None or scope == here.core


def region(side: Any, other: Any) -> tuple[np.ndarray, tuple[slice, ...]]:
    """The part of a buffer that a copy touches; a start index takes the extents of the other side."""
    if isinstance(side, Buf):
        return side.array, tuple(slice(0, n) for n in side.array.shape)
    dims, array = list(side.index), side.buf.array
    if not any(isinstance(d, slice) for d in dims):
        theirs = _extents(other)
        theirs = [1] * (len(dims) - len(theirs)) + theirs[-len(dims) :]
        return array, tuple(slice(int(d), int(d) + n) for d, n in zip(dims, theirs, strict=True))
    return array, tuple(
        slice(int(d.start or 0), int(n if d.stop is None else d.stop))
        if isinstance(d, slice)
        else slice(int(d), int(d) + 1)
        for d, n in zip(dims, array.shape, strict=True)
    )


def _extents(side: Any) -> list[int]:
    if isinstance(side, Buf):
        return list(side.array.shape)
    if not any(isinstance(d, slice) for d in side.index):
        return [1]
    _, parts = region(side, side)
    return [part.stop - part.start for part in parts]


def squeezed(array: np.ndarray) -> np.ndarray:
    return array.reshape([n for n in array.shape if n != 1])


class Machine:
    """One block: channels, flags and scratch tensors between its processes."""

    def __init__(self, vectors: int, scratch: set[str]) -> None:
        self.vectors, self.scratch = vectors, scratch
        self.lock = threading.Condition()
        self.counts: dict[Any, int] = defaultdict(int)
        self.box: dict[Any, list[np.ndarray]] = defaultdict(list)
        self.errors: list[BaseException] = []

    def post(self, key: Any) -> None:
        with self.lock:
            self.counts[key] += 1
            self.lock.notify_all()

    def _until(self, ready: Callable[[], bool]) -> None:
        with self.lock:
            if not self.lock.wait_for(lambda: bool(self.errors) or ready(), _TIMEOUT) or self.errors:
                raise Stuck("deadlock")

    def send(self, key: Any, array: np.ndarray) -> None:
        with self.lock:
            self.box[key].append(array)
            self.lock.notify_all()

    def receive(self, key: Any) -> np.ndarray:
        here.local[key] += 1
        need = here.local[key]
        self._until(lambda: len(self.box[key]) >= need)
        return self.box[key][need - 1]

    def await_write(self, name: str) -> None:
        """Wait for the other core's i-th write (both vector cores' if that is the other one), or for the i-th flag."""
        here.local[name] += 1
        need = here.local[name]
        others = [("C", 0)] if here.core == "V" else [("V", vid) for vid in range(self.vectors)]
        self._until(lambda: all(self.counts[(name, *other)] >= need for other in others))
