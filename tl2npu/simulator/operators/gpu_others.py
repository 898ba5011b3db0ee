"""GPU operators that belong to no family: assertions, four-element dot products, and what changes no value."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.registry import semantics


@semantics("device_assert", gpu=True)
def device_assert(A: Any, condition: Any, msg: Any = "", **_: Any) -> None:
    """Raises where the condition does not hold."""
    if not condition:
        raise SimulatorError(f"device assert failed: {msg}" if msg else "device assert failed")


@semantics("device_assert@lanes", gpu=True)
def device_assert_lanes(A: Any, condition: Any, msg: Any = "", mask: Any = None, **_: Any) -> None:
    """The same for each iteration of a ``T.Parallel``."""
    wrong = np.logical_not(condition) if mask is None else np.logical_not(condition) & mask
    device_assert(A, not np.any(wrong), msg)


@semantics("dp4a", reads="A B C", writes="C", gpu=True, raw=True)
def dp4a(arithmetic: Any, A: Operand, B: Operand, C: Operand) -> None:
    """``C += A[0:4] . B[0:4]``, signed bytes into int32 (tilelang/language/customize.py)."""
    left, right = (x.view(x.starts, (1,) * (len(x.starts) - 1) + (4,), "r").astype(np.int32) for x in (A, B))
    target = C.view(C.starts, (1,) * len(C.starts), "rw")
    target += np.int32((left.reshape(-1) * right.reshape(-1)).sum())


def nothing(A: Any, *_: Any, **__: Any) -> None:
    """A hint, output that nobody sees, or a wait for what is complete here when its statement ends."""


for _name in (
    "sync_grid",
    "print",
    "pdl_trigger",
    "pdl_sync",
    "sync_threads",
    "sync_warp",
    "sync_global",
    "fence_proxy_async",
    "wait_wgmma",
    "ptx_commit_group",
    "ptx_wait_group",
    "warpgroup_arrive",
    "warpgroup_commit_batch",
    "warpgroup_wait",
    "warpgroup_fence_operand",
):
    semantics(_name, gpu=True, raw=True)(nothing)
    semantics(f"{_name}@lanes", gpu=True, raw=True)(nothing)
