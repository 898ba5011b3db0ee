"""How running code reaches memory. Every access is checked against the bounds of its buffer.

``Access`` is the plain one; ``hazards.Watched`` records accesses as well. All methods take the buffer's number, its
array, and the site (line) of the statement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.stmt import Site
from tl2npu.simulator.machine.layout import Layout

Index = tuple[Any, ...]


class OutOfBounds(SimulatorError):
    """An access outside of a buffer."""


class Access:
    """Bounds-checked access. ``names`` maps buffer numbers to names, ``sites`` are the lines of the program."""

    def __init__(self, names: dict[int, str], sites: list[Site]) -> None:
        self.names = names
        self.sites = sites
        self.core: Any = None
        self.registers: dict[str, Any] = {}
        """What the core keeps between instructions, such as the factor of ``T.set_deq_scale``."""
        self.checked: frozenset[int] = frozenset()
        """Tensors whose every access the compiler puts under a bounds check, as on a GPU: an element outside is read
        as 0 and not written (src/transform/legalize_safe_memory_access.cc)."""

    def begin(self, statement: int) -> None:
        """A statement begins (its number in ``Runner.watched_statements``)."""

    def settle(self) -> None:
        """The core waits for another one, or is done."""

    def misaligned(self, number: int, what: str, size: int, block: int, site: int) -> None:
        """An instruction is given an address, a row or a length that is no multiple of ``block`` bytes."""

    def spill(self, number: int, array: np.ndarray, end: int, lanes: int) -> None:
        """A load that ends here has overwritten the rest of the block of ``lanes`` elements."""

    def used(self, number: int, lanes: np.ndarray) -> None:
        """Of the region that was just read the statement uses these elements; what the others hold does not matter."""

    def behind(self, number: int, site: int) -> None:
        """A load begins behind the end of a tensor, and takes nothing from it."""

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

    def flat(self, number: int, array: np.ndarray, index: Index, count: int, kind: str, site: int) -> np.ndarray:
        """So many consecutive elements from an element on, flat."""
        start = int(np.ravel_multi_index(index, array.shape))
        all_of_it = array.reshape(-1) if kind == "r" else self.tail(number, array, (0,) * array.ndim, "", site)
        found = all_of_it[start : start + count]
        if found.size < count:
            raise OutOfBounds(
                f"out-of-bounds access: {count} elements from {self.names[number]}{list(index)} on, where only "
                f"{found.size} are left of its shape {list(array.shape)}",
                self.sites[site],
            )
        if not self._quiet():
            self.touch(number, array, np.unravel_index(np.arange(start, start + count), array.shape), kind, site)
        return found

    def touch(self, number: int, array: np.ndarray, key: Any, kind: str, site: int) -> None:
        """Nothing is recorded here."""

    # elements

    def load(self, number: int, array: np.ndarray, index: Index, site: int) -> Any:
        """One element."""
        for i, size in zip(index, array.shape, strict=True):
            if not 0 <= i < size:
                if number in self.checked:
                    self.behind(number, site)
                    return np.zeros((), array.dtype)[()]
                self.outside(number, array, index, (1,) * len(index), site)
        self.touch(number, array, index, "r", site)
        value = array[index]
        return value.copy() if array.dtype.names else value  # of a record NumPy gives a view

    def store(self, number: int, array: np.ndarray, index: Index, value: Any, site: int) -> None:
        """One element written."""
        for i, size in zip(index, array.shape, strict=True):
            if not 0 <= i < size:
                if number in self.checked:
                    return
                self.outside(number, array, index, (1,) * len(index), site)
        self.touch(number, array, index, "w", site)
        array[index] = value

    # many elements, in no order

    def gather(self, number: int, array: np.ndarray, index: Index, mask: Any, site: int) -> np.ndarray:
        """Elements at index arrays; lanes that the mask switches off read nothing (and give element 0)."""
        safe, lanes = self.lanes(number, array, index, mask, site)
        if lanes is None:
            self.touch(number, array, safe, "r", site)
        else:
            broadcast = np.broadcast_arrays(*safe, lanes)
            self.touch(number, array, tuple(i[broadcast[-1]] for i in broadcast[:-1]), "r", site)
            if not broadcast[-1].any() and (mask is None or np.all(mask)):
                self.behind(number, site)
            if number in self.checked:
                values = np.array(array[tuple(broadcast[:-1])])
                values[~broadcast[-1]] = np.zeros((), array.dtype)
                return values
        return array[safe]

    def scatter(self, number: int, array: np.ndarray, index: Index, value: Any, mask: Any, site: int) -> None:
        """Elements written at index arrays."""
        safe, lanes = self.lanes(number, array, index, mask, site)
        value = np.asarray(value)
        if lanes is None:
            shape = np.broadcast_shapes(*(np.shape(i) for i in safe), value.shape)
            self.touch(number, array, safe, "w", site)
            self._put(number, array, tuple(np.broadcast_to(i, shape) for i in safe), value, site)
            return
        arrays = np.broadcast_arrays(*safe, lanes, value)
        chosen = arrays[-2]
        key = tuple(i[chosen] for i in arrays[:-2])
        self.touch(number, array, key, "w", site)
        self._put(number, array, key, arrays[-1][chosen], site)

    def _put(self, number: int, array: np.ndarray, key: Index, value: np.ndarray, site: int) -> None:
        """Lanes that write one element have to write one value: each finds its own there afterwards."""
        meant = np.empty(np.shape(value), array.dtype)  # a copy: the value may be a view of the same memory
        meant[...] = value
        array[key] = meant
        if not meant.ndim:
            return
        found = array[key]
        same = (found == meant) | ((found != found) & (meant != meant))
        if not bool(np.all(same)):
            self._several(number, site)

    # rectangles of which some lanes may be switched off

    def guarded(
        self, number: int, array: np.ndarray, starts: Index, extents: Index, layout: Layout, mask: Any, site: int
    ) -> np.ndarray:
        """A rectangle in the lanes' axes, read by the lanes that are on. Where nobody watches, a view will do."""
        if self._quiet() and _inside(array, starts, extents):
            return layout.lanes(array[tuple(slice(s, s + e) for s, e in zip(starts, extents, strict=True))])
        return self.gather(number, array, layout.index(starts, extents), mask, site)

    def put_guarded(
        self,
        number: int,
        array: np.ndarray,
        starts: Index,
        extents: Index,
        layout: Layout,
        value: Any,
        mask: Any,
        site: int,
    ) -> None:
        """A rectangle written where the lanes are on."""
        if self._quiet() and _inside(array, starts, extents):
            target = layout.lanes(array[tuple(slice(s, s + e) for s, e in zip(starts, extents, strict=True))])
            np.copyto(target, value, where=mask, casting="unsafe")
            return
        self.scatter(number, array, layout.index(starts, extents), value, mask, site)

    def _quiet(self) -> bool:
        return type(self).touch is Access.touch

    def _several(self, number: int, site: int) -> None:
        raise SimulatorError(
            f"Potential WAW hazard: several iterations of a T.Parallel write one element of {self.names[number]} "
            "with different values",
            self.sites[site],
        )

    def lanes(self, number: int, array: np.ndarray, index: Index, mask: Any, site: int) -> tuple[Index, Any]:
        """Index arrays that are inside, and the lanes that are on (None for all)."""
        off = mask is not None and not isinstance(mask, (bool, np.bool_))
        if mask is not None and not off and not mask:
            mask, off = np.zeros((1,) * max((np.ndim(i) for i in index), default=0), bool), True
        safe = []
        for axis, (i, size) in enumerate(zip(index, array.shape, strict=True)):
            bad = (np.asarray(i) < 0) | (np.asarray(i) >= size)
            if bad.any() and number in self.checked:
                mask, off = (mask & ~bad if off else ~bad), True
                i = np.where(bad, 0, i)
            elif bad.any():
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


def _inside(array: np.ndarray, starts: Index, extents: Index) -> bool:
    return all(
        start >= 0 and start + extent <= size for start, extent, size in zip(starts, extents, array.shape, strict=True)
    )
