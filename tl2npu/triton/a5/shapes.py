"""Tiles with their axes split, joined and exchanged, and tiles in NZ.

In NZ a matrix of M x N lies in blocks of 16 x 16: element ``(m, n)`` at ``[n // 16, m // 16, m % 16, n % 16]``. Nothing
here divides: that an expression depends on ``16 * a + b`` only is shown by putting ``r - 16 * a`` for ``b``, after
which ``a`` must be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.tile.expr import Expr, axis, integers, substituted
from tl2npu.triton.read.values import Shape, Tile

BLOCK = 16
"""Rows and columns of a block of NZ."""


class NoView(Exception):
    """The elements of the tile do not lie as the new axes want it."""


def permuted(tile: Tile, order: Sequence[int]) -> Tile:
    """``tl.permute``: axis ``k`` of the result is axis ``order[k]``."""
    if sorted(order) != list(range(len(tile.shape))):
        raise NoView
    values = {f"@{old}": axis(new) for new, old in enumerate(order)}
    return Tile(tuple(tile.shape[old] for old in order), substituted(tile.expr, values))


def reshaped(tile: Tile, shape: Shape) -> Tile:
    """``tl.reshape`` where each old axis becomes some new ones, or some become one. Raises :class:`NoView`."""
    values: dict[str, Sym | int] = {}
    joined: list[tuple[list[int], int]] = []
    for old, new in _groups(tile.shape, shape):
        if len(old) == 1:
            values[f"@{old[0]}"] = _flat(shape, new)
        elif len(new) == 1:
            joined.append((old, new[0]))
        elif old:
            raise NoView
    expr = _joined(tile, joined, values) if joined else substituted(tile.expr, values)
    return Tile(shape, expr)


def _groups(old: Shape, new: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """The axes that have as many elements together before as after, the shortest groups."""
    at = to = 0
    while at < len(old) and to < len(new):
        one, other = [at], [to]
        left, right = old[at], new[to]
        at, to = at + 1, to + 1
        while left != right:
            if (right // left) * left == right and at < len(old):
                one, left, at = [*one, at], left * old[at], at + 1
            elif (left // right) * right == left and to < len(new):
                other, right, to = [*other, to], right * new[to], to + 1
            else:
                raise NoView
        yield one, other
    if any(extent.constant != 1 for extent in (*old[at:], *new[to:])):
        raise NoView
    yield from (([number], []) for number in range(at, len(old)))


def _flat(shape: Shape, axes: Sequence[int]) -> Sym:
    """The place along one axis by the places along those that it is split into."""
    total = const(0)
    for number in axes:
        total = total * shape[number] + (axis(number) if shape[number].constant != 1 else 0)
    return total


def _joined(tile: Tile, joined: list[tuple[list[int], int]], values: Mapping[str, Sym | int]) -> Expr:
    """With several axes as one: the last of them is the place less what the others make of it."""
    renamed = {f"@{number}": var(f"~{number}") for number in range(len(tile.shape))}
    expr = substituted(tile.expr, renamed)
    put: dict[str, Sym | int] = {f"~{name[1:]}": value for name, value in values.items()}
    outer: set[str] = set()
    for axes, place in joined:
        total = const(0)
        for number in axes[:-1]:
            total = (total + var(f"~{number}")) * tile.shape[number + 1]
        put[f"~{axes[-1]}"] = axis(place) - total
        outer |= {f"~{number}" for number in axes[:-1]}
    expr = substituted(expr, put)
    if any(value.names & outer for value in integers(expr)):
        raise NoView
    return expr


def from_nz(tile: Tile) -> Tile:
    """A tile in NZ, of four axes, as the matrix that it holds. Raises :class:`NoView`."""
    columns, rows, height, width = tile.shape
    if height.constant != BLOCK or width.constant != BLOCK:
        raise NoView
    return reshaped(permuted(tile, (1, 2, 0, 3)), (rows * BLOCK, columns * BLOCK))


def to_nz(tile: Tile) -> Tile:
    """A matrix as a tile in NZ. Raises :class:`NoView`."""
    rows, columns = (extent // BLOCK for extent in tile.shape)
    if (rows * BLOCK, columns * BLOCK) != tile.shape:
        raise NoView
    block = const(BLOCK)
    return permuted(reshaped(tile, (rows, block, columns, block)), (2, 0, 1, 3))
