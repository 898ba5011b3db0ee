"""What the operators mean. One file per family; importing this package fills the table of ``registry``."""

from __future__ import annotations

from tl2npu.simulator.operators import (  # noqa: F401
    broadcasts,
    casts,
    copies,
    fill,
    gemm,
    gpu_atomics,
    gpu_copies,
    gpu_others,
    gpu_reduce,
    indexing,
    masks,
    npuir_copies,
    npuir_shapes,
    npuir_vectors,
    reduce,
    sorts,
    system,
    tile_arithmetic,
    tile_blocks,
)
