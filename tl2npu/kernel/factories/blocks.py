"""How many blocks a launch has, for every known way to call the factory."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tl2npu.kernel.factories.callers import Values
from tl2npu.kernel.model import Launch


def asked_for(launch: Launch, ways: Iterable[Values]) -> list[int | None]:
    """One number for each of these integers, None where it is not known."""
    found: list[int | None] = []
    for values in ways:
        known = [extent for size in launch.grid if (extent := size.evaluate(values)) is not None]
        found.append(math.prod(known) if len(known) == len(launch.grid) else None)
    return found
