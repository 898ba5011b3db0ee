"""What the pipes of a core can do: bandwidths, cycles of instructions.

Sources: hw-native-sys/pto-isa, ``include/pto/costmodel``: ``arch_config.hpp`` (frequency; bandwidths in GiB/s of one
core), ``a2a3/formula_costmodel/formula_backend_compute.hpp`` (the cube: a head and a cycle for each fractal), the
comments in ``a2a3/cce_costmodel/cce_costmodel_vector_compute.hpp`` (vector instructions measured on a 910B3) and
``formula_params.csv`` (reductions and broadcasts). For A2 and A3 only; nothing public says them for A5.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_GIB = 1024.0**3


class Pipe(enum.Enum):
    """What works by itself in a core, by what it does."""

    LOAD_L1 = "GM to L1"
    LOAD_L0 = "L1 to L0"
    CUBE = "cube"
    FIXPIPE = "L0C to GM"
    LOAD_UB = "GM to UB"
    VECTOR = "vector"
    STORE_UB = "UB to GM"

    @property
    def of_cube(self) -> bool:
        """Of the cube core, not of a vector core."""
        return self in (Pipe.LOAD_L1, Pipe.LOAD_L0, Pipe.CUBE, Pipe.FIXPIPE)


@dataclass(frozen=True)
class Instruction:
    """A vector instruction: ``start`` cycles, and ``repeat`` for every 256 bytes of its result."""

    start: float
    repeat: float

    def cycles(self, elements: float, size: int) -> float:
        """Cycles for so many elements of ``size`` bytes each."""
        return self.start + self.repeat * -(-elements * size // VECTOR_BYTES)


VECTOR_BYTES = 256
WITH_NUMBER = Instruction(25, 1)
"""A tile and a number: sum, product, extremum; also copies, fills, casts, absolute values."""
TWO_TILES = Instruction(24, 2)
"""Sums, products, extrema, comparisons and choices of two tiles."""
FUNCTION = Instruction(31, 2)
"""``exp``, ``log``, ``sqrt``, ``rsqrt``."""
QUOTIENT = Instruction(31, 4)
BY_ROW = Instruction(37, 14)
"""A vector spread over the rows of a tile: ``repeat`` is that of a row."""
ROW_START, ROW_LEAST, ROW_REPEAT = 45.0, 7.0, 4.0
"""A reduction along rows: a start, and of each row at least 7 cycles, 4 for every 256 bytes."""
COLUMN_START, COLUMN_ROW = 16.0, 18.0
"""A reduction along columns: a start, and 18 cycles for each row of 256 bytes."""
ELEMENT = 20.0
"""One element by the scalar unit. Assumed: nothing public says it, and it waits for the vector unit besides."""

CUBE_HEAD, FRACTAL, FRACTAL_BYTES = 6.0, 16, 32


@dataclass(frozen=True)
class Rates:
    """One core of a device; ``bandwidth``: bytes for each cycle."""

    frequency: float
    bandwidth: Mapping[str, float]

    def transfer(self, way: str, size: float) -> float:
        """Cycles to move ``size`` bytes a way: ``"GM to L1"``, ``"L1 to L0A"``."""
        return size / self.bandwidth[way]

    def product(self, rows: int, columns: int, depth: int, size: int) -> float:
        """Cycles of the cube for a product; operands have ``size`` bytes an element."""
        deep = -(-depth // (FRACTAL_BYTES // size))
        fractals = -(-rows // FRACTAL) * -(-columns // FRACTAL) * deep
        return CUBE_HEAD + fractals * (2 if size == 4 else 1)


def _bytes_per_cycle(frequency: float, given: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType({way: rate * _GIB / frequency for way, rate in given.items()})


_FREQUENCY = 1.85e9
_A2_A3 = Rates(
    _FREQUENCY,
    _bytes_per_cycle(
        _FREQUENCY,
        {
            "GM to UB": 100.9,
            "GM to L1": 135.0,
            "UB to GM": 188.46,
            "L0C to GM": 70.0,
            "L0C to L1": 128.0,
            "L1 to L0A": 441.0,
            "L1 to L0B": 220.5,
        },
    ),
)
RATES: Mapping[str, Rates] = MappingProxyType({"A2": _A2_A3, "A3": _A2_A3})
"""By the name of the device."""
