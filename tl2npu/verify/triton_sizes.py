"""Other sizes for a launch of a Triton kernel: what the host works out from a size changes with it.

A Triton kernel is given sizes, strides, counts of elements and a grid as plain numbers. Which of them belong together
is read from the tensors of the launch: a number that is a product of extents is that product. Where a number may have
come about in two ways, the size is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod

from tl2npu.interpreter.launch import Launch
from tl2npu.verify.relaunch import prime_beside

_FARTHEST = 64
"""How many primes are tried."""


@dataclass(frozen=True)
class Sized:
    """A launch with another size: shapes of all tensors, and the scalars that change, by name.

    ``size``: what it was, and what it is.
    """

    size: tuple[int, int]
    shapes: dict[str, tuple[int, ...]]
    scalars: dict[str, int]
    grid: tuple[int, int, int]


def integers(launch: Launch) -> dict[str, int]:
    """The scalars that are integers."""
    return {name: value for name, value in launch.scalars.items() if type(value) is int}


def other_sizes(launch: Launch) -> Iterator[Sized]:
    """The launch with each of its sizes once, the largest first: extents that are passed as scalars, and counts of the
    elements of tensors whose extents are not."""
    tensors = launch.tensors.values()
    if not all(tensor.contiguous and not tensor.offset for tensor in tensors):
        return
    if len({tensor.storage for tensor in tensors}) < len({*tensors}):
        return  # parts of one memory
    passed = {*integers(launch).values()}
    shapes = {name: tensor.shape for name, tensor in launch.tensors.items()}
    flat = {
        name: (prod(shape),) if prod(shape) in passed and not passed & {*shape} else shape
        for name, shape in shapes.items()
    }
    extents = {extent for shape in flat.values() for extent in shape if extent > 1}
    for size in sorted(extents & passed, reverse=True):
        found = _with(launch, flat, size, extents - {size})
        if found is not None:
            yield found


def explained(launch: Launch) -> set[int]:
    """Every number that the host may have worked out from the extents, strides and constants of a launch."""
    extents = {extent for tensor in launch.tensors.values() for extent in tensor.shape if extent > 1}
    strides = {stride for tensor in launch.tensors.values() for stride in tensor.strides}
    tiles = {value for value in launch.constexprs.values() if type(value) is int and value > 1}
    near = {n for extent in extents for n in _near(extent, tiles | extents)}
    return strides | near | _products(extents) | {extent + other for extent in extents for other in extents}


def _near(size: int, tiles: Collection[int]) -> list[int]:
    """What is often worked out from one size, in one order."""
    found = [size - 1, size + 1, size // 2, size * 2, 1 << (size - 1).bit_length()]
    return [*found, *(part for t in tiles for part in (size // t, -(-size // t), -(-size // t) * t))]


def _products(numbers: set[int]) -> set[int]:
    return {prod(some) for count in range(4) for some in combinations(sorted(numbers), count)}


def _with(launch: Launch, shapes: dict[str, tuple[int, ...]], size: int, rest: set[int]) -> Sized | None:
    """The launch with a prime in place of a size; None where it is not clear what else changes."""
    tiles = {value for value in launch.constexprs.values() if type(value) is int and value > 1}
    products = _products(rest)
    counts = {-(-extent // tile) for extent in (*rest, size) for tile in tiles}
    new = _prime(size, tiles)
    if new is None:
        return None
    own = {n for n, other in zip(_near(size, tiles), _near(new, tiles), strict=True) if n != other}
    if (own - products - {0, 1, size}) & {*integers(launch).values()}:
        return None

    def changed(number: int, others: set[int]) -> int | None:
        within = number % size == 0 and number // size in products
        if within and number in others:
            return None
        return number // size * new if within else number

    scalars = {name: changed(value, products) for name, value in integers(launch).items() if value > 1}
    grid = tuple(changed(extent, products | counts) if extent > 1 else extent for extent in launch.grid)
    if None in scalars.values() or None in grid:
        return None
    changed_shapes = {
        name: tuple(new if extent == size else extent for extent in shape) for name, shape in shapes.items()
    }
    x, y, z = grid
    assert x is not None
    assert y is not None
    assert z is not None
    known = {name: value for name, value in scalars.items() if value is not None and value != launch.scalars[name]}
    return Sized((size, new), changed_shapes, known, (x, y, z))


def _prime(size: int, tiles: set[int]) -> int | None:
    """A prime near a size that needs as many tiles of each kind, so that the grid stays as it is."""
    for below in (True, False):
        found = size
        for _ in range(_FARTHEST):
            found = prime_beside(found, below, set())
            if found == size or (below and found > size):
                break
            if all(-(-found // tile) == -(-size // tile) for tile in tiles):
                return found
    return None
