"""How many blocks a launch has, for every known way to call the factory."""

from __future__ import annotations

import math

from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Launch


def asked_for(file: FileKernels, located: Located, launch: Launch) -> list[int | None]:
    """One number for each known way to call the factory, None where it is not known."""
    found: list[int | None] = []
    for caller in callers_of(file, located, shapes=True):
        extents = [size.evaluate(caller.values) for size in launch.grid]
        known = [extent for extent in extents if extent is not None]
        found.append(math.prod(known) if len(known) == len(extents) else None)
    return found
