"""Kernels of which each block computes one row: a block computes several.

An NPU has tens of cores, not thousands of blocks in flight, and its vector unit works on whole tiles: a vector of one
row leaves most of it idle, and cannot be split between the two vector cores.
"""

from __future__ import annotations

from dataclasses import replace

from tl2npu.kernel.symbolic import Sym, ceildiv, const, var
from tl2npu.tile.expr import Expr, axis, integers, loads, substituted, with_leading_index
from tl2npu.tile.ir import (
    AtomicAdd,
    Buffer,
    For,
    If,
    Kernel,
    Launch,
    Let,
    Map,
    Matmul,
    Move,
    Reduce,
    Region,
    Stmt,
    mapped,
    reads,
    statements,
    values,
    writes,
)


class DependentRows(Exception):
    """The rows of a kernel cannot be taken together; ``line`` of the statement that is in the way."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def with_row_blocks(kernel: Kernel, rows: int) -> Kernel:
    """The kernel with blocks of ``rows`` rows, where each block had one.

    A tile that belongs to a row gets a leading axis of ``rows``. Rows behind the last are read as zeros and not
    written, as regions that leave their tensor are. Raises :class:`DependentRows` where no axis of the grid counts rows
    that are computed alike and apart.
    """
    first: DependentRows | None = None
    for name, extent in zip(kernel.launch.names, kernel.launch.grid, strict=True):
        try:
            return _Rows(kernel, name, extent, rows).lifted()
        except DependentRows as found:
            first = first or found
    raise first or DependentRows(kernel.body[0].origin.line if kernel.body else 1, "the grid has no axis")


class _Rows:
    """One axis of the grid, whose blocks are taken together."""

    def __init__(self, kernel: Kernel, name: str, extent: Sym, rows: int) -> None:
        self.kernel, self.name, self.extent, self.rows = kernel, name, extent, rows
        self.params = {buffer.name: buffer for buffer in kernel.params}
        self.tiles = {buffer.name: buffer for buffer in kernel.tiles}
        for stmt in statements(kernel.body):
            self.judge_access(stmt)
        self.of_row = self.tiles_of_row()
        for stmt in statements(kernel.body):
            self.judge_use(stmt)

    def lifted(self) -> Kernel:
        grid = tuple(
            ceildiv(extent, const(self.rows)) if name == self.name else extent
            for name, extent in zip(self.kernel.launch.names, self.kernel.launch.grid, strict=True)
        )
        tiles = tuple(self.tile(tile) for tile in self.kernel.tiles)
        body = mapped(self.kernel.body, self.stmt)
        return replace(self.kernel, launch=Launch(grid, self.kernel.launch.names), tiles=tiles, body=body)

    def judge_access(self, stmt: Stmt) -> None:
        """Refuse an access to global memory that is neither of this row nor, for a load, the same for all rows."""
        line = stmt.origin.line
        if isinstance(stmt, AtomicAdd):
            raise DependentRows(line, "the blocks add to one place")
        if isinstance(stmt, Move):
            for region in (stmt.src, stmt.dst):
                if region.buffer in self.params:
                    row = self.row_axis(region, line)
                    if region is stmt.dst and (row is None or self.params[region.buffer].shape[row] != self.extent):
                        raise DependentRows(line, f"`{region.buffer}` has not one row for each block")
                elif any(start.depends_on(self.name) for start in region.start):
                    raise DependentRows(line, f"the place in `{region.buffer}` differs from row to row")
        elif isinstance(stmt, For) and stmt.count.depends_on(self.name):
            raise DependentRows(line, "the number of turns differs from row to row")
        for value in values(stmt):
            for item in loads(value):
                if any(part.depends_on(self.name) for part in item.index):
                    raise DependentRows(line, f"the element of `{item.buffer}` differs from row to row")

    def row_axis(self, region: Region, line: int) -> int | None:
        """The axis of a tensor that the block chooses a row of; None where all blocks read the same."""
        found = [number for number, start in enumerate(region.start) if start.depends_on(self.name)]
        if not found:
            return None
        if len(found) > 1 or region.start[found[0]] != var(self.name) or region.extent[found[0]] is not None:
            raise DependentRows(line, f"a block does not take one whole row of `{region.buffer}`")
        return found[0]

    def tiles_of_row(self) -> set[str]:
        """The tiles that hold something of one row."""
        found: set[str] = set()
        while True:
            more = {
                name
                for stmt in statements(self.kernel.body)
                for name in writes(stmt) & self.tiles.keys()
                if name not in found and (reads(stmt) & found or self.names_row(stmt))
            }
            if not more:
                return found
            found |= more

    def names_row(self, stmt: Stmt) -> bool:
        if isinstance(stmt, Move):
            return any(start.depends_on(self.name) for start in stmt.src.start)
        return any(part.depends_on(self.name) for value in values(stmt) for part in integers(value))

    def judge_use(self, stmt: Stmt) -> None:
        """Refuse what has no form for several rows at once."""
        line, used = stmt.origin.line, (reads(stmt) | writes(stmt)) & self.of_row
        if isinstance(stmt, (If, Let)) and (used or self.names_row(stmt)):
            raise DependentRows(line, "a scalar of the row decides what is done")
        if isinstance(stmt, Matmul) and used:
            raise DependentRows(line, "a product has matrices already")
        if isinstance(stmt, Move) and used and not (reads(stmt) | writes(stmt)) & self.params.keys() and len(used) < 2:
            raise DependentRows(line, f"`{stmt.src.buffer}` is copied for each row")
        if isinstance(stmt, Move) and stmt.dst.buffer in self.params and not used:
            raise DependentRows(line, f"every row of `{stmt.dst.buffer}` is the same")
        if isinstance(stmt, Move) and used and self.from_elsewhere(stmt):
            raise DependentRows(line, f"`{stmt.dst.buffer}` holds what all rows share, too")
        if isinstance(stmt, Reduce) and stmt.dst in self.of_row and stmt.src not in self.of_row:
            raise DependentRows(line, f"`{stmt.dst}` holds what all rows share, too")
        for name in used:
            if len(self.tiles[name].shape) > 1:
                raise DependentRows(line, f"`{name}` is a matrix already")

    def from_elsewhere(self, stmt: Move) -> bool:
        """A load that is the same for all rows, into a tile of a row."""
        return stmt.src.buffer in self.params and not self.names_row(stmt)

    def tile(self, tile: Buffer) -> Buffer:
        return replace(tile, shape=(const(self.rows), *tile.shape)) if tile.name in self.of_row else tile

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Map() if stmt.dst in self.of_row:
                return replace(stmt, value=self.value(stmt.value))
            case Reduce() if stmt.src in self.of_row:
                return replace(stmt, axis=stmt.axis + 1)
            case Move():
                return replace(stmt, src=self.region(stmt.src), dst=self.region(stmt.dst))
        return stmt

    def region(self, region: Region) -> Region:
        """The region of all rows of a block."""
        if region.buffer in self.of_row:
            start, extent = (const(0), *region.start), (const(self.rows), *region.extent)
            return replace(region, start=start, extent=extent)
        start = tuple(item * self.rows if item.depends_on(self.name) else item for item in region.start)
        extent = tuple(
            const(self.rows) if old.depends_on(self.name) else item
            for item, old in zip(region.extent, region.start, strict=True)
        )
        return replace(region, start=start, extent=extent)

    def value(self, value: Expr) -> Expr:
        """The value of an element in a tile with one axis more."""
        moved = {"@0": axis(1), self.name: var(self.name) * self.rows + axis(0)}
        return with_leading_index(substituted(value, moved), self.of_row, axis(0))
