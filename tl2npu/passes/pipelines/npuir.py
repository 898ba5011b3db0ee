"""Kernels for AscendNPU IR, and from it to Ascend C."""

from __future__ import annotations

from collections import Counter

from tl2npu.codes import ROW_SPLIT, VID
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.gpu.memory import allocations as gpu_allocations
from tl2npu.passes.host import jit
from tl2npu.passes.job import Job
from tl2npu.passes.names import unused
from tl2npu.passes.npuir import atomics as npuir_atomics
from tl2npu.passes.npuir import (
    bodies,
    current,
    cut_off,
    formulas,
    from_ascend,
    functions,
    guarded,
    operands,
    products,
    selects,
    staged_copies,
    statistics,
)
from tl2npu.passes.npuir import fills as npuir_fills
from tl2npu.passes.npuir import grid as npuir_grid
from tl2npu.passes.npuir import jit as npuir_jit
from tl2npu.passes.npuir import pipelined as npuir_pipelined
from tl2npu.passes.npuir import reductions as npuir_reductions
from tl2npu.passes.npuir.from_ascend import blocks
from tl2npu.passes.npuir.to_gpu_like import fills as gpu_fills
from tl2npu.passes.npuir.to_gpu_like import launch as gpu_launch
from tl2npu.passes.npuir.to_gpu_like import products as gpu_products
from tl2npu.passes.npuir.to_gpu_like import reductions as gpu_reductions
from tl2npu.passes.npuir.to_gpu_like import roundings, sizes, tails, vector
from tl2npu.passes.npuir.to_gpu_like import statistics as gpu_statistics
from tl2npu.passes.pipelines.ascend import whole_tiles, without_sync
from tl2npu.passes.pipelines.gpu import from_gpu
from tl2npu.passes.pipelines.plain import plainly
from tl2npu.passes.pipelines.traits import Traits, refuse_unreadable
from tl2npu.passes.plain import wide_atomics as atomics_wide
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.passes.plain.unsupported import refuse as gpu_unsupported
from tl2npu.passes.writing import tidy


def npuir_form(job: Job, kind: Traits) -> None:
    """A kernel of any language for AscendNPU IR."""
    if kind.style == "gpu":
        npuir_from_gpu(job)
    elif kind.style == "npuir":
        npuir_current(job)
    else:
        npuir_from_ascend(job, kind)


def npuir_from_gpu(job: Job) -> None:
    """A GPU kernel for AscendNPU IR."""
    before: Counter[str] = unused.name_counts(job)
    jit.name_positional(job)
    plainly(job, nests=False)
    staged_copies.stage(job)
    staged_copies.cut_off(job)
    staged_copies.convert_first(job)
    atomics_wide.to_elements(job)
    npuir_atomics.to_slices(job)
    guarded.to_branches(job)
    operands.stage(job)
    npuir_reductions.rewrite(job)
    statistics.keep_axis(job)
    formulas.spell_out(job)
    selects.choose(job)
    bodies.straighten(job)
    functions.split(job)
    cut_off.in_loops(job)
    npuir_fills.bind(job)
    npuir_pipelined.limit(job)
    products.initialise(job)
    npuir_grid.launch(job)
    gpu_allocations.drop_unused(job, before)
    npuir_jit.retarget(job)
    unused.drop_unused_names(job, before)
    tidy.join_lines(job)


def npuir_from_ascend(job: Job, kind: Traits) -> None:
    """An Ascend kernel of any style for AscendNPU IR: first in Developer mode, then in the other language."""
    before: Counter[str] = unused.name_counts(job)
    job.change("TL420", job.located.node, "rewrote an Ascend kernel for AscendNPU IR")
    jit.name_positional(job)
    macros.inline(job)
    if kind.style != "developer":
        _without_vid(job, kind)
    refuse_unreadable(job)
    from_ascend.rewrite(job)
    npuir_jit.retarget(job)
    unused.drop_unused_names(job, before)
    tidy.join_lines(job)


def _without_vid(job: Job, kind: Traits) -> None:
    """Whole tiles; where the vector cores have work of their own, blocks of their own."""
    file, edited = job.file, list(job.edited)
    try:
        whole_tiles(job, kind)
    except Blocked as blocked:
        if kind.cube or not kind.uses_vid or blocked.code not in VID | ROW_SPLIT:
            raise
        job.restore(file, edited)
        blocks.refuse_meetings(job.kernel)
        without_sync(job, on_chip=True)
        blocks.for_vector_cores(job)


def npuir_current(job: Job) -> None:
    """A kernel for AscendNPU IR stays as it is, if it is in the current spelling."""
    current.refuse_older(job)
    refuse_unreadable(job)


def ascend_from_npuir(job: Job, threads: int) -> None:
    """A kernel for AscendNPU IR in the Developer mode of Ascend C."""
    before = unused.name_counts(job)
    jit.name_positional(job)
    gpu_like_from_npuir(job)
    gpu_unsupported.refuse(job)
    from_gpu(job, threads, before)


def gpu_like_from_npuir(job: Job) -> None:
    """A kernel for AscendNPU IR in Developer mode as it would be written for a GPU."""
    macros.inline(job)
    refuse_unreadable(job)
    roundings.say(job)
    sizes.to_slices(job)
    tails.to_whole_tiles(job)
    gpu_products.rewrite(job)
    gpu_reductions.rewrite(job)
    gpu_fills.rewrite(job)
    vector.to_loops(job)
    gpu_statistics.flatten(job)
    gpu_launch.rewrite(job)
