"""The results of the cost model: frozen, and made of plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Load:
    """What a pipe does for one block: ``cycles``, the ``size`` in bytes that it moves, its instructions (``count``)."""

    pipe: str
    of_cube: bool
    cycles: float
    size: float
    count: float


@dataclass(frozen=True)
class Advice:
    """What makes a kernel slow: a code (TL951 to TL956), its line in the text, a message."""

    code: str
    line: int
    message: str


@dataclass(frozen=True)
class Estimate:
    """One kernel for one set of sizes.

    ``serial``: cycles of a block if the pipes of a core wait for each other, as automatic synchronisation makes them;
    ``overlapped``: if nothing waits; ``waiting``: cycles in which the busier core waits for the other one, None where
    the kernel itself names its cores, and this is not known. ``blocks``, ``cores``: None where they are not known; a
    core is a cube and two vector cores. ``filled``: of each on-chip memory the bytes that are wanted at once, and those
    that there are. ``unknown``: what was assumed. ``line``: of its file, 0 if not asked for. ``advice``: what makes it
    slow.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    device: str
    frequency: float
    loads: tuple[Load, ...]
    serial: float
    overlapped: float
    waits: bool
    waiting: float | None
    blocks: int | None
    cores: int | None
    both_vector_cores: bool
    filled: tuple[tuple[str, int, int], ...]
    unknown: tuple[str, ...]
    line: int = 0
    advice: tuple[Advice, ...] = ()

    @property
    def is_sized(self) -> bool:
        """False if a size counts as one because nothing tells it."""
        return not any(said.endswith("is not known") for said in self.unknown)

    @property
    def expected(self) -> float:
        """Cycles of one block."""
        return self.serial + (self.waiting or 0.0) if self.waits else self.overlapped

    def over(self, old: Estimate) -> float | None:
        """Its time over that of the old kernel, without what is known of one of them only; None if that takes none."""
        if not old.expected:
            return None
        both = self.waiting is not None and old.waiting is not None
        left, right = (one if both else replace(one, waiting=None) for one in (self, old))
        return left.expected / right.expected

    @property
    def fits(self) -> bool:
        """False if a memory is too small."""
        return all(need <= size for _, need, size in self.filled)

    @property
    def bound(self) -> str:
        """The pipe that has most to do; empty for a kernel that does nothing."""
        return max(self.loads, key=lambda load: load.cycles).pipe if self.loads else ""

    @property
    def rounds(self) -> int | None:
        """How many blocks a core does one after the other."""
        return math.ceil(self.blocks / self.cores) if self.blocks is not None and self.cores else None

    @property
    def microseconds(self) -> float | None:
        """Time of a launch without what the host adds; None where the grid is not known."""
        return self.expected * self.rounds / self.frequency * 1e6 if self.rounds is not None else None


@dataclass(frozen=True)
class Sides:
    """One kernel, called one way. ``old`` is None where it is written for a GPU, ``new`` where it is not migrated."""

    old: Estimate | None
    new: Estimate | None

    @property
    def kernel(self) -> str:
        """Its name."""
        return next(side.kernel for side in (self.new, self.old) if side is not None)

    @property
    def ratio(self) -> float | None:
        """The new time over the old one; None without both."""
        return None if self.old is None or self.new is None else self.new.over(self.old)
