"""What names stand for while a kernel is evaluated: tiles, parts of them, variables, functions, and frames of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.kernel.model import CUBE_MEMORY, Memory

Array = Any
"""A number, or a NumPy array with one value for each lane of the ``T.Parallel`` loops around."""


FAILS = (ArithmeticError, ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError)
"""What Python raises where a value has no meaning."""


class NotChecked(Exception):
    """Something has no meaning here, or is not known; the message says what, for a person."""


class Fault(NotChecked):
    """No machine can run the kernel at these sizes: a name has no value, operands do not fit. One that was written
    must not be like this."""


@dataclass(eq=False)
class Tile:
    """A tensor or a buffer. ``data`` has floats of 64 bits, whatever ``dtype`` is, integers or bools.

    ``halved``: each vector core has half of its rows, which is all that ``data`` holds; ``gathered``: it has all, and a
    row of a halved loop, as a whole index of the other side of a copy, is one of its own (compiler-facts 1).
    ``sums``: lanes may add to one element (``T.alloc_reducer``). ``local``: each lane has all elements for itself,
    which are in ``lanes``. ``bits``: the flat mask that a comparison left in it. ``written``: some of it was stored.
    ``slots``: of a workspace, whose readers wait for what is written to it. ``left``: single elements behind it were
    read, which a GPU takes for 0.
    ``on_cube``: it lies in a memory of the cube core.
    """

    name: str
    dtype: str
    memory: Memory
    data: np.ndarray[Any, Any]
    halved: bool = False
    gathered: bool = False
    sums: bool = False
    local: bool = False
    bits: np.ndarray[Any, Any] | None = None
    lanes: dict[tuple[int, ...], Array] = field(default_factory=dict)
    written: bool = False
    slots: Any = None
    left: bool = False
    on_cube: bool = field(init=False)

    def __post_init__(self) -> None:
        self.on_cube = self.memory in CUBE_MEMORY

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of what this core has."""
        found: tuple[int, ...] = self.data.shape
        return found

    @property
    def in_global(self) -> bool:
        """True for a tensor."""
        return self.memory is Memory.GM

    def touch(self) -> None:
        """Something is about to be stored: a tensor gets memory of its own, a mask is lost."""
        if not self.written and self.in_global:
            self.data = self.data.copy()
        self.bits, self.written = None, True


@dataclass(eq=False)
class Cell:
    """A variable (``T.alloc_var``)."""

    name: str
    dtype: str
    value: Array


@dataclass(eq=False)
class Region:
    """A tile, from ``starts`` on; ``extents`` is None where only indices are given: an element, or where a part begins.
    """

    tile: Tile
    starts: list[Array]
    extents: list[int] | None

    @classmethod
    def whole(cls, tile: Tile) -> Region:
        """All of a tile."""
        return cls(tile, [0] * len(tile.shape), list(tile.shape))

    @property
    def is_element(self) -> bool:
        """Indices alone, as many as there are axes."""
        return self.extents is None and len(self.starts) == len(self.tile.shape)

    @property
    def size(self) -> int:
        """The number of elements of a part."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def shape(self) -> Sequence[int]:
        """The extents of a part; raises :class:`NotChecked` where only its beginning is given."""
        if self.extents is None:
            raise NotChecked(f"the extent of a part of `{self.tile.name}` is not given")
        return self.extents

    def view(self) -> np.ndarray[Any, Any]:
        """The elements, to be read or written in place; what lies outside of the tile is left out."""
        if self.tile.lanes:
            raise NotChecked(f"`{self.tile.name}` has other elements for each lane")
        slices = []
        for start, extent in zip(self.starts, self.shape, strict=False):
            low = whole_number(start, self.tile.name)
            if low < 0:
                raise Fault(f"a part of `{self.tile.name}` begins at {low}")
            slices.append(slice(low, low + extent))
        return self.tile.data[tuple(slices)]

    def flat(self, count: int) -> np.ndarray[Any, Any]:
        """``count`` elements from where the part begins, as instructions take them; one element for all."""
        if self.extents is None:
            place = tuple(whole_number(start, self.tile.name) for start in self.starts)
            place += (0,) * (len(self.tile.shape) - len(place))
            values = self.tile.data.reshape(-1)[int(np.ravel_multi_index(place, self.tile.shape, mode="clip")) :]
        else:
            values = self.view().reshape(-1)
        if len(values) < count:
            if len(values) != 1:
                raise Fault(f"an operator takes {count} elements of `{self.tile.name}`, which has {len(values)}")
            return values
        return values[:count]

    def assign(self, values: Array) -> None:
        """Store values, converted to the element type of the tile."""
        self.tile.touch()
        target = self.view()
        found = arithmetic.cast(np.asarray(values), self.tile.dtype)
        target[...] = found.reshape(target.shape) if found.size == target.size else found


@dataclass(frozen=True, eq=False)
class Function:
    """A macro or a plain function, and the names around it."""

    node: cst.FunctionDef | cst.Lambda
    frame: Frame


@dataclass(frozen=True)
class Unknown:
    """A name whose value cannot be told, and why."""

    why: str


class Row(int):
    """The variable of a loop that turns half as often, as two cores share its rows; ``turns`` are those of one core."""

    turns: int = 0

    @classmethod
    def of(cls, value: int, turns: int) -> Row:
        """The number of a row among those of one core."""
        made = cls(value)
        made.turns = turns
        return made


class Frame:
    """Names in scope, innermost first."""

    def __init__(self, parent: Frame | None = None, values: dict[str, object] | None = None) -> None:
        self.parent = parent
        self.values: dict[str, object] = {} if values is None else values
        self.places: set[str] = set()
        """Parameters that stand for the place that the caller names (``T.Ref``)."""

    def find(self, name: str) -> object:
        """The value of a name; None for one that is not bound."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.parent
        return None


def whole_number(value: object, of: str) -> int:
    """An index that is one number."""
    if type(value) is int:
        return value
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    raise NotChecked(f"an index or a size of `{of}` is not a whole number")
