"""The tiles that memory planning has to place, with their sizes: the kernel's own and those that the compiler adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tl2npu.dialects.lifetimes import Tile
from tl2npu.dialects.placement import aligned
from tl2npu.kernel.model import Buffer, Memory, Op, Operand
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const

Halved = tuple[Sym, bool]
"""An extent in elements; True where each of two vector cores has half of it."""


@dataclass(frozen=True)
class Size:
    """``extents`` elements of ``dtype``; ``times`` and ``over`` scale the bytes, ``least`` bytes at least."""

    extents: tuple[Halved, ...]
    dtype: str
    times: int = 1
    over: int = 1
    least: int = 0

    def bytes(self, known: Mapping[str, int], words: Mapping[str, str]) -> int | None:
        """Bytes for given sizes and types; None where they are not known."""
        item = ITEM_SIZE.get(words.get(self.dtype, self.dtype))
        if item is None:
            return None
        count = 1
        for extent, halved in self.extents:
            value = extent.evaluate(known)
            if value is None:
                return None
            count *= max(1, value // 2) if halved else value
        return max(self.least, count * item * self.times // self.over)


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
        found = [size.bytes(known, words) for size in self.sizes]
        known_sizes = [size for size in found if size is not None]
        if not found or len(known_sizes) != len(found):
            return None
        most = max(known_sizes)
        return aligned((max(1, most // 2) if self.halved else most) * self.versions)


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


def scratch_of(stmt: Op) -> tuple[str, Size] | None:
    """The scratch tile of an instruction, by name, with its size before the split (``allocate_tmp_buffer.cc``)."""
    name = stmt.op.name.removeprefix("tile.")
    if stmt.op.name.startswith("reduce") and name in ("reduce", "reduce_max", "reduce_min", "reduce_sum"):
        return _scaled(stmt, "buffer")
    if not stmt.op.name.startswith("tile."):
        return None
    if name in ("clamp", "clamp_max", "clamp_min"):
        return _scaled(stmt, "buffer")
    if name == "round":
        return _scaled(stmt, "buffer", least=256)
    if name in ("sin", "cos"):
        return _scaled(stmt, "src", 2)
    if name == "pow":
        return _scaled(stmt, "src0", 2)
    if name == "sigmoid":
        return _scaled(stmt, "src")
    if name in ("bitwise_xor", "bilinear_interpolation"):
        return _scaled(stmt, "src0")
    if name in ("reduce_sum_experiment", "reduce_sum_mask_experiment"):
        return _scaled(stmt, "src")
    if name == "broadcast":
        return _scaled(stmt, "dst", over=4)
    if name == "merge_sort":
        return _scaled(stmt, "dst")
    if name in ("sort", "topk"):
        return _scaled(stmt, "src", 8 if name == "sort" else 4, typed=True)
    return None


def _scaled(
    stmt: Op, name: str, times: int = 1, over: int = 1, least: int = 0, *, typed: bool = False
) -> tuple[str, Size] | None:
    operand = stmt.args.get(name)
    if not isinstance(operand, Operand):
        return None
    dtype = operand.buffer.dtype
    size = Size(tuple((extent, False) for extent in extents_of(operand)), dtype, times, over, least)
    return f"tmp_ub_{dtype}" if typed else "tmp_ub", size


def extents_of(operand: Operand) -> tuple[Sym, ...]:
    """The elements that an operand means; all of its buffer where a start alone is given."""
    dims = operand.dims
    if dims is None or all(dim.extent is None for dim in dims):
        return operand.buffer.shape
    return tuple(const(1) if dim.extent is None else dim.extent for dim in dims)
