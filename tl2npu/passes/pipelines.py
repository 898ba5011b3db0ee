"""The order of the passes, for each form that a kernel can take. Nothing else knows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from tl2npu.codes import ROW_SPLIT, VID
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.configs import ALL, COMBINE, CV_SYNC, SINGLE_CORE, read_configs
from tl2npu.kernel.factories.positions import compilations
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import Alloc, Copy, Kernel, Let, Op, Opaque, ScopeBlock, Side, Sync, children
from tl2npu.kernel.rows import Rows
from tl2npu.passes.ascend import (
    allocations,
    batches,
    coverage,
    guards,
    halves,
    hand_overs,
    init_branches,
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
from tl2npu.passes.gpu import (
    atomics,
    converting_copies,
    elementwise,
    fills,
    floors,
    nan_notes,
    padded_rows,
    scalar_functions,
)
from tl2npu.passes.gpu.element_copies import calls as element_copies_calls
from tl2npu.passes.gpu.element_copies import rewrite as element_copies
from tl2npu.passes.gpu.element_copies import vectors as element_copies_vectors
from tl2npu.passes.gpu.launch import empty_loops, grid, persistent, pipelined
from tl2npu.passes.gpu.local_memory import rewrite as local_memory
from tl2npu.passes.gpu.memory import allocations as gpu_allocations
from tl2npu.passes.gpu.memory import homes, late_sums, masked_products, scalar_tables
from tl2npu.passes.gpu.reductions import rewrite as reductions
from tl2npu.passes.host import jit, parameters, pass_configs, signature
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports, unused
from tl2npu.passes.npuir import atomics as npuir_atomics
from tl2npu.passes.npuir import (
    bodies,
    current,
    from_ascend,
    functions,
    guarded,
    operands,
    parts,
    products,
    selects,
    statistics,
    tanh,
    tensors,
    to_gpu_like,
)
from tl2npu.passes.npuir import fills as npuir_fills
from tl2npu.passes.npuir import grid as npuir_grid
from tl2npu.passes.npuir import jit as npuir_jit
from tl2npu.passes.npuir import pipelined as npuir_pipelined
from tl2npu.passes.npuir import reductions as npuir_reductions
from tl2npu.passes.npuir.from_ascend import blocks
from tl2npu.passes.plain import front_end, negative_indices, symbolic_sizes
from tl2npu.passes.plain import wide_atomics as atomics_wide
from tl2npu.passes.plain.branches import conditions
from tl2npu.passes.plain.branches import known as known_branches
from tl2npu.passes.plain.branches import leaks as branches
from tl2npu.passes.plain.branches import values as branches_values
from tl2npu.passes.plain.despecialise import program as despecialise
from tl2npu.passes.plain.hints import drop as hints
from tl2npu.passes.plain.loops import normal as loops
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.passes.plain.types import strings as types
from tl2npu.passes.plain.unsupported import refuse as gpu_unsupported
from tl2npu.passes.writing import tidy
from tl2npu.source.tree import names_in

Style = Literal["gpu", "npuir", "expert", "mixed", "workspace", "vid", "developer", "unknown"]


@dataclass(frozen=True)
class Traits:
    """What kind of kernel it is."""

    style: Style
    cube: bool
    vector: bool
    uses_vid: bool
    exchanges: bool
    alone: bool = False
    """Only one of the two vector cores has anything to do."""

    @property
    def is_rewritten(self) -> bool:
        """Its statements are written anew: what it does is kept, and not how it says it."""
        return self.style in ("gpu", "npuir")


def traits(job: Job) -> Traits:
    """Classify a kernel."""
    kernel = job.kernel
    sides = {side_of(stmt) for stmt in kernel.walk() if not children(stmt)}
    cube = Side.CUBE in sides or Side.BOTH in {side_of(s) for s in kernel.walk() if isinstance(s, Op)}
    vector = Side.VECTOR in sides
    uses_vid = vid_name(kernel) is not None and _used(kernel, vid_name(kernel) or "")
    exchanges = any(
        entry.exchanged and len({hand_overs.side(p, entry.tensor) for p in (*entry.writers, *entry.readers)}) > 1
        for entry in traffic(kernel).values()
    )
    style = _style(job, uses_vid, exchanges, cube and not vector)
    alone = vector and guards.works_alone(kernel) and not guards.runs_both_cores(job)
    return Traits(style, cube, vector, uses_vid, exchanges, alone)


def vid_name(kernel: Kernel) -> str | None:
    """How the kernel spells its second axis, None if it does not name one."""
    names = kernel.launch.names if kernel.launch else ()
    return names[1] if len(names) > 1 and names[1] != "_" else None


def _used(kernel: Kernel, name: str) -> bool:
    assert kernel.launch is not None
    return any(node.value == name for node in names_in(kernel.launch.node.body))


def _style(job: Job, uses_vid: bool, exchanges: bool, cube_only: bool) -> Style:
    kernel = job.kernel
    if kernel.launch is None:
        return "unknown"
    if kernel.dialect != "ascend":
        return kernel.dialect
    manual = any(isinstance(stmt, (Sync, ScopeBlock)) or sync.is_address(stmt) for stmt in kernel.walk())
    automatic = any(read_configs(job.file, found).values.get(key) for found in compilations(job.located) for key in ALL)
    if manual:
        return "mixed" if automatic else "expert"
    if exchanges:
        return "workspace"
    if uses_vid:
        return "vid"
    explicit = any(b.alloc in ("alloc_ub", "alloc_L1", "alloc_L0C") for b in kernel.buffers.values())
    return "expert" if explicit and (cube_only or not automatic) else "developer"


def refuse_unreadable(job: Job) -> None:
    """Raise :class:`Blocked` for what no form can be built from."""
    kernel = job.kernel
    for node, code, message in kernel.problems:
        raise Blocked(code, node, message)
    for stmt in kernel.walk():
        if isinstance(stmt, Op):
            if stmt.op.kind is Kind.SYSTEM or stmt.op.name.endswith("_experiment"):
                raise Blocked("TL311", stmt.node, f"the automatic passes do not support T.{stmt.op.name}")
        elif isinstance(stmt, Opaque) and stmt.buffers:
            raise Blocked("TL902", stmt.node, f"{stmt.why}")


def left_alone(job: Job) -> str | None:
    """Why a kernel that could be read stays as it is, None if it need not."""
    if job.options.keep_expert and mma_products.is_manual(job.kernel):
        return "a hand-written mma pipeline is kept (--keep-expert)"
    does = (stmt for stmt in job.kernel.walk() if not children(stmt) and not isinstance(stmt, (Alloc, Let, Sync)))
    if all(isinstance(stmt, Opaque) and not stmt.buffers for stmt in does):
        return "it has no statement for a core"
    return None


def _without_sync(job: Job, on_chip: bool) -> None:
    """One text for both cores; ``on_chip``: tiles will be handed over on chip, one by one."""
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


def developer_form(job: Job, kind: Traits, threads: int) -> None:
    """The full form: no Scope, no sync, no vid, no workspace."""
    staged = mma_products.is_manual(job.kernel)
    before: Counter[str] = unused.name_counts(job)
    if threads == 1:
        guards.refuse_second_core(job)
    _whole_tiles(job, kind)
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
    allocations.infer_allocations(job)
    pass_configs.require(job, ALL if kind.cube and kind.vector else SINGLE_CORE)
    unused.drop_unused_names(job, before)
    if staged:
        parameters.drop_unused(job, before)
    tidy.join_lines(job)


def _whole_tiles(job: Job, kind: Traits) -> None:
    """No Scope, no sync, whole tiles in place of halves, copies in place of round trips through global memory."""
    _without_sync(job, on_chip=True)
    if kind.vector:
        guards.normalise(job)
        kernel = job.kernel
        if kernel.vid is not None and _used(kernel, vid_name(kernel) or ""):
            halves.whole_tiles(job, Rows(kernel, kernel.vid))
    init_branches.merge(job)
    hand_overs.hoist_landings(job)
    fused = hand_overs.fuse(job)
    signature.drop_parameters(job, fused.emptied, fused.count)


def fallback_form(job: Job, kind: Traits) -> None:
    """No Scope and no manual sync; vid and workspaces stay."""
    staged = mma_products.is_manual(job.kernel)
    before: Counter[str] = unused.name_counts(job)
    _without_sync(job, on_chip=False)
    if kind.exchanges:
        scratch.rename(job)
    pass_configs.require(job, ALL if kind.cube and kind.vector else SINGLE_CORE)
    unused.drop_unused_names(job, before)
    if staged:
        parameters.drop_unused(job, before)


def gpu_form(job: Job, threads: int) -> None:
    """A GPU kernel in Developer mode."""
    job.change("TL101", job.located.node, "rewrote a GPU kernel for the NPU")
    before = unused.name_counts(job)
    jit.name_positional(job)
    _from_gpu(job, threads, before)


def gpu_like_from_npuir(job: Job) -> None:
    """A kernel for AscendNPU IR in Developer mode as it would be written for a GPU."""
    macros.inline(job)
    refuse_unreadable(job)
    to_gpu_like.roundings.say(job)
    to_gpu_like.sizes.to_slices(job)
    to_gpu_like.tails.to_whole_tiles(job)
    to_gpu_like.products.rewrite(job)
    to_gpu_like.reductions.rewrite(job)
    to_gpu_like.fills.rewrite(job)
    to_gpu_like.vector.to_loops(job)
    to_gpu_like.statistics.flatten(job)
    to_gpu_like.launch.rewrite(job)


def ascend_from_npuir(job: Job, threads: int) -> None:
    """A kernel for AscendNPU IR in the Developer mode of Ascend C."""
    before = unused.name_counts(job)
    jit.name_positional(job)
    gpu_like_from_npuir(job)
    gpu_unsupported.refuse(job)
    _from_gpu(job, threads, before)


def _plainly(job: Job, nests: bool = True) -> None:
    """What a GPU kernel says, in the plainest words; with ``nests`` its loops in the dimensions of the vectoriser."""
    despecialise.put_in_order(job)
    macros.inline(job)
    known_branches.fold(job)
    conditions.to_python(job)
    hints.drop(job)
    types.to_strings(job)
    symbolic_sizes.rename(job)
    branches_values.choose(job)
    front_end.make_strict(job)
    negative_indices.count_from_the_start(job)
    loops.normalise(job, nests=nests)
    refuse_unreadable(job)
    branches.refuse_leaks(job)


def _from_gpu(job: Job, threads: int, before: Counter[str]) -> None:
    alias = imports.add_alias(job)
    _plainly(job)
    nan_notes.tell(job)
    scalar_tables.to_global(job)
    local_memory.to_buffers(job)
    atomics_wide.to_elements(job)
    element_copies.to_copies(job)
    atomics.to_tile(job)
    masked_products.apply(job)
    homes.assign(job)
    element_copies_calls.match_types(job)
    padded_rows.pad(job)
    element_copies_vectors.by_element(job)
    converting_copies.rewrite(job)
    fills.rewrite(job)
    reductions.rewrite(job)
    scalar_functions.to_tiles(job)
    elementwise.rewrite(job)
    element_copies_vectors.by_element(job)
    if job.tight:
        late_sums.put_off(job)
    pipelined.limit(job)
    empty_loops.leave_out(job)
    grid.fold(job, threads)
    persistent.loop_over_tasks(job)
    floors.round_down(job)
    gpu_allocations.drop_unused(job, before)
    gpu_allocations.finish(job)
    jit.retarget(job)
    pass_configs.require(job, ALL if is_mixed(job.kernel) else SINGLE_CORE)
    unused.drop_unused_names(job, before)
    imports.drop_alias(job, alias)
    tidy.join_lines(job)


def npuir_from_gpu(job: Job) -> None:
    """A GPU kernel for AscendNPU IR."""
    before: Counter[str] = unused.name_counts(job)
    jit.name_positional(job)
    _plainly(job, nests=False)
    tensors.stage(job)
    parts.convert_first(job)
    atomics_wide.to_elements(job)
    npuir_atomics.to_slices(job)
    guarded.to_branches(job)
    operands.stage(job)
    npuir_reductions.rewrite(job)
    statistics.keep_axis(job)
    tanh.by_sigmoid(job)
    selects.choose(job)
    bodies.straighten(job)
    functions.split(job)
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
        _whole_tiles(job, kind)
    except Blocked as blocked:
        if kind.cube or not kind.uses_vid or blocked.code not in VID | ROW_SPLIT:
            raise
        job.restore(file, edited)
        blocks.refuse_meetings(job.kernel)
        _without_sync(job, on_chip=True)
        blocks.for_vector_cores(job)


def npuir_current(job: Job) -> None:
    """A kernel for AscendNPU IR in the current spelling; nothing is changed where it has it."""
    current.bring_up_to_date(job)
    refuse_unreadable(job)


def npuir_form(job: Job, kind: Traits) -> None:
    """A kernel of any language for AscendNPU IR."""
    if kind.style == "gpu":
        npuir_from_gpu(job)
    elif kind.style == "npuir":
        npuir_current(job)
    else:
        npuir_from_ascend(job, kind)


def is_mixed(kernel: Kernel) -> bool:
    """Both the cube core and the vector cores have work."""
    sides = {side_of(stmt) for stmt in kernel.walk() if not children(stmt)}
    return Side.BOTH in {side_of(s) for s in kernel.walk() if isinstance(s, Copy)} or {Side.CUBE, Side.VECTOR} <= sides
