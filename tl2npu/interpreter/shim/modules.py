"""The stand-ins as modules, under every name by which they are imported. Imported when Triton has been."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter.shim import ascend, buffer_language, dsa, pointers, sync, tiles
from tl2npu.interpreter.shim.buffers import SMEM, TMEM, Buffer, allocated
from tl2npu.interpreter.shim.dsa import hint
from tl2npu.interpreter.shim.refused import Refused, refused
from tl2npu.interpreter.shim.sync import nothing
from tl2npu.interpreter.shim.values import array_of, fault, number, numbers, numpy_dtype, plain, tensor_of

AL = ("triton.language.extra.cann.extension", "triton.extension.ascend.language")
BL = ("triton.extension.buffer.language",)
TLE = ("triton.experimental.tle.language", "triton.experimental.tle")
"""``triton.experimental.tle`` itself is imported as ``tle`` by kernels for ``tle.dsa``."""


class _Package(ModuleType):
    """A module of the stand-ins. A name that it lacks is one that tl2npu does not know."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self.__name__}.{name}", "tl2npu does not know this name")


def modules() -> dict[str, ModuleType]:
    """The modules by full name, those above them included, each an attribute of the one above it."""
    perf = {"early_config_prune": lambda configs, *_, **__: configs, "estimate_matmul_time": lambda *_, **__: 0.0}
    al, bl = ascend.names(), buffer_language.names()
    raw = {"call": Refused("tle.raw.call", "it is code for the device")}
    contents: dict[str, dict[str, Any]] = dict.fromkeys(AL, al)
    contents |= dict.fromkeys(BL, bl)
    contents["triton.ops.matmul_perf_model"] = perf  # Triton had it before 3.0; it ranks configurations
    for name in TLE:
        contents |= {name: _tle_names(), f"{name}.gpu": _gpu_names(), f"{name}.raw": raw}
        contents |= {f"{name}.dsa": dsa.names(), f"{name}.dsa.ascend": dsa.ascend()}
    found: dict[str, ModuleType] = {}
    for name in sorted({outer for inner in contents for outer in _with_outer(inner)}):
        module = found[name] = _Package(name)
        vars(module).update(contents.get(name, {}))
        outer, _, inner = name.rpartition(".")
        if outer in found:
            setattr(found[outer], inner, module)
    return found


def _with_outer(name: str) -> list[str]:
    """A module and those above it that Triton itself does not have."""
    parts = name.split(".")
    own = ("triton.language.extra.cann", "triton.extension", "triton.experimental.tle", "triton.ops")
    names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return [name for name in names if name.startswith(own)]


def patched(scope: Any) -> None:
    """Names that the versions of Triton with these extensions have in ``tl`` itself, and methods of tensors."""
    scope.set_attr(tl.tensor, "extract_tile", tiles.extract_tile)
    scope.set_attr(tl.tensor, "insert_tile", tiles.insert_tile)
    scope.set_attr(tl, "max", _reduction(tl.max, np.max))
    scope.set_attr(tl, "min", _reduction(tl.min, np.min))
    extra = {"extract_slice": tiles.extract_slice, "insert_slice": tiles.insert_slice, "get_element": tiles.get_element}
    extra |= dict.fromkeys(("compile_hint", "multibuffer"), sync.nothing)
    extra |= {name: getattr(sync, name) for name in ("sync_block_set", "sync_block_wait", "sync_block_all", "parallel")}
    for name, function in extra.items():
        if not hasattr(tl, name):
            scope.set_attr(tl, name, function)


def _reduction(usual: Any, nan_too: Callable[..., Any]) -> Any:
    """``tl.max`` or ``tl.min`` with triton-ascend's ``propagate_nan``: NaN is the result where there is one. Without it
    NaN is skipped, as everywhere in Triton."""

    @wraps(usual.fn)
    def reduction(input: Any, axis: Any = None, *args: Any, propagate_nan: Any = False, **named: Any) -> Any:
        if plain(propagate_nan) is not True or args or named:
            return usual(input, axis, *args, **named)
        along = None if plain(axis) is None else number(axis)
        kind = tl.float32 if input.dtype == tl.bfloat16 else input.dtype
        return tensor_of(np.asarray(nan_too(array_of(input.to(kind)), along)), kind)

    return reduction


# ``tle.gpu``: shared memory of a GPU (FlagTree bb1dc455, and the names of its later versions).


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


def _gpu_names() -> dict[str, Any]:
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


# ``tle``: FlagTree's language extension (``triton.experimental.tle.language``, bb1dc455, and its later names).

DISTRIBUTED = (
    "device_mesh sharding S P B make_sharded_tensor ShardedTensor shard_id remote signal signal_wait "
    "distributed_barrier reshard distributed_dot get_mem_pool create_dist_tensor"
)


def load(pointer: Any, *args: Any, is_async: Any = False, **named: Any) -> Any:
    """``tl.load``; that it may be asynchronous changes no value."""
    return tl.load(pointer, *args, **named)


def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None, **_: Any) -> tuple[Any, Any]:
    """The sum of what comes before each element (exclusive), and the sum of all, along an axis."""
    kind = input.dtype if plain(dtype) is None else plain(dtype)
    array, axis = array_of(input).astype(numpy_dtype(kind)), number(axis)
    ahead = np.flip(array, axis) if plain(reverse) else array
    before = np.cumsum(ahead, axis, dtype=array.dtype) - ahead
    total = array.sum(axis, dtype=array.dtype)
    return tensor_of(np.flip(before, axis) if plain(reverse) else before, kind), tensor_of(np.asarray(total), kind)


def turns(arg1: Any, arg2: Any = None, step: Any = 1, **_: Any) -> range:
    """``tle.range``: a range; ``num_stages``, ``reorder``, ``pipe_stages`` and the like change no value."""
    start, stop = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(number(start), number(stop), number(1 if step is None else step))


def _tle_names() -> dict[str, Any]:
    """Every name of the package, but for ``gpu``, ``dsa`` and ``raw``."""
    return {
        "load": load,
        "cumsum": cumsum,
        "extract_tile": tiles.extract_tile,
        "insert_tile": tiles.insert_tile,
        "range": turns,
        "pipeline_group": hint,
        **refused("tle", "several devices, or the blocks of a cluster, take part in it", DISTRIBUTED),
        **refused("tle", "it has no meaning in tl2npu", "pipe pipe_reader pipe_writer pipe_slot make_tensor_view"),
    }
