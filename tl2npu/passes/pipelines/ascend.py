"""Ascend kernels of every style: the full Developer mode, and the fallback that keeps ``vid`` and workspaces."""

from __future__ import annotations

from collections import Counter

from tl2npu.kernel.factories.configs import ALL, COMBINE, CV_SYNC, SINGLE_CORE, read_configs
from tl2npu.kernel.factories.positions import compilations
from tl2npu.kernel.rows import Rows
from tl2npu.passes.ascend import (
    allocations,
    batches,
    coverage,
    guards,
    halves,
    hand_overs,
    launch,
    row_loops,
    row_ops,
    scopes,
    scratch,
    sync,
    turns,
    waves,
)
from tl2npu.passes.ascend.mma import products as mma_products
from tl2npu.passes.ascend.mma import slots as mma_slots
from tl2npu.passes.gpu.launch import persistent
from tl2npu.passes.host import parameters, pass_configs, signature
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports, unused
from tl2npu.passes.pipelines.traits import Traits, uses, vid_name
from tl2npu.passes.plain import compared_types, generated_names
from tl2npu.passes.plain.branches import conditions
from tl2npu.passes.writing import tidy


def developer_form(job: Job, kind: Traits, threads: int) -> None:
    """The full form: no Scope, no sync, no vid, no workspace."""
    read = parameters.read(job) if mma_products.is_manual(job.kernel) else frozenset[str]()
    before: Counter[str] = unused.name_counts(job)
    if threads == 1:
        guards.refuse_second_core(job)
    whole_tiles(job, kind)
    if kind.vector:
        if threads == 2:
            alias = imports.add_alias(job)
            buffers = row_ops.used_buffers(job.kernel)
            row_ops.casts_to_copies(job)
            row_ops.broadcasts_to_parallel(job)
            row_ops.drop_unused_buffers(job, buffers)
            row_loops.vectorise_beside_gather(job)
            imports.drop_alias(job, alias)
        launch.hide_vid(job, threads)
    compared_types.convert(job)
    generated_names.rename(job)
    allocations.infer_allocations(job)
    persistent.limit(job)
    pass_configs.require(job, ALL if kind.cube and kind.vector else SINGLE_CORE)
    unused.drop_unused_names(job, before)
    parameters.drop_unread(job, read, before)
    tidy.join_lines(job)


def own_blocks_form(job: Job) -> None:
    """The full form for kernels of the vector cores alone: no Scope, no sync, no vid, a block for each core."""
    before: Counter[str] = unused.name_counts(job)
    without_sync(job, on_chip=False)
    launch.launch_twice(job)
    compared_types.convert(job)
    generated_names.rename(job)
    allocations.infer_allocations(job)
    pass_configs.require(job, SINGLE_CORE)
    unused.drop_unused_names(job, before)


def fallback_form(job: Job, kind: Traits) -> None:
    """No Scope and no manual sync; vid and workspaces stay."""
    read = parameters.read(job) if mma_products.is_manual(job.kernel) else frozenset[str]()
    before: Counter[str] = unused.name_counts(job)
    without_sync(job, on_chip=False)
    if kind.exchanges:
        scratch.rename(job)
    compared_types.convert(job)
    generated_names.rename(job)
    pass_configs.require(job, ALL if kind.cube and kind.vector else SINGLE_CORE)
    unused.drop_unused_names(job, before)
    parameters.drop_unread(job, read, before)


def whole_tiles(job: Job, kind: Traits) -> None:
    """No Scope, no sync, whole tiles in place of halves, copies in place of round trips through global memory."""
    without_sync(job, on_chip=True)
    if kind.vector:
        guards.normalise(job)
        kernel = job.kernel
        if kernel.vid is not None and uses(kernel, vid_name(kernel) or ""):
            halves.whole_tiles(job, Rows(kernel, kernel.vid))
    hand_overs.hoist_landings(job)
    fused = hand_overs.fuse(job)
    signature.drop_parameters(job, fused.emptied, fused.count)


def without_sync(job: Job, on_chip: bool) -> None:
    """One text for both cores; ``on_chip``: tiles will be handed over on chip, one by one."""
    conditions.to_python(job)
    configs = [read_configs(job.file, found).values for found in compilations(job.located)]
    automatic = any(values.get(CV_SYNC) and values.get(COMBINE) for values in configs)
    coverage.check(job, automatic)
    if mma_products.is_manual(job.kernel):
        sync.remove_sync(job, sync.IN_A_CORE)
        mma_products.to_gemm(job, separate=on_chip)
    if waves.may_break(job):
        waves.unroll(job)
    parts = batches.join(job) if on_chip else set()
    scopes.flatten(job)
    sync.remove_sync(job)
    mma_slots.drop_where_possible(job, sorted(parts & job.kernel.buffers.keys()))
    if on_chip:
        turns.to_tiles(job)
