"""A region while the kernel runs, for operators that decide themselves how much of it they use (copies)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.simulator.machine.access import Access, Index


@dataclass(frozen=True)
class Operand:
    """``starts`` of all axes; ``extents`` None for a start index. ``memory`` and ``dtype`` as declared.

    ``late``: how many rows a region has is known while the kernel runs only.
    """

    access: Access
    number: int
    array: np.ndarray
    starts: Index
    extents: Index | None
    memory: str
    dtype: str
    site: int
    late: bool = False

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.access.names[self.number]

    def view(self, starts: Index, extents: Index, kind: str) -> np.ndarray:
        """A part of the buffer, with all axes."""
        return self.access.view(self.number, self.array, starts, extents, kind, self.site)

    def fail(self, message: str) -> Any:
        """Raises SimulatorError at the operator's line."""
        from tl2npu.simulator.errors import SimulatorError

        raise SimulatorError(message, self.access.sites[self.site])
