"""Further inputs for a launch of a Triton kernel, as ``further.py`` has them for those of TileLang.

Integers stay in the range that the script gave them: they are shuffled, or kept where they ascend. Sizes are in
``triton_sizes.py``; a scalar that goes with no tensor becomes another number. What Triton's interpreter finds fault
with is not compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from tl2npu.interpreter.launch import Launch
from tl2npu.simulator.ir import dtypes
from tl2npu.verify.drawing import FAR, FURTHER, PRIMES, SIZES, Kind, Sizes, far, generator, limits_of, numbers
from tl2npu.verify.further import said
from tl2npu.verify.relaunch import in_order, other_number, prime_beside

LARGEST, BLOCKS = 1 << 20, 512
"""Launches with more elements, or blocks, are compared on the inputs of the script only: the interpreter is slow."""
SECONDS = 20.0
"""CPU time for the further launches of one kernel."""
_CALLS = 2
"""As many launches of a kernel with other sizes or constants are repeated."""
_MOST_SIZES = 4
_NARROW: tuple[Kind, ...] = ("small whole numbers", "infinities", "NaN")
"""Kinds of values for kernels of halves: where they are rounded on the way differs, and shows where terms cancel."""
_SUMS = ("sum", "max", "min", "dot", "reduce", "argmax", "argmin", "softmax", "cumsum", "associative_scan")


@dataclass(frozen=True)
class Again:
    """One repeated launch: the kind of its values, another size, other scalars."""

    kind: Kind
    sized: Sized | None = None
    free: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Values:
    """The elements of the tensors of a repeated launch."""

    launch: Launch
    kind: Kind
    seed: int
    sizes: Sizes

    def __call__(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Those of one tensor."""
        dtype, seen = self.launch.tensors[name].dtype, self.launch.inputs[name]
        rng = generator(self.seed, name, self.kind)
        if dtypes.is_float(dtype):
            sign = far(self.kind, list(self.launch.tensors).index(name))
            return numbers(dtype, shape, rng, self.kind, self.sizes, sign)
        found = np.resize(seen, shape)
        return found if not seen.size or in_order(seen) else rng.permutation(found.reshape(-1)).reshape(shape)


Attempt = Callable[[Any, Launch, Again, dict[str, Any], Values], bool]
"""Runs a launch again and keeps it; False where the old kernel cannot take it."""


class TritonFurther:
    """Repeats launches; ``say`` is told on what."""

    def __init__(self, seed: int, attempt: Attempt, say: Callable[[str], None]) -> None:
        self.seed, self.attempt, self.say = seed, attempt, say
        self._known: dict[str, list[Any]] = {}

    def of_launch(self, launching: Any, launch: Launch) -> None:
        """Repeat a launch that has run, once for each kernel with its sizes and constants."""
        shapes = [tensor.shape for tensor in launch.tensors.values()]
        known = self._known.setdefault(launch.kernel, [])
        key = launch.constexprs, shapes, _integers(launch)
        if key in known or len(known) == _CALLS or not launch.written or launch.dense or launch.again:
            return
        known.append(key)
        if prod(launch.grid) > BLOCKS or sum(map(prod, shapes)) > LARGEST:
            self.say(f"{launch.kernel}: its launches are large, and compared on the script's inputs only")
            return
        names = named_in(launching.function)
        done: list[str] = []
        end = time.process_time() + SECONDS
        for attempts in _attempts(launch, names, self.seed):
            for again in attempts:
                if time.process_time() > end:
                    break
                changed: dict[str, Any] = {**(again.sized.scalars if again.sized else {}), **again.free}
                values = Values(launch, again.kind, self.seed, sizes_of(launch, names))
                if self.attempt(launching, launch, again, changed, values):
                    done.append(f"{again.kind} ({said(changed)})" if changed else again.kind)
                    break
        if done:
            self.say(f"{launch.kernel}: also on {', '.join(done)}")


def _attempts(launch: Launch, names: set[str], seed: int) -> Iterator[list[Again]]:
    """What is tried: of each list the first that the old kernel takes."""
    kinds = [dtypes.bits(tensor.dtype) for tensor in launch.tensors.values() if dtypes.is_float(tensor.dtype)]
    reduces = bool(names & {*_SUMS})
    for kind in FURTHER:
        if (min(kinds, default=32) < 32 and kind not in _NARROW) or (kind in FAR and not reduces) or not kinds:
            continue
        free = _free(launch, kind, seed) if kind in PRIMES else {}
        yield [Again(kind, None, free), *([Again(kind)] if free else [])]
    if "num_programs" not in names and not any("atomic" in name for name in names):
        for _, sized in zip(range(_MOST_SIZES), other_sizes(launch), strict=False):
            yield [Again(SIZES, sized)]


def _free(launch: Launch, kind: Kind, seed: int) -> dict[str, Any]:
    """Other values for the scalars that go with no tensor."""
    numbers_of_host = explained(launch)
    free = {
        name: other_number(value, generator(seed, name, kind), kind)
        for name, value in launch.scalars.items()
        if type(value) is float or (type(value) is int and (value == 0 or value not in numbers_of_host))
    }
    return {name: value for name, value in free.items() if value != launch.scalars[name]}


def named_in(function: Any) -> set[str]:
    """The names in the code of a kernel, and in that of the functions of its module that it calls."""
    found: set[str] = set()
    waiting = [getattr(function, "fn", function)]
    while waiting:
        code = getattr(waiting.pop(), "__code__", None)
        for name in getattr(code, "co_names", ()):
            if name not in found:
                found.add(name)
                inner = getattr(function, "__globals__", {}).get(name)
                waiting += [getattr(inner, "fn", inner)] if inner is not None else []
    return found


def sizes_of(launch: Launch, names: set[str]) -> Sizes:
    """How large numbers a kernel can take, by what it computes; ``drawing.Sizes`` says why."""
    least = max((limits_of(dtype).minexp for dtype in launch.rounded), default=-1074)
    if names & {"exp", "exp2", "softmax", "sigmoid"} and names & {*_SUMS}:
        return Sizes(10, 2.0 if "dot" in names else 8.0, least)
    return Sizes(50 if "dot" in names else 1024, 8.0, least)


# Other sizes for a launch of a Triton kernel: what the host works out from a size changes with it.
#
# A Triton kernel is given sizes, strides, counts of elements and a grid as plain numbers. Which of them belong together
# is read from the tensors of the launch: a number that is a product of extents is that product. Where a number may have
# come about in two ways, the size is left alone.

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


def _integers(launch: Launch) -> dict[str, int]:
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
    passed = {*_integers(launch).values()}
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
    if (own - products - {0, 1, size}) & {*_integers(launch).values()}:
        return None

    def changed(number: int, others: set[int]) -> int | None:
        within = number % size == 0 and number // size in products
        if within and number in others:
            return None
        return number // size * new if within else number

    scalars = {name: changed(value, products) for name, value in _integers(launch).items() if value > 1}
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
