"""The cores that run a kernel: names for each of them, and which of them run a statement.

With ``threads=2`` each of the two vector cores runs every statement in turn, the cube core runs its own once: that is
the order that the compiler's flags make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Operator
from tl2npu.evaluate.calls import Calls
from tl2npu.evaluate.crew import Member
from tl2npu.evaluate.expressions import Run
from tl2npu.evaluate.values import Array, Frame, Tile
from tl2npu.kernel.model import Memory
from tl2npu.kernel.style import NPUIR, Dialect
from tl2npu.source.names import Names


@dataclass(frozen=True)
class Layout:
    """What the reader says of the memories: by ``id`` of the call that allocates, where a buffer lies; those that two
    vector cores share by rows, with loops over their rows, by ``id`` and number of the variable."""

    memories: Mapping[int, Memory]
    halved: frozenset[int] = frozenset()
    gathered: frozenset[int] = frozenset()
    loops: frozenset[tuple[int, int]] = frozenset()
    cores: int = 1


class Cores(Calls):
    """The names of each core; the cores that are active."""

    def __init__(self, names: Names, dialect: Dialect, layout: Layout) -> None:
        super().__init__(names, dialect)
        self.layout = layout
        self.core = 0
        self.frames: dict[int, Frame] = {}
        self.active: tuple[int, ...] = tuple(range(layout.cores))
        self.block: tuple[int, ...] = ()
        self.grid: tuple[int, ...] | None = None
        self.shared: dict[int, Tile] = {}
        self.launches = 0
        self.bindings: dict[int, tuple[Operator, dict[str, Run]]] = {}
        self.threads: tuple[int, ...] = ()
        self.numbers: dict[int, Array] = {}
        self.member: Member | None = None
        self.is_in_scope = False

    @property
    def stores_scalars(self) -> bool:
        """Whether the core at work stores single elements of tensors: outside of a scope AUTO_CV_COMBINE gives these
        statements to the cube core, which runs them once (``CVCombineEmitter`` of ``ascend_combinecv.cc``)."""
        if self.dialect in ("gpu", NPUIR) or self.is_in_scope or self.lanes:
            return True
        return self.core == 0 if self.member is None else self.member.side == "C"

    def enter(self, core: int) -> None:
        """Go on as this vector core."""
        self.frames[self.core] = self.frame
        self.core, self.frame = core, self.frames[core]

    def each(self, run: Callable[[bool], None]) -> None:
        """Run something as each active core, True for the first."""
        first = True
        for core in self.active:
            if core != self.core:
                self.enter(core)
            run(first)
            first = False

    def alike(self, value: Callable[[], Any]) -> list[tuple[tuple[int, ...], Any]]:
        """The active cores, together where something has the same value for them."""
        found: list[tuple[tuple[int, ...], Any]] = []
        for core in self.active:
            self.enter(core)
            mine = value()
            for place, (cores, other) in enumerate(found):
                if _equal(mine, other):
                    found[place] = ((*cores, core), other)
                    break
            else:
                found.append(((core,), mine))
        return found

    def only(self, cores: tuple[int, ...], run: Callable[[], None]) -> None:
        """Run something with some of the cores."""
        before, self.active = self.active, cores
        self.enter(cores[0])
        run()
        self.active = before
        self.enter(before[0])

    def binding(self, axis: int) -> object:
        """``T.get_block_binding``: the number of the vector core, on Ascend."""
        if self.is_gpu:
            return self.block[axis] if axis < len(self.block) else 0
        return self.core if axis == 1 else self.block[0]

    def thread(self, axis: int) -> object:
        """``T.get_thread_binding``: from here on all threads of the block are lanes, which run in step."""
        if not self.is_gpu or axis >= len(self.threads):
            return 0
        if axis not in self.numbers:
            extent = self.threads[axis]
            self.numbers[axis] = np.arange(extent).reshape((extent, *[1] * len(self.lanes)))
            self.lanes = (extent, *self.lanes)
        return self.numbers[axis]

    @property
    def has_threads_alone(self) -> bool:
        """Whether the lanes are all threads of the block, outside of loops over elements."""
        return bool(self.lanes) and len(self.lanes) == len(self.numbers)

    def statements(self, body: Sequence[cst.CSTNode]) -> None:
        """Run statements as all active cores, for :mod:`tl2npu.evaluate.machine`."""
        raise NotImplementedError


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.shape(left) == np.shape(right) and bool(np.array_equal(left, right))
    return bool(left == right)
