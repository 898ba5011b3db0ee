"""Manual synchronisation: how many flags there are, and which operators synchronise by themselves."""

from __future__ import annotations

EVENT_IDS, CROSS_FLAGS, OLD_IDS = 8, 11, 16
"""Numbers of the events of a pair of pipes (AscendC's EVENT_ID0 to EVENT_ID7) and of flags between cores: 0 to 10 are
the user's in the present documentation, 0 to 15 were in older one, and public kernels use some of those."""

SCALAR_BEHIND_BARRIER = frozenset(
    f"tile.{name}" for name in ("add", "sub", "mul", "div", "max", "min", "compare", "select")
)
"""Operators that read an element given as their scalar behind a barrier of all pipes; that of any other operator, and
one in an index, the scalar unit reads at once (``src/target/codegen_ascend.cc``: AddsAndMulsOpCodegen, SubsOpCodegen,
DivsOpCodegen, CompareScalarCodegen, SelectCodegen; measured in the generated source of 95acbd7f)."""

RESULT_OF_SCALAR_UNIT = frozenset({"tile.reduce_sum_experiment"})
"""Operators whose last step the scalar unit does, with flags of its own: it waits for the vector unit, and what
follows waits for it (``AscendC::ReduceSum`` by a count; CANN 8.1,
basic_api/impl/dav_c220/kernel_operator_vec_reduce_impl.h)."""
