"""The names of FlagTree's TLE: where they are imported from, and which have no counterpart.

Source: flagos-ai/FlagTree bb1dc455 (``python/triton/experimental/tle``) and the names of its later versions; the
distributed ones, ``pipeline_group`` and the keywords of ``tle.range`` as FlagFFT's documentation of TLE has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ROOT = "triton.experimental.tle"
_INNER = frozenset({"language", "core", "types", "semantic"})
"""Modules inside of the package that only hold what it passes on."""


def tle_name(path: str) -> str | None:
    """The name in TLE, such as ``load`` or ``dsa.copy``, of a full dotted name; None for names of other modules."""
    if path != _ROOT and not path.startswith(f"{_ROOT}."):
        return None
    return ".".join(part for part in path[len(_ROOT) + 1 :].split(".") if part and part not in _INNER)


RANGES = frozenset({"range", "gpu.pipeline", "dsa.pipeline", "dsa.parallel"})
"""Loops over integers whose further arguments are hints."""

HINTS = frozenset({"pipeline_group", "dsa.hint"})
"""Context managers that change no value."""

SHARED = frozenset({f"gpu.{kind}smem" for kind in ("", "storage_kind.", "memory_space.")})
"""Spaces of ``tle.gpu.alloc`` that are memory of one block."""

LOCAL = frozenset({f"dsa.ascend.{space}" for space in ("UB", "L1", "L0A", "L0B", "L0C")})
"""Spaces of ``tle.dsa.alloc``; other vendors have a ``tle.dsa`` of their own."""

BINARY: Mapping[str, str] = MappingProxyType({name: name for name in ("add", "sub", "mul", "div", "max", "min")})
"""Arithmetic of ``tle.dsa`` on buffers: name -> operator of the tile IR."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "device_mesh": "TL580",
        **dict.fromkeys(("sharding", "S", "B", "P", "make_sharded_tensor", "ShardedTensor"), "TL581"),
        **dict.fromkeys(("create_dist_tensor", "get_mem_pool"), "TL581"),
        "reshard": "TL582",
        "remote": "TL583",
        "shard_id": "TL584",
        "distributed_dot": "TL585",
        **dict.fromkeys(("distributed_barrier", "signal", "signal_wait"), "TL586"),
        **dict.fromkeys(("pipe", "pipe_reader", "pipe_writer", "pipe_slot", "dsa.pipeline_scheduler"), "TL587"),
        **dict.fromkeys(("dsa.workspace", "dsa.ascend.SyncSpec"), "TL587"),
        **dict.fromkeys(("dsa.tile_set_flag", "dsa.tile_wait_flag"), "TL587"),
        **{f"dsa.ascend.sync_block_{kind}": "TL587" for kind in ("set", "wait", "all")},
        **{f"dsa.ascend.sub_vec_{kind}": "TL587" for kind in ("id", "num")},
        **dict.fromkeys(("raw.call", "raw", "dsa.ascend.raw"), "TL588"),
        **{f"gpu.{name}": "TL589" for name in ("warp_specialize", "wgmma", "wgmma_wait", "set_layout", "tmem")},
        **{f"gpu.{name}": "TL589" for name in ("alloc_barriers", "barrier_arrive", "barrier_wait")},
        **{f"gpu.{name}": "TL589" for name in ("storage_kind.tmem", "memory_space.tmem", "tensor_map_create")},
        "cumsum": "TL531",
        "dsa.extract_element": "TL530",
    }
)
"""Names without a counterpart: name -> code of the refusal."""
