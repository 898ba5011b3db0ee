"""Buffers on the chip as values of the reader."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from tl2npu.triton.a5.ir import Core
from tl2npu.triton.read.values import Extension, Shape, Tile, Unusable, Value


@dataclass(frozen=True)
class Chip(Extension):
    """A buffer of ``bl.alloc``, or a part of one: ``start`` along each of its axes.

    ``buffer``: the tile of the IR that it is; a buffer in NZ has four axes here, and is a matrix there.
    """

    buffer: str
    shape: Shape
    start: Shape
    dtype: str
    space: str

    @property
    def nz(self) -> bool:
        """True for four axes."""
        return len(self.shape) == 4


@dataclass(frozen=True)
class Held(Extension):
    """``bl.to_buffer`` of a tensor: only copied from; ``nz``: it lies in NZ, ``tile`` is the matrix."""

    tile: Tile
    space: str
    nz: bool = False


@dataclass(frozen=True)
class Own:
    """The value of a name on one core, and the buffer that it is written to."""

    value: Value
    own: str | None


@dataclass(frozen=True)
class Apart(Unusable):
    """A name that a scope has set: what it is on each core that still knows it."""

    by: Mapping[Core, Own] = field(default_factory=dict, hash=False)


class Known(ast.expr):
    """A value where the reader looks for an expression."""

    _fields = ()

    def __init__(self, known: Value) -> None:
        super().__init__()
        self.known = known
