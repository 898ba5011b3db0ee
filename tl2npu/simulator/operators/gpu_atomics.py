"""Atomic updates of GPU kernels: of tiles, of one element, and of one element for each iteration of a ``T.Parallel``.

The updates of one element take place one after the other, in the order of the iterations (on a GPU in any order); each
rounds to the element type. What lies outside of a global tensor is not updated (tilelang/language/atomic.py,
src/transform/legalize_safe_memory_access.cc).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.gpu_copies import overlap, valid
from tl2npu.simulator.operators.registry import semantics

Combine = Callable[[Any, Any], Any]
Place = tuple[Any, int, np.ndarray, tuple[Any, ...], int]
"""Access, buffer number, array, index, site: what an element inside a ``T.Parallel`` arrives as."""

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "number_maximum": np.fmax,
    "number_minimum": np.fmin,
    "bitwise_or": np.bitwise_or,
}


def _combine(A: Any, kind: str) -> Combine:
    if kind == "bitwise_or":
        return np.bitwise_or
    return getattr(A, kind)  # type: ignore[no-any-return]


def _typed(A: Any, value: Any, dtype: str) -> Any:
    """The operand in the element type of the destination, as the compiler casts it."""
    found = getattr(value, "dtype", None)
    if found is None:
        return A.number(value, dtype)
    return value if found == A.storage(dtype) else A.cast(np.asarray(value), dtype)


def _tile(kind: str) -> Callable[..., None]:
    def function(A: Any, dst: Operand, value: Any) -> None:
        if not isinstance(value, Operand):
            extents = dst.extents or (1,) * len(dst.starts)
            part = valid(dst, extents)
            if all(high > low for low, high in part):
                start = tuple(s + low for s, (low, _) in zip(dst.starts, part, strict=True))
                target = dst.view(start, tuple(high - low for low, high in part), "a")
                target[...] = _combine(A, kind)(target, _typed(A, value, dst.dtype))
            return
        found = overlap(value, dst)
        if found is not None:
            source, target = found.views("r", "a")
            new = _combine(A, kind)(target, _typed(A, source, dst.dtype).reshape(target.shape))
            target[...] = new

    return function


def update(A: Any, kind: str, place: Place, value: Any, mask: Any, dtype: str, previous: bool = False) -> Any:
    """One update for each lane that is on; ``previous``: what each lane found there."""
    access, number, array, index, site = place
    safe, lanes = access.lanes(number, array, index, mask, site)
    value = _typed(A, value, dtype)
    arrays = np.broadcast_arrays(*safe, np.True_ if lanes is None else lanes, value)
    chosen = arrays[-2]
    key = tuple(i[chosen] for i in arrays[:-2])
    access.touch(number, array, key, "a", site)
    values = arrays[-1][chosen]
    found = np.zeros(chosen.shape, array.dtype)
    if previous:
        found[chosen] = _ordered(A, kind, array, key, values)
        return found
    if A.name == "precise" and kind in _UFUNCS and (array.dtype.kind in "iuf"):
        _UFUNCS[kind].at(array, key, values)
    else:
        _ordered(A, kind, array, key, values)
    return None


def _ordered(A: Any, kind: str, array: np.ndarray, key: tuple[Any, ...], values: Any) -> Any:
    """The updates in rounds: the first of each element, the second of each, ... Gives what each found."""
    combine = _combine(A, kind)
    flat = np.ravel_multi_index(key, array.shape) if key else np.zeros(np.shape(values), int)
    order = np.argsort(flat, kind="stable")
    sorted_flat = flat[order]
    new = np.ones(len(order), bool)
    new[1:] = sorted_flat[1:] != sorted_flat[:-1]
    begins = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    turn = np.empty(len(order), int)
    turn[order] = np.arange(len(order)) - begins
    found = np.empty(len(order), array.dtype)
    for number in range(int(turn.max(initial=-1)) + 1):
        now = turn == number
        where = tuple(k[now] for k in key)
        found[now] = array[where]
        array[where] = combine(array[where], values[now])
    return found


def _lanes(kind: str) -> Callable[..., None]:
    def function(A: Any, dst: Place, value: Any, mask: Any = None, **_: Any) -> None:
        update(A, kind, dst, value, mask, A.name_of(dst[2]))

    return function


for _name, _kind in (
    ("atomic_add", "add"),
    ("atomic_max", "number_maximum"),
    ("atomic_min", "number_minimum"),
    ("atomic_or", "bitwise_or"),
):
    semantics(_name, reads="dst value", writes="dst", gpu=True, raw=True)(_tile(_kind))
    semantics(f"{_name}@lanes", reads="value", writes="dst", gpu=True)(_lanes(_kind))


def _several(width: int) -> None:
    """``atomic_addx2``, ``atomic_addx4``: consecutive elements of the last axis."""

    def function(A: Any, dst: Operand, value: Operand) -> None:
        extents = (1,) * (len(dst.starts) - 1) + (width,)
        target = dst.view(dst.starts, extents, "a")
        source = value.view(value.starts, (1,) * (len(value.starts) - 1) + (width,), "r")
        target[...] = A.add(target, _typed(A, source, dst.dtype).reshape(target.shape))

    def lanes(A: Any, dst: Place, value: Place, mask: Any = None, **_: Any) -> None:
        for step in range(width):
            access, number, array, index, site = value
            moved = (*index[:-1], index[-1] + step)
            read = access.gather(number, array, moved, mask, site)
            place = (*dst[:3], (*dst[3][:-1], dst[3][-1] + step), dst[4])
            update(A, "add", place, read, mask, A.name_of(dst[2]))

    semantics(f"atomic_addx{width}", reads="dst value", writes="dst", gpu=True, raw=True)(function)
    semantics(f"atomic_addx{width}@lanes", writes="dst value", gpu=True, raw=True)(lanes)


_several(2)
_several(4)


def previous(A: Any, kind: str, place: Place, value: Any, mask: Any, dtype: str, lanes: Any) -> Any:
    """``return_prev=True``: an update as an expression. ``lanes``: the shape of all lanes."""
    kind = {"max": "number_maximum", "min": "number_minimum", "or": "bitwise_or"}.get(kind, kind)
    index = tuple(np.broadcast_to(i, lanes) for i in place[3])
    value = np.broadcast_to(value, lanes)
    return update(A, kind, (*place[:3], index, place[4]), value, mask, dtype, previous=True)
