"""TL720: the longest rows that fit, where a tile has whole rows of a tensor and nothing says how long they are.

Norms and softmaxes are such kernels; they run on rows of 4,096 to 16,384 elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.checks.memory_plan.capacity import Needs, Overflow
from tl2npu.checks.subject import Subject
from tl2npu.kernel.factories.callers import Caller
from tl2npu.source.tree import calls_in, nodes_of

_LENGTHS = (4096, 8192, 16_384)
_SHORT, _STEP, _OTHERS = 2048, 16, 64


@dataclass(frozen=True)
class Limit:
    """The largest size that fits for certain, in steps of 16 or, as a power of two, of its double."""

    name: str
    size: int
    overflow: Overflow
    others: bool

    def __str__(self) -> str:
        rest = f", with {_OTHERS} for the rest" if self.others else ""
        return f"`{self.name}` = {self.size:,}{rest}"


def limits(subject: Subject, needs: Needs, caller: Caller) -> Iterator[Limit]:
    """For each length of a row that a caller leaves open, from which on it does not fit, if such rows are usual."""
    names = needs.unknown(caller.values, caller.words)
    rounded = _rounded_up(subject, names)
    for name in (name for name in names if name in _extents(subject) | rounded):

        def overflow(size: int, name: str = name) -> Overflow | None:
            sizes = {**caller.values, **dict.fromkeys(names, _OTHERS), name: size}
            if not subject.takes(sizes):
                return None  # the launch takes another number of threads
            return next(needs.overflows(sizes, caller.words), None)

        lengths = (length for length in _LENGTHS if overflow(length) is not None)
        if all(size is not None and overflow(size) is None for size in (values.get(name) for values in subject.shown)):
            continue
        if overflow(_SHORT) is not None or (high := next(lengths, None)) is None:
            continue
        low, found = high // 2, overflow(high)
        while name not in rounded and high - low > _STEP:
            middle = (low + high) // 2 // _STEP * _STEP
            low, high = (middle, high) if overflow(middle) is None else (low, middle)
        assert found is not None
        yield Limit(name, low, found, len(names) > 1)


def _extents(subject: Subject) -> frozenset[str]:
    """Sizes that are lengths of rows of tensors."""
    return frozenset(str(buffer.shape[-1]) for buffer in subject.kernel.params if buffer.shape)


def _rounded_up(subject: Subject, names: tuple[str, ...]) -> frozenset[str]:
    """Parameters of the factory for which a call in the file passes a size, rounded up to a power of two."""
    factory = subject.located.factory
    if factory is None:
        return frozenset()
    found: set[str] = set()
    for call in calls_in(subject.file.index.module):
        if isinstance(call.func, cst.Name) and call.func.value == factory.node.name.value:
            for arg in call.args:
                inner = [c for c in nodes_of(arg, cst.Call) if subject.file.names.resolve(c.func) == _ROUNDED]
                if arg.keyword is not None and arg.keyword.value in names and inner:
                    found.add(arg.keyword.value)
    return frozenset(found)


_ROUNDED = "tilelang.next_power_of_2"
