"""``T.tile.atomic_add``: a tile of UB or L0C added to global memory.

Extents are found as those of ``T.copy``; what lies outside of the tensor is left out
(tilelang/language/ascend_tile.py:atomic_add, src/op/ascend.cc:AscendAtomicAdd).
"""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.copies import check_walk, overlap
from tl2npu.simulator.operators.registry import semantics


@semantics("tile.atomic_add", reads="src dst", writes="dst", raw=True)
def atomic_add(A: Any, dst: Operand, src: Operand, walk: Any = None) -> None:
    """``dst += src``, of the same element type; ``walk`` as in a copy."""
    for side, name in ((dst, "dst"), (src, "src")):
        if not hasattr(side, "memory"):
            raise SimulatorError(f"T.tile.atomic_add: {name} is a number, not a tensor")
    if dst.memory != "global" or src.memory == "global":
        raise SimulatorError(
            f"T.tile.atomic_add adds on-chip memory to global memory, not {src.name} ({src.memory}) to "
            f"{dst.name} ({dst.memory})"
        )
    if src.dtype != dst.dtype:
        raise SimulatorError(f"T.tile.atomic_add of {src.dtype} to {dst.dtype}: the element types have to be the same")
    if dst.extents is None and src.extents is not None and len(src.extents) > len(dst.starts):
        raise SimulatorError(
            f"T.tile.atomic_add: {src.name} has {len(src.extents)} axes, the index of {dst.name} only {len(dst.starts)}"
        )
    check_walk(walk, src, dst)
    part = overlap(src, dst, clip_below=False)
    if part.empty:
        return
    values = src.view(*part.source, "r")
    target = dst.view(*part.target, "a")
    target[...] = A.add(target, values.reshape(target.shape))
