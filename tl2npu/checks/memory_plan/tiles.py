"""The tiles that memory planning has to place, with their sizes: the kernel's own and those that the compiler adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tl2npu.dialects.lifetimes import Tile
from tl2npu.dialects.placement import aligned
from tl2npu.kernel.model import Buffer, Memory
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym

Halved = tuple[Sym, bool]
"""An extent in elements; True where each of two vector cores has half of it."""

Measure = Callable[[Sequence[int], int], int]
"""From extents in elements and the bytes of an element to bytes."""


def _all(extents: Sequence[int], item: int) -> int:
    return prod(extents) * item


@dataclass(frozen=True)
class Size:
    """``extents`` elements of ``dtype``, of which ``measure`` makes bytes.

    ``first``: it counts only where none before it counts.
    """

    extents: tuple[Halved, ...]
    dtype: str
    measure: Measure = _all
    first: bool = False

    def bytes(self, known: Mapping[str, int], words: Mapping[str, str]) -> int | None:
        """Bytes for given sizes and types; None where they are not known."""
        item = ITEM_SIZE.get(words.get(self.dtype, self.dtype))
        if item is None:
            return None
        values: list[int] = []
        for extent, halved in self.extents:
            value = extent.evaluate(known)
            if value is None:
                return None
            values.append(max(1, value // 2) if halved else value)
        return self.measure(values, item)


@dataclass(eq=False)
class PlannedTile:
    """A tile in a memory: the largest of ``sizes``; ``halved``: each vector core has half of that.

    ``of``: the user's buffer, None for a tile that the compiler adds; ``versions`` of it in a software pipeline.
    """

    name: str
    memory: Memory
    sizes: list[Size]
    of: Buffer | None = None
    halved: bool = False
    versions: int = 1

    @property
    def names(self) -> frozenset[str]:
        """The variables in its size."""
        return frozenset(name for size in self.sizes for extent, _ in size.extents for name in extent.variables())

    def bytes(self, known: Mapping[str, int], words: Mapping[str, str]) -> int | None:
        """Bytes for given sizes and types, whole blocks of 32; None where they are not known."""
        most = 0
        for size in self.sizes:
            found = size.bytes(known, words)
            if found is None:
                return None
            if not (size.first and most):
                most = max(most, found)
        if not self.sizes:
            return None
        return aligned(max(1, most // 2 if self.halved else most) * self.versions)


@dataclass(eq=False)
class Tiles:
    """All tiles of a kernel by number. ``halved``: the buffers of which each vector core has half the rows."""

    halved: set[Buffer]
    found: list[PlannedTile] = field(default_factory=list)
    _numbers: dict[Buffer, Tile] = field(default_factory=dict)
    _scratch: dict[str, Tile] = field(default_factory=dict)

    def buffer(self, buffer: Buffer) -> Tile:
        """The number of a buffer of the kernel."""
        if buffer not in self._numbers:
            extents = tuple(
                (extent, number == 0 and buffer in self.halved) for number, extent in enumerate(buffer.shape)
            )
            tile = PlannedTile(buffer.name, buffer.memory, [Size(extents, buffer.dtype)], buffer)
            self._numbers[buffer] = self._add(tile)
        return self._numbers[buffer]

    def temporary(self, role: str, extents: tuple[Halved, ...], dtype: str) -> Tile:
        """A new tile in UB that the compiler adds for a statement."""
        return self._add(PlannedTile(role, Memory.UB, [Size(extents, dtype)]))

    def scratch(self, size: Size, is_split: bool, name: str = "tmp_ub") -> Tile:
        """The one tile that all instructions with a scratch buffer share; as large as the largest of them asks for."""
        if name not in self._scratch:
            self._scratch[name] = self._add(PlannedTile(name, Memory.UB, [], halved=is_split))
        self.found[self._scratch[name]].sizes.append(size)
        return self._scratch[name]

    def _add(self, tile: PlannedTile) -> Tile:
        self.found.append(tile)
        return len(self.found) - 1
