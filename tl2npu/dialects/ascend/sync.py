"""Manual synchronisation: flags between the pipes of a core, flags between cores, barriers.

Without buffer arguments, such a statement has no side of its own: under AUTO_CV_COMBINE it follows the statement
before it (``src/transform/ascend_combinecv.cc``). One without any argument (``sync_all``) makes that pass fail.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

EVENT_IDS, CROSS_FLAGS, OLD_IDS = 8, 11, 16
"""Numbers of the events of a pair of pipes (AscendC's EVENT_ID0 to EVENT_ID7) and of flags between cores: 0 to 10 are
the user's in the present documentation, 0 to 15 were in older one, and public kernels use some of those."""

OPERATORS = table("""
[sync expert] tilelang/language/ascend.py
set_flag: src/mode dst/mode eventId # pipes: fix, mte1, mte2, mte3, m, v, s
wait_flag: src/mode dst/mode eventId
set_cross_flag: pipe flag mode/scalar=2 # mode 0: all cores of one sort; 1: the two vector cores of a group; 2: cube
    and vector cores of a group
wait_cross_flag: flag pipe='' # pipe is for A5 only
barrier_all: # all pipes of the core; pipe_barrier of 'ALL'
pipe_barrier: pipe
sync_all: # all cores of the grid
""")

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
