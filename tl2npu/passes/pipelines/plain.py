"""What a GPU kernel says, in the plainest words: the first passes for every target."""

from __future__ import annotations

from tl2npu.passes.ascend import waves
from tl2npu.passes.job import Job
from tl2npu.passes.pipelines.traits import refuse_unreadable
from tl2npu.passes.plain import (
    assigned_once,
    column_parts,
    digits,
    flat_views,
    float_bits,
    front_end,
    generated_names,
    negative_indices,
    quotients,
    reused_memory,
    schedulers,
    short_tiles,
    staged_tiles,
    stepped_slices,
    symbolic_sizes,
    tile_names,
)
from tl2npu.passes.plain.branches import conditions, one_tile, repeated, same_store
from tl2npu.passes.plain.branches import known as known_branches
from tl2npu.passes.plain.branches import leaks as branches
from tl2npu.passes.plain.branches import tiles as branches_tiles
from tl2npu.passes.plain.branches import values as branches_values
from tl2npu.passes.plain.despecialise import program as despecialise
from tl2npu.passes.plain.despecialise import together
from tl2npu.passes.plain.hints import drop as hints
from tl2npu.passes.plain.hints import profiling
from tl2npu.passes.plain.loops import continues
from tl2npu.passes.plain.loops import normal as loops
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.passes.plain.threads import loops as threads
from tl2npu.passes.plain.types import bools, fp8
from tl2npu.passes.plain.types import strings as types


def in_common_words(job: Job) -> Job:
    """The kernel without names, types, schedulers and exits that would be refused as they stand; or the job itself."""
    words = schedulers.written_out(fp8.as_float16(generated_names.renamed(tile_names.apart(job))))
    return together.merged(continues.without_returns(words))


def plainly(job: Job, nests: bool = True) -> None:
    """Rewrite the kernel; with ``nests``, for Ascend, its loops in the dimensions of the vectoriser, and views stay."""
    despecialise.put_in_order(job)
    macros.inline(job)
    profiling.drop(job)
    flat_views.resolve(job, keep=nests)
    reused_memory.to_tiles(job)
    assigned_once.name_values(job)
    staged_tiles.to_single(job)
    stepped_slices.to_loops(job)
    column_parts.take_apart(job)
    short_tiles.lengthen(job)
    known_branches.fold(job)
    conditions.to_python(job)
    one_tile.join(job)
    waves.to_loops(job, "TL119")
    threads.to_loops(job)
    hints.drop(job)
    types.to_strings(job)
    bools.to_uint8(job)
    float_bits.to_functions(job)
    symbolic_sizes.rename(job)
    same_store.join(job)
    branches_values.choose(job)
    repeated.compute_again(job)
    branches_tiles.allocate_in_front(job)
    front_end.make_strict(job)
    negative_indices.count_from_the_start(job)
    quotients.drop_columns(job)
    if nests:
        digits.join(job)
    loops.normalise(job, nests=nests)
    refuse_unreadable(job)
    branches.refuse_leaks(job)
