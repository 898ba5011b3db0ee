"""``tle.gpu``: shared memory of a GPU (FlagTree bb1dc455, and the names of its later versions)."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from tl2npu.interpreter.shim import pointers
from tl2npu.interpreter.shim.buffers import SMEM, TMEM, Buffer, allocated
from tl2npu.interpreter.shim.refused import refused
from tl2npu.interpreter.shim.sync import nothing
from tl2npu.interpreter.shim.values import fault, number, numbers, numpy_dtype, plain


def memory_space(x: Any, *_: Any, **__: Any) -> Any:
    """The tensor itself: a hint where it shall lie."""
    return x


memory_space.smem, memory_space.tmem = SMEM, TMEM  # type: ignore[attr-defined]  # ``storage_kind`` is another name of it


def alloc(
    shape: Any,
    dtype: Any,
    layout: Any = None,
    scope: Any = SMEM,
    init_value: Any = None,
    nv_mma_shared_layout: Any = True,
    alias: Any = None,
    alias_offset_bytes: Any = 0,
    **_: Any,
) -> Buffer:
    """A buffer of a shape and an element type; with ``alias`` in the memory of another one, from a byte on."""
    if plain(alias) is None:
        return allocated(dtype, shape, scope)
    kind, extents, offset = plain(dtype), numbers(shape), number(alias_offset_bytes)
    wanted = numpy_dtype(kind)

    def seen(array: Any) -> Any:
        raw = array.reshape(-1).view("uint8")[offset:]
        size = wanted.itemsize
        for extent in extents:
            size *= extent
        if not array.flags.c_contiguous or raw.size < size:
            raise fault(f"tle.gpu.alloc: {size} bytes from byte {offset} on are not inside of the aliased buffer")
        return raw[:size].view(wanted).reshape(extents)

    view = alias.view(seen)
    return Buffer(kind, extents, view.space, view.parts)


def copy(src: Any, dst: Any, shape: Any = None, offsets: Any = None, **_: Any) -> None:
    """Copy a tile of pointers, or one that a descriptor names, to a buffer, or back. There is no mask."""
    pointers.copy("tle.gpu.copy", src, dst, shape, offsets)


def local_ptr(buffer: Any, indices: Any = None, offsets: Any = None, **_: Any) -> Any:
    """Pointers to elements of a buffer, for ``tl.load``, ``tl.store`` and atomics.

    ``offsets``, in bb1dc455 the second argument: one tensor of row-major element numbers.
    """
    if not isinstance(buffer, Buffer):
        raise fault(f"tle.gpu.local_ptr: a buffer is needed, not {type(buffer).__name__}")
    flat = indices if plain(offsets) is None and isinstance(indices, tl.tensor) else offsets
    return pointers.local_ptr(buffer, plain(indices), plain(flat))


def pipeline(arg1: Any, arg2: Any = None, step: Any = 1, **_: Any) -> range:
    """A range; its hints change no value."""
    start, stop = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(number(start), number(stop), number(step))


def names() -> dict[str, Any]:
    """Every name of the package."""
    warp = "warp_specialize wgmma wgmma_wait alloc_barriers barrier_arrive barrier_wait tensor_map_create set_layout"
    return {
        "alloc": alloc,
        "copy": copy,
        "local_ptr": local_ptr,
        "memory_space": memory_space,
        "storage_kind": memory_space,
        "smem": SMEM,
        "tmem": TMEM,
        "pipeline": pipeline,
        "buffered_tensor": Buffer,
        "async_commit_group": nothing,
        "async_wait_group": nothing,
        **refused("tle.gpu", "it is about the warps of a GPU", warp),
    }
