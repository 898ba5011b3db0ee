"""``tle``: FlagTree's language extension (``triton.experimental.tle.language``, bb1dc455, and its later names)."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter.shim import tiles
from tl2npu.interpreter.shim.dsa import hint
from tl2npu.interpreter.shim.refused import refused
from tl2npu.interpreter.shim.values import array_of, number, numpy_dtype, plain, tensor_of

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


def names() -> dict[str, Any]:
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
