"""Buffers, and the regions of them that statements name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.expr import Expr, Load, Value, binary, plain

_numbers = itertools.count()

GLOBAL = "global"
"""Memory scopes: ``global``, ``l1``, ``ub``, ``l0a``, ``l0b``, ``l0c``, ``shared`` (L1 or UB, by use), ``fragment``
(L0, by use), ``local``, ``var`` (one scalar), ``tmem``, ``barrier``."""


def _last() -> bool:
    return True


counts_from_the_end: Callable[[], bool] = _last
"""Whether -1 is the last index, asked where one is written; who traces kernels sets it.

A GPU's compiler takes it for that (``legalize_negative_index.cc``), an NPU's for an address before the first one:
``T.copy(X[-1, 0], x)`` becomes ``copy_gm_to_ub(x[0], X[-64], ...)``."""


@dataclass(eq=False)
class Buffer:
    """A tensor in global memory or a buffer on the chip.

    ``shape`` in elements; extents are integers, or expressions of symbolic extents for a parameter. ``name`` is the
    name in the source. ``strides`` in elements, None for a dense row-major layout. ``alias``: the buffer whose memory
    this one is a view of.
    """

    name: str
    shape: tuple[Value, ...]
    dtype: str
    memory: str
    strides: tuple[Value, ...] | None = None
    alias: Buffer | None = None
    line: int = 0
    offset: Value = 0
    shared: bool = False
    """Allocated with ``alloc_shared``: the compiler chose the memory."""
    number: int = field(default_factory=lambda: next(_numbers))

    def scope(self) -> str:
        """The memory; a method as in TVM."""
        return {"ub": "shared", "l1": "shared.dyn", "fragment": "local.fragment", "var": "local.var"}.get(
            self.memory, self.memory
        )

    @property
    def data(self) -> Buffer:
        """The memory, for ``T.Tensor(shape, dtype, buffer.data)``: the buffer itself stands for it."""
        return self

    @property
    def root(self) -> Buffer:
        """The buffer whose memory a view shares."""
        return self if self.alias is None else self.alias.root

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> Load | Region:
        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            f"an element of {self.name} is assigned in a function that is neither a prim_func nor a T.macro: "
            "the compiler does not see such an assignment"
        )

    def __iter__(self) -> Any:
        raise TypeError(f"the buffer {self.name} cannot be iterated over")

    def __repr__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.shape))}]:{self.dtype}@{self.memory}"


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a buffer: per axis a start and an extent. ``kept`` are the axes that were slices, not indices."""

    buffer: Buffer
    starts: tuple[Value, ...]
    extents: tuple[Value, ...]
    kept: tuple[bool, ...]

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Value, ...]:
        """The extents of all axes, 1 for an indexed one."""
        return self.extents


def whole(buffer: Buffer) -> Region:
    """All of a buffer."""
    return Region(buffer, (0,) * buffer.ndim, buffer.shape, (True,) * buffer.ndim)


def index(buffer: Buffer, key: Any) -> Load | Region:
    """``buffer[key]``: one element, or a region where the key has a slice or fewer items than axes.

    Raises IndexError for too many items and TypeError for a step or something that is no index.
    """
    items = list(key) if isinstance(key, (tuple, list)) else [key]
    if Ellipsis in [i for i in items if not isinstance(i, Expr)]:
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [slice(None)] * (buffer.ndim - len(items) + 1)
    if len(items) > buffer.ndim:
        raise IndexError(f"{buffer.name} has {buffer.ndim} axes, but {len(items)} indices are given")
    if not any(isinstance(i, slice) for i in items) and len(items) == buffer.ndim:
        return Load(buffer, tuple(_index(buffer, i, axis) for axis, i in enumerate(items)))
    items += [slice(None)] * (buffer.ndim - len(items))
    starts: list[Value] = []
    extents: list[Value] = []
    for axis, (item, size) in enumerate(zip(items, buffer.shape, strict=True)):
        if isinstance(item, slice):
            start, extent = _slice(buffer, item, size, axis)
        else:
            start, extent = _index(buffer, item, axis), 1
        starts.append(start)
        extents.append(extent)
    return Region(buffer, tuple(starts), tuple(extents), tuple(isinstance(i, slice) for i in items))


def _slice(buffer: Buffer, item: slice, size: Value, axis: int) -> tuple[Value, Value]:
    if item.step not in (None, 1):
        raise TypeError(f"{buffer.name}: a slice with a step (axis {axis}) is not supported")
    start = 0 if item.start is None else _index(buffer, item.start, axis)
    stop = size if item.stop is None else plain(item.stop)
    if isinstance(stop, int) and stop < 0:
        if not counts_from_the_end():
            raise TypeError(f"{buffer.name}: a slice that ends at {stop} (axis {axis})")
        stop = binary("+", size, stop)
    return start, difference(stop, start)


def _index(buffer: Buffer, item: Any, axis: int) -> Value:
    item = plain(item)
    if isinstance(item, bool) or not isinstance(item, (Expr, int)):
        raise TypeError(f"{buffer.name}: index {item!r} of axis {axis} is not an integer")
    if isinstance(item, Expr) and not dtypes.is_integer(item.dtype):
        raise TypeError(f"{buffer.name}: the index of axis {axis} is {item.dtype}, not an integer")
    stays = isinstance(item, Expr) or item >= 0 or not counts_from_the_end()
    value: Value = item if stays else binary("+", buffer.shape[axis], item)
    return value


def difference(stop: Value, start: Value) -> Value:
    """``stop - start``, as an integer where the symbolic parts cancel: ``(i + 1) * 4 - i * 4`` is 4."""
    from tl2npu.simulator.ir.linear import constant_difference

    found = constant_difference(stop, start)
    return binary("-", stop, start) if found is None else found


def product(extents: Sequence[Value]) -> Value:
    """The number of elements."""
    total: Value = 1
    for extent in extents:
        total = binary("*", total, extent)
    return total
