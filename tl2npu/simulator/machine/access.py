"""How running code reaches memory. Every access is checked against the bounds of its buffer.

``Access`` is the plain one; ``hazards.Watched`` records accesses as well. All methods take the buffer's number, its
array, and the site (line) of the statement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.stmt import Site

Index = tuple[Any, ...]


class OutOfBounds(SimulatorError):
    """An access outside of a buffer."""


class Access:
    """Bounds-checked access. ``names`` maps buffer numbers to names, ``sites`` are the lines of the program."""

    def __init__(self, names: dict[int, str], sites: list[Site]) -> None:
        self.names = names
        self.sites = sites
        self.core: Any = None

    # regions

    def view(self, number: int, array: np.ndarray, starts: Index, extents: Index, kind: str, site: int) -> np.ndarray:
        """A region as a view with all axes. ``kind``: ``r``, ``w``, ``rw``, ``a`` (atomic)."""
        key = tuple(slice(s, s + e) for s, e in zip(starts, extents, strict=True))
        for start, extent, size in zip(starts, extents, array.shape, strict=True):
            if start < 0 or start + extent > size or extent < 0:
                self.outside(number, array, starts, extents, site)
        self.touch(number, array, key, kind, site)
        return array[key]

    def whole(self, number: int, array: np.ndarray, kind: str, site: int) -> np.ndarray:
        """All of a buffer."""
        return array

    def tail(self, number: int, array: np.ndarray, index: Index, kind: str, site: int) -> np.ndarray:
        """Everything from an element on, flat: what an operator sees that is given an address."""
        first = int(np.ravel_multi_index(index, array.shape))
        flat = array.reshape(-1)
        if not np.shares_memory(flat, array):
            raise SimulatorError(f"an address in {self.names[number]}, which is not dense", self.sites[site])
        return flat[first:]

    def touch(self, number: int, array: np.ndarray, key: Any, kind: str, site: int) -> None:
        """Nothing is recorded here."""

    # elements

    def load(self, number: int, array: np.ndarray, index: Index, site: int) -> Any:
        """One element."""
        for i, size in zip(index, array.shape, strict=True):
            if not 0 <= i < size:
                self.outside(number, array, index, (1,) * len(index), site)
        self.touch(number, array, index, "r", site)
        return array[index]

    def store(self, number: int, array: np.ndarray, index: Index, value: Any, site: int) -> None:
        """One element written."""
        for i, size in zip(index, array.shape, strict=True):
            if not 0 <= i < size:
                self.outside(number, array, index, (1,) * len(index), site)
        self.touch(number, array, index, "w", site)
        array[index] = value

    # many elements, in no order

    def gather(self, number: int, array: np.ndarray, index: Index, mask: Any, site: int) -> np.ndarray:
        """Elements at index arrays; lanes that the mask switches off read nothing (and give element 0)."""
        safe, lanes = self._lanes(number, array, index, mask, site)
        if lanes is None:
            self.touch(number, array, safe, "r", site)
        else:
            broadcast = np.broadcast_arrays(*safe, lanes)
            self.touch(number, array, tuple(i[broadcast[-1]] for i in broadcast[:-1]), "r", site)
        return array[safe]

    def scatter(self, number: int, array: np.ndarray, index: Index, value: Any, mask: Any, site: int) -> None:
        """Elements written at index arrays."""
        safe, lanes = self._lanes(number, array, index, mask, site)
        value = np.asarray(value)
        if lanes is None:
            shape = np.broadcast_shapes(*(np.shape(i) for i in safe), value.shape)
            self.touch(number, array, safe, "w", site)
            if shape != np.broadcast_shapes(*(np.shape(i) for i in safe)):
                self._conflict(number, value, safe, site)
                safe = tuple(np.broadcast_to(i, shape) for i in safe)
            array[safe] = value
            return
        arrays = np.broadcast_arrays(*safe, lanes, value)
        chosen = arrays[-2]
        key = tuple(i[chosen] for i in arrays[:-2])
        self.touch(number, array, key, "w", site)
        array[key] = arrays[-1][chosen]

    def _conflict(self, number: int, value: np.ndarray, index: Index, site: int) -> None:
        """Lanes that write one element have to write one value."""
        shape = np.broadcast_shapes(*(np.shape(i) for i in index))
        padded = (1,) * (value.ndim - len(shape)) + shape
        axes = tuple(
            n for n, (size, kept) in enumerate(zip(value.shape, padded, strict=True)) if size > 1 and kept == 1
        )
        if not axes:
            return
        first = value[tuple(slice(0, 1) if n in axes else slice(None) for n in range(value.ndim))]
        same = (value == first) | ((value != value) & (first != first))
        if not bool(np.all(same)):
            raise SimulatorError(
                f"Potential WAW hazard: several iterations of a T.Parallel write one element of {self.names[number]} "
                "with different values",
                self.sites[site],
            )

    def _lanes(self, number: int, array: np.ndarray, index: Index, mask: Any, site: int) -> tuple[Index, Any]:
        off = mask is not None and not isinstance(mask, (bool, np.bool_))
        if mask is not None and not off and not mask:
            mask, off = np.zeros((1,) * max((np.ndim(i) for i in index), default=0), bool), True
        safe = []
        for axis, (i, size) in enumerate(zip(index, array.shape, strict=True)):
            bad = (np.asarray(i) < 0) | (np.asarray(i) >= size)
            if bad.any():
                wrong = bad & mask if off else bad
                if np.any(wrong):
                    at = np.broadcast_to(i, np.shape(wrong))[wrong].flat[0]
                    starts = tuple(int(at) if n == axis else 0 for n in range(array.ndim))
                    self.outside(number, array, starts, (1,) * array.ndim, site, axis)
                i = np.where(bad, 0, i)
            safe.append(i)
        return tuple(safe), mask if off else None

    def outside(
        self, number: int, array: np.ndarray, starts: Index, extents: Index, site: int, axis: int | None = None
    ) -> None:
        """Raises OutOfBounds."""
        if axis is None:
            text = ", ".join(f"{s}:{s + e}" if e != 1 else str(s) for s, e in zip(starts, extents, strict=True))
        else:
            text = ", ".join(str(starts[n]) if n == axis else "..." for n in range(len(starts)))
        raise OutOfBounds(
            f"out-of-bounds access: {self.names[number]}[{text}], but its shape is {list(array.shape)}",
            self.sites[site],
        )
