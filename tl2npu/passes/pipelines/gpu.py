"""GPU kernels in Developer mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.factories.configs import ALL, SINGLE_CORE
from tl2npu.kernel.model import Buffer
from tl2npu.passes.gpu import (
    atomics,
    choices,
    converting_copies,
    elementwise,
    fills,
    floors,
    nan_notes,
    padded_rows,
    scalar_functions,
    single_stores,
    turned_operands,
)
from tl2npu.passes.gpu.bits import rewrite as bits
from tl2npu.passes.gpu.element_copies import calls as element_copies_calls
from tl2npu.passes.gpu.element_copies import images
from tl2npu.passes.gpu.element_copies import rewrite as element_copies
from tl2npu.passes.gpu.element_copies import vectors as element_copies_vectors
from tl2npu.passes.gpu.elementwise import scales
from tl2npu.passes.gpu.launch import arms, behind, empty_loops, grid, persistent, pipelined
from tl2npu.passes.gpu.local_memory import rewrite as local_memory
from tl2npu.passes.gpu.memory import allocations as gpu_allocations
from tl2npu.passes.gpu.memory import (
    cleared,
    conditional_reads,
    conversions,
    homes,
    late_sums,
    masked_products,
    merged,
    narrow_indices,
    renamed,
    scalar_tables,
    sliced_stores,
    tail_masks,
    unread,
)
from tl2npu.passes.gpu.reductions import rewrite as reductions
from tl2npu.passes.host import jit, parameters, pass_configs
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports, tiles, unused
from tl2npu.passes.pipelines.plain import plainly
from tl2npu.passes.pipelines.traits import is_mixed
from tl2npu.passes.plain import compared_types
from tl2npu.passes.plain import wide_atomics as atomics_wide
from tl2npu.passes.writing import tidy


def gpu_form(job: Job, threads: int) -> None:
    """A GPU kernel in Developer mode."""
    job.change("TL101", job.located.node, "rewrote a GPU kernel for the NPU")
    before = unused.name_counts(job)
    jit.name_positional(job)
    from_gpu(job, threads, before)


def from_gpu(job: Job, threads: int, before: Counter[str]) -> None:
    """The passes from the author's own words to the last one; ``before``: how often each name was used."""
    rest = _Rest(threads, before, imports.add_alias(job), parameters.read(job), unused.authors_names(job))
    plainly(job)
    nan_notes.tell(job)
    scalar_tables.to_global(job)
    local_memory.to_buffers(job)
    atomics_wide.to_elements(job)
    sliced_stores.join(job)
    turned_operands.turn(job)
    images.unfold(job)
    job.part("spending", rest.with_memories)


@dataclass(frozen=True, eq=False)
class _Rest:
    """The passes behind each fork, with what was read before the first of them."""

    threads: int
    before: Counter[str]
    alias: tuple[str, cst.CSTNode] | None
    read: frozenset[str]
    authors: frozenset[str]

    def is_made(self, buffer: Buffer) -> bool:
        """Whether a pass made a tile."""
        return buffer.name not in self.authors

    def with_memories(self, job: Job) -> None:
        """Tiles in their memories, and copies."""
        element_copies.to_copies(job)
        atomics.to_tile(job)
        masked_products.apply(job)
        tail_masks.ask_for_tails(job)
        cleared.apart(job)
        homes.assign(job)
        element_copies_calls.match_types(job)
        padded_rows.pad(job)
        element_copies_vectors.by_element(job)
        converting_copies.rewrite(job)
        fills.rewrite(job)
        reductions.rewrite(job)
        scalar_functions.to_tiles(job)
        single_stores.to_copies(job)
        bits.by_element(job)
        job.part("memory", self.with_tiles)

    def with_tiles(self, job: Job) -> None:
        """The passes that add tiles."""
        elementwise.rewrite(job)
        element_copies_vectors.by_element(job)
        if job.ways.tight:
            late_sums.put_off(job)
        else:
            conversions.once(job, self.is_made)
            unread.drop(job, self.is_made)
        renamed.drop(job)
        merged.steps(job, self.authors)
        arms.make_where_read(job, self.authors)
        empty_loops.leave_out(job)
        behind.leave_out(job)
        grid.fold(job, self.threads)
        job.part("loops", self.over_tasks)

    def over_tasks(self, job: Job) -> None:
        """Blocks that do several tasks, and what the compiler asks of single statements."""
        persistent.loop_over_tasks(job)
        floors.round_down(job)
        compared_types.convert(job)
        conditional_reads.bind(job)
        choices.to_branches(job)
        narrow_indices.convert(job)
        gpu_allocations.drop_unused(job, self.before)
        gpu_allocations.finish(job)
        job.part("stages", self.in_stages)

    def in_stages(self, job: Job) -> None:
        """Loops in stages or in turns, and what is around the kernel."""
        if pipelined.limit(job):
            gpu_allocations.finish(job)
        jit.retarget(job)
        pass_configs.require(job, ALL if is_mixed(job.kernel) else SINGLE_CORE, is_new=True)
        scales.name_products(job)
        unused.drop_unused_names(job, self.before)
        parameters.drop_unread(job, self.read, self.before, alone=True)
        imports.drop_alias(job, self.alias)
        tiles.say_what_they_hold(job, self.authors)
        tiles.number_again(job)
        tidy.join_lines(job)
