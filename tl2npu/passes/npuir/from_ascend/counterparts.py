"""Operators of Ascend C and what AscendNPU IR has for them (TL428 for what it has nothing for)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects import ascend, npuir
from tl2npu.dialects.catalogue import Kind, Role
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Op
from tl2npu.passes.job import Job
from tl2npu.tile.meaning import counterparts

SAME: Mapping[str, str] = MappingProxyType(counterparts(ascend.OPERATORS.values(), npuir.OPERATORS.values()))
"""Element-wise operators with the one that computes the same; operands keep their order, the destination goes last."""

FILLS = frozenset({"tile.fill", "tile.clear"})
_OF_TILES = {name for name in SAME if all(p.role is not Role.SCALAR for p in ascend.OPERATORS[name].params)}
BY_ELEMENT = frozenset({*_OF_TILES, *FILLS})
"""Operators that take a loop over rows apart."""

REDUCTIONS = frozenset({"reduce_max", "reduce_min", "reduce_sum", "reduce"})
ROUNDING: Mapping[str, str] = MappingProxyType(
    {"CAST_NONE": "rint", **{f"CAST_{mode.upper()}": mode for mode in "rint floor ceil round trunc odd".split()}}
)

IN_LOOPS = ("tile.axpy", "tile.mul_add_dst", "tile.leaky_relu")
"""Element-wise operators without a counterpart, which ``T.Parallel`` computes by their meaning."""

KNOWN = frozenset({*SAME, *FILLS, *REDUCTIONS, *IN_LOOPS, "gemm_v0"}) | {
    f"tile.{name}" for name in ("cast", "broadcast", "atomic_add", "transpose", "silu")
}
_KEPT = frozenset({Kind.ALLOC, Kind.LOOP, Kind.LAUNCH, Kind.SCALAR, Kind.TYPE, Kind.DECORATOR})

_REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "tile.compare": "compare where the result is used: `T.if_then_else(a[i, j] >= b[i, j], x[i, j], y[i, j])`",
        "tile.select": "choose by a comparison: `T.if_then_else(a[i, j] >= b[i, j], x[i, j], y[i, j])`",
        "tile.sort": "sort on the host, or in a kernel of its own for Ascend C",
        "tile.sort32": "sort on the host, or in a kernel of its own for Ascend C",
        "tile.merge_sort": "sort on the host, or in a kernel of its own for Ascend C",
        "tile.init_sort_buf": "sort on the host, or in a kernel of its own for Ascend C",
        "tile.topk": "choose the best on the host, or in a kernel of its own for Ascend C",
        "tile.gather": "`T.gather(src, dst, indices)` takes positions along the last axis, not byte offsets",
        "tile.gatherb": "`T.gather(src, dst, indices)` takes positions along the last axis, not byte offsets",
        "tile.gather_mask": "`T.deinterleave` takes every other element; other patterns need `T.gather` with indices",
        "tile.createvecindex": "`T.arange(dst, strides, offset)` writes an index vector",
        "tile.arith_progression": "`T.arange(dst, strides, offset)` writes a progression of integers",
        "tile.round": "`T.vcast(src, dst, round_mode=...)` rounds on the way to an integer type",
        "tile.row_expand_mul": "`T.vmul(x, m, x)` with `m` of shape `[M, 1]`",
        "reinterpretcast": "`T.vbitcast(src, dtype)` gives a tensor of its own",
        "printf": "`T.print(obj, msg)` prints a tensor or a number",
        "dump_tensor": "`T.print(obj, msg)` prints a tensor or a number",
    }
)


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for an operator or an element type that AscendNPU IR has nothing for."""
    for buffer in job.kernel.buffers.values():
        if "float8" in buffer.dtype or "float4" in buffer.dtype or buffer.dtype.startswith(("e4m3", "e5m2")):
            raise Blocked("TL428", buffer.node, f"AscendNPU IR has no arithmetic on `{buffer.dtype}`")
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name in KNOWN or stmt.op.kind in _KEPT:
            continue
        if stmt.op.kind in (Kind.ANNOTATION, Kind.SYNC):
            continue
        remedy = _REMEDIES.get(stmt.op.name)
        text = f"AscendNPU IR has no `T.{stmt.op.name}`"
        raise Blocked("TL428", stmt.node, f"{text}; {remedy}" if remedy else text)
