"""Values of Triton's interpreter as NumPy arrays and numbers, and back."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tl2npu.interpreter import places
from tl2npu.interpreter.session import KernelFault


def fault(message: str) -> KernelFault:
    """The error of a kernel at the line that runs."""
    return KernelFault(message, places.here())


def plain(value: Any) -> Any:
    """A value without the wrapper of a constexpr."""
    return value.value if isinstance(value, tl.constexpr) else value


def number(value: Any) -> int:
    """A number that may be a constexpr or a scalar tensor."""
    return index(plain(value))


def numbers(values: Any) -> tuple[int, ...]:
    """A list of them."""
    values = plain(values)
    return tuple(number(value) for value in (values if isinstance(values, (tuple, list, tl.tuple)) else (values,)))


def array_of(tensor: Any) -> np.ndarray:
    """The elements of a tensor; a number is one of shape ()."""
    found: np.ndarray = interpreter.interpreter_semantic.to_tensor(tensor).handle.data
    return found


def tensor_of(array: np.ndarray, kind: Any) -> Any:
    """A tensor with a copy of the elements, of an element type; a scalar for shape ()."""
    kind = kind.scalar
    if not array.shape:
        return tl.tensor(interpreter.TensorHandle(np.array([array[()]], array.dtype), kind), kind)
    return tl.tensor(interpreter.TensorHandle(array.copy(), kind), tl.block_type(kind, list(array.shape)))


def numpy_dtype(kind: Any) -> np.dtype:
    """What elements of a type are in NumPy."""
    found: np.dtype = interpreter._get_np_dtype(plain(kind))
    return found


def slices(offsets: Any, sizes: Any, strides: Any) -> tuple[slice, ...]:
    """The part of a tile that offsets, sizes and strides name."""
    found = zip(numbers(offsets), numbers(sizes), numbers(strides), strict=True)
    return tuple(slice(offset, offset + (size - 1) * stride + 1, stride) for offset, size, stride in found)


def checked(part: tuple[slice, ...], shape: tuple[int, ...], what: str) -> tuple[slice, ...]:
    """The same part. Raises KernelFault where it does not lie in a tile of a shape."""
    inside = all(s.start >= 0 and s.stop <= extent for s, extent in zip(part, shape, strict=False))
    if len(part) != len(shape) or not inside:
        ends = ", ".join(f"{s.start}:{s.stop}" for s in part)
        raise fault(f"{what}: [{ends}] is not inside of a tile of shape {list(shape)}")
    return part
