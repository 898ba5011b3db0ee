"""Memory on the chip. It begins as NaN (integers: the lowest), so that a read before the first write shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.interpreter import places
from tl2npu.interpreter.cores import CUBE, VECTOR, VECTORS, current
from tl2npu.interpreter.shim.values import checked, fault, numbers, numpy_dtype, plain, slices, tensor_of


@dataclass(frozen=True)
class Space:
    """A memory of the chip. ``owner``: the kind of core that reads it, None for any."""

    name: str
    owner: str | None = None

    def __call__(self, *_: Any) -> Space:
        """``address_space.UB()``, as some versions spell it."""
        return self

    def __repr__(self) -> str:
        return self.name


UB, L1, L0A, L0B, L0C = (
    Space("UB", VECTOR),
    Space("L1", CUBE),
    Space("L0A", CUBE),
    Space("L0B", CUBE),
    Space("L0C", CUBE),
)
SMEM, TMEM = Space("smem"), Space("tmem")


class Buffer:
    """A tile of memory. One in UB exists once in each vector core, with the same name, any other once in a block.

    ``kind``: the element type of Triton. ``parts``: the elements, by vector core; the same for both but in UB.
    """

    def __init__(self, kind: Any, shape: tuple[int, ...], space: Space, parts: Mapping[int, np.ndarray]) -> None:
        self.kind, self.shape, self.space, self.parts = kind, shape, space, parts

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.kind

    @property
    def array(self) -> np.ndarray:
        """The elements that the running core has; writes to it are writes to the buffer.

        Raises KernelFault in the scope of a core that cannot reach this memory.
        """
        cores = current()
        if cores is None:
            return self.parts[0]
        core = cores.core
        if cores.scoped and self.space.owner is not None and core.kind != self.space.owner:
            if core.scope is not None and self.space is UB:
                raise fault(f"a buffer in UB is used in the scope of {core.name}, which has no UB")
            if self.space is UB:  # outside of the scopes the code is that of both sides, and the vector cores use it
                return np.array(self.parts[0]) if self.parts[0].dtype.kind in "iub" else self.parts[0] * np.nan
        return self.parts[core.number if core.kind == VECTOR else 0]

    def view(self, change: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """The same memory, seen in another way."""
        parts = {number: change(part) for number, part in self.parts.items()}
        return Buffer(self.kind, parts[0].shape, self.space, parts)

    def subview(self, offsets: Any, sizes: Any, strides: Any) -> Buffer:
        """A part of it: ``bl.subview``."""
        part = checked(slices(offsets, sizes, strides), self.shape, "subview")
        return self.view(lambda array: array[part])

    def to_tensor(self, writable: bool = True, target_shape: Any = None) -> Any:
        """Its elements now: ``bl.to_tensor``."""
        return read(self, target_shape)

    def __repr__(self) -> str:
        return f"{self.kind}{list(self.shape)} in {self.space}"


def allocated(kind: Any, shape: Any, space: Any) -> Buffer:
    """New memory. What all cores of a block allocate at one place, in the same turn, is the same memory."""
    kind, extents, space = plain(kind), numbers(shape), plain(space) or UB
    cores = current()
    if cores is None:
        return _new(kind, extents, space)
    core, place = cores.core, places.here()
    turns: Counter[Any] = cores.shared.setdefault("turns", Counter())
    key = (core.block, place, turns[core, place])
    turns[core, place] += 1
    if key not in cores.shared:
        cores.shared[key] = _new(kind, extents, space)
    return cores.shared[key]  # type: ignore[no-any-return]


def _new(kind: Any, shape: tuple[int, ...], space: Space) -> Buffer:
    dtype = numpy_dtype(kind)
    lowest = np.iinfo(dtype).min if dtype.kind in "iu" else True if dtype.kind == "b" else np.nan
    own = current() is not None and space is UB
    made = [np.full(shape, lowest, dtype) for _ in range(VECTORS if own else 1)]
    return Buffer(kind, shape, space, dict(enumerate(made)) if own else dict.fromkeys(range(VECTORS), made[0]))


def read(buffer: Buffer, target_shape: Any = None) -> Any:
    """The elements of a buffer as a tensor; with ``target_shape`` [M, N] those of a buffer in NZ."""
    array = buffer.array
    if target_shape is not None:
        array = from_nz(array, numbers(target_shape))
    result = tensor_of(array, buffer.kind)
    result.tl2npu_buffer = buffer if target_shape is None else None
    return result


def buffer_of(tensor: Any, space: Any = None, bind: Any = None) -> Buffer:
    """``bl.to_buffer``: the buffer that a tensor was read from, ``bind`` with the tensor written to it, or a new
    one."""
    if isinstance(bind, Buffer):
        write(bind, tensor)
        return bind
    same = getattr(tensor, "tl2npu_buffer", None)
    if same is not None and (space is None or plain(space) is same.space):
        return same  # type: ignore[no-any-return]
    made = allocated(tensor.dtype, tensor.shape, space)
    write(made, tensor)
    return made


def write(buffer: Buffer, tensor: Any) -> None:
    """Write a tensor of the same shape and type into a buffer. Raises KernelFault for another one."""
    data = tensor.handle.data
    same_shape(data.shape, buffer.shape, "a tensor", "a buffer")
    if tensor.dtype != buffer.kind:
        raise fault(f"a tensor of {tensor.dtype} is written to a buffer of {buffer.kind}")
    buffer.array[...] = data


def same_shape(source: Any, target: Any, one: str, other: str) -> None:
    """Raises KernelFault where two shapes differ."""
    if tuple(source) != tuple(target):
        raise fault(f"{one} of shape {list(source)} does not fit {other} of shape {list(target)}")


def from_nz(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """NZ as rows and columns: element (m, n) of [M, N] lies at [n // c, m // 16, m % 16, n % c].

    c is 16 for types of 16 and 32 bits as the author's buffer has it. Raises KernelFault for other shapes.
    """
    if array.ndim == 4:
        columns, rows, row, column = array.shape
        if (rows * row, columns * column) == shape:
            return array.transpose(1, 2, 0, 3).reshape(shape)
    raise fault(f"a buffer of shape {list(array.shape)} is not the NZ layout of {list(shape)}")


def to_nz(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Rows and columns as NZ of a shape, the inverse of :func:`from_nz`."""
    if array.ndim == 2 and len(shape) == 4:
        columns, rows, row, column = shape
        if array.shape == (rows * row, columns * column):
            return array.reshape(rows, row, columns, column).transpose(2, 0, 1, 3)
    raise fault(f"a tile of shape {list(array.shape)} has no NZ layout of shape {list(shape)}")
