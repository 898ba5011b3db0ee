"""``tle.dsa``: local buffers of an NPU, in the form for Ascend (FlagTree, PR #399 and #599).

Other vendors have a ``tle.dsa`` of their own, with other signatures; only the spaces of ``tle.dsa.ascend`` are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.interpreter.shim import buffer_language, pointers, sync, tiles
from tl2npu.interpreter.shim.ascend import PIPE, ascend_address_space
from tl2npu.interpreter.shim.buffers import Buffer, allocated, same_shape
from tl2npu.interpreter.shim.refused import refused
from tl2npu.interpreter.shim.values import fault, plain


def alloc(shape: Any, dtype: Any, mem_addr_space: Any = None, **_: Any) -> Buffer:
    """A buffer of a shape and an element type in a memory of ``tle.dsa.ascend``, UB if none is named."""
    return allocated(dtype, shape, mem_addr_space)


def copy(src: Any, dst: Any, shape: Any = None, inter_no_alias: Any = False, **_: Any) -> None:
    """Copy the leading elements of a tile of pointers to a buffer, or back. The rest of a buffer stays as it was."""
    pointers.copy("tle.dsa.copy", src, dst, shape)


def _binary(name: str, compute: Callable[..., Any]) -> Callable[..., None]:
    def function(input: Any, other: Any, out: Any, **_: Any) -> None:
        """``out`` is the last operand: all are buffers of one type and one shape."""
        buffers = [plain(value) for value in (input, other, out)]
        for buffer in buffers:
            if not isinstance(buffer, Buffer):
                raise fault(f"tle.dsa.{name}: a buffer is needed, not {type(buffer).__name__}")
            if buffer.kind != buffers[0].kind:
                raise fault(f"tle.dsa.{name}: buffers of {buffers[0].kind} and {buffer.kind}")
            same_shape(buffer.shape, buffers[0].shape, f"tle.dsa.{name}: a buffer", "a buffer")
        left, right, result = (buffer.array for buffer in buffers)
        with np.errstate(all="ignore"):
            result[...] = compute(left, right)

    function.__name__ = name
    return function


def _quotient(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Integers toward zero, as Triton divides them."""
    if left.dtype.kind not in "iu":
        return np.asarray(left / right)
    return np.asarray((left - np.fmod(left, right)) // right)


class hint:  # its name in the language
    """``with tle.dsa.hint(inter_no_alias=True):`` changes no value."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


def ascend() -> dict[str, Any]:
    """Every name of ``tle.dsa.ascend``."""
    return {
        **vars(ascend_address_space),
        "PIPE": PIPE,
        "sub_vec_id": sync.sub_vec_id,
        "sub_vec_num": sync.sub_vec_num,
        "sync_block_set": sync.sync_block_set,
        "sync_block_wait": sync.sync_block_wait,
        "sync_block_all": sync.sync_block_all,
        **refused("tle.dsa.ascend", "it is code for the device", "raw"),
        **refused("tle.dsa.ascend", "tle.pipe has no meaning in tl2npu", "SyncSpec"),
    }


def names() -> dict[str, Any]:
    """Every name of ``tle.dsa``, but for ``ascend``."""
    arithmetic: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    arithmetic |= {"div": _quotient, "max": np.fmax, "min": np.fmin}
    unknown = "workspace pipeline_scheduler tile_set_flag tile_wait_flag local_ptr local_load"
    return {
        "alloc": alloc,
        "copy": copy,
        **{n: _binary(n, f) for n, f in arithmetic.items()},
        "to_tensor": buffer_language.to_tensor,
        "to_buffer": buffer_language.to_buffer,
        "subview": buffer_language.subview,
        "extract_slice": tiles.extract_slice,
        "insert_slice": tiles.insert_slice,
        "extract_element": tiles.get_element,
        "pipeline": sync.parallel,
        "parallel": sync.parallel,
        "hint": hint,
        "buffer": Buffer,
        **refused("tle.dsa", "it has no meaning in tl2npu", unknown),
    }
