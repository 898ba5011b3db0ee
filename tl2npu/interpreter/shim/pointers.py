"""Copies between global memory, seen through pointers, and buffers on the chip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter import session
from tl2npu.interpreter.shim.buffers import Buffer, same_shape
from tl2npu.interpreter.shim.values import array_of, fault, numbers, plain, tensor_of


def is_pointers(value: Any) -> bool:
    """Whether a value is a tile of pointers."""
    return isinstance(value, tl.tensor) and isinstance(value.dtype, tl.pointer_type)


def local_ptr(buffer: Any, indices: Any = None, flat: Any = None) -> Any:
    """Pointers to elements of a buffer, by an index tensor for each axis or by row-major numbers; all elements without.

    They are the addresses of its memory, so that loads, stores and atomics work on them.
    """
    array = buffer.array
    if flat is not None:
        number = np.asarray(array_of(flat), np.int64)
        steps = [math.prod(array.shape[axis + 1 :]) for axis in range(array.ndim)]
        inner = zip(steps[1:], array.shape[1:], strict=True)
        places = (number // steps[0], *(number // step % extent for step, extent in inner))
    elif indices is None:
        places = tuple(np.indices(array.shape))
    else:
        given = [
            np.asarray(array_of(plain(i)))
            for i in (indices if isinstance(indices, (tuple, list, tl.tuple)) else [indices])
        ]
        if len(given) != array.ndim:
            raise fault(f"local_ptr: {len(given)} indices for a buffer of shape {list(array.shape)}")
        places = np.broadcast_arrays(*given)
    memory = session.active().memory
    if memory is not None:
        first, end = np.lib.array_utils.byte_bounds(array)
        memory.add(first, end - first)
    offsets = sum(np.asarray(place, np.int64) * stride for place, stride in zip(places, array.strides, strict=True))
    addresses = np.asarray(array.ctypes.data + offsets, np.uint64)
    return tensor_of(addresses, tl.pointer_type(buffer.kind))


def copy(name: str, source: Any, target: Any, shape: Any, offsets: Any = None) -> None:
    """Copy the leading ``shape`` elements of a tile of pointers to a buffer, back, or from buffer to buffer.

    A tensor descriptor may stand for the pointers, with ``offsets``. What of a buffer lies behind the shape stays as it
    was. Raises KernelFault for other things, and for shapes that do not fit.
    """
    sizes = numbers(shape) if shape is not None else None
    if isinstance(source, tl.core.tensor_descriptor_base):
        _fits(name, target, Buffer)
        _write(name, target, array_of(source.load([*plain(offsets)])), sizes)
    elif isinstance(target, tl.core.tensor_descriptor_base):
        _fits(name, source, Buffer)
        target.store([*plain(offsets)], tensor_of(source.array, source.kind))
    elif is_pointers(source) and isinstance(target, Buffer):
        _typed(name, source.dtype.element_ty, target.kind)
        found = array_of(tl.load(source, mask=_mask(name, source, sizes)))
        _write(name, target, _leading(name, found, sizes), sizes)
    elif isinstance(source, Buffer) and is_pointers(target):
        whole = np.zeros(target.handle.data.shape, source.array.dtype)
        part = _leading(name, whole, sizes)
        part[...] = _leading(name, source.array, part.shape)
        tl.store(target, tensor_of(whole, source.kind), mask=_mask(name, target, sizes))
    elif isinstance(source, Buffer) and isinstance(target, Buffer):
        _typed(name, source.kind, target.kind)
        _write(name, target, _leading(name, source.array, sizes), sizes)
    else:
        kinds = f"{type(source).__name__} and {type(target).__name__}"
        raise fault(f"{name} copies between pointers and a buffer, or between buffers, not {kinds}")


def _write(name: str, buffer: Buffer, values: np.ndarray, sizes: tuple[int, ...] | None) -> None:
    target = _leading(name, buffer.array, sizes if sizes is not None else values.shape)
    same_shape(values.shape, target.shape, f"{name}: a tile", "a buffer's part")
    target[...] = values


def _mask(name: str, pointers: Any, sizes: tuple[int, ...] | None) -> Any:
    """Which of the pointers are copied: the leading ones. A tile itself has powers of two for extents."""
    chosen = np.zeros(pointers.handle.data.shape, bool)
    _leading(name, chosen, sizes)[...] = True
    return tensor_of(chosen, tl.int1)


def _leading(name: str, array: np.ndarray, sizes: tuple[int, ...] | None) -> np.ndarray:
    if sizes is None:
        return array
    if len(sizes) != array.ndim or any(
        not 0 <= size <= extent for size, extent in zip(sizes, array.shape, strict=True)
    ):
        raise fault(f"{name}: the shape {list(sizes)} is not inside of {list(array.shape)}")
    return array[tuple(slice(size) for size in sizes)]


def _typed(name: str, source: Any, target: Any) -> None:
    if source != target:
        raise fault(f"{name}: from {source} to {target}; there is no conversion")


def _fits(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise fault(f"{name}: a buffer is needed beside a descriptor, not {type(value).__name__}")
