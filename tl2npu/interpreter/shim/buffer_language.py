"""``bl``: triton-ascend's buffers (``triton.extension.buffer.language``, a84b1eb5)."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from tl2npu.interpreter.shim.ascend import ascend_address_space
from tl2npu.interpreter.shim.buffers import Buffer, allocated, buffer_of, read
from tl2npu.interpreter.shim.values import fault, plain


def alloc(etype: Any, shape: Any, _address_space: Any = None, is_mem_unique: Any = False, **_: Any) -> Buffer:
    """A buffer of an element type and a shape in a memory, UB if none is named. Raises KernelFault for int1."""
    if plain(etype) == tl.int1:
        raise fault("bl.alloc: there are no buffers of int1")
    return allocated(etype, shape, _address_space)


def to_tensor(memref: Any, writable: Any = True, target_shape: Any = None, **_: Any) -> Any:
    """What a buffer holds, as a tensor; with ``target_shape`` [M, N] that of a buffer in NZ."""
    return read(_buffer("bl.to_tensor", memref), plain(target_shape))


def to_buffer(tensor: Any, space: Any = None, bind_buffer: Any = None, **_: Any) -> Buffer:
    """A tensor as a buffer: ``bind_buffer`` with the tensor written to it, the buffer that it was read from, or a new
    one in a memory."""
    return buffer_of(tensor, space, bind_buffer)


def subview(src: Any, offsets: Any, sizes: Any, strides: Any, **_: Any) -> Buffer:
    """A part of a buffer, the same memory."""
    return _buffer("bl.subview", src).subview(offsets, sizes, strides)


def _buffer(name: str, value: Any) -> Buffer:
    if not isinstance(value, Buffer):
        raise fault(f"{name}: a buffer is needed, not {type(value).__name__}")
    return value


def names() -> dict[str, Any]:
    """Every name of the package; older versions had some under another one."""
    return {
        "alloc": alloc,
        "allocate_local_buffer": alloc,
        "to_tensor": to_tensor,
        "to_buffer": to_buffer,
        "subview": subview,
        "buffer": Buffer,
        "address_space": ascend_address_space,
    }
