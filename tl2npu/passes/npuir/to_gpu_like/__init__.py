"""From a kernel for AscendNPU IR in Developer mode to the form that GPU kernels have (`--to ascendc`)."""

from __future__ import annotations

from tl2npu.passes.npuir.to_gpu_like import (
    fills,
    launch,
    products,
    reductions,
    roundings,
    sizes,
    statistics,
    tails,
    unsupported,
    vector,
)

__all__ = [
    "fills",
    "launch",
    "products",
    "reductions",
    "roundings",
    "sizes",
    "statistics",
    "tails",
    "unsupported",
    "vector",
]
