"""Manual synchronisation: flags between the pipes of a core, flags between cores, barriers.

Without buffer arguments, such a statement has no side of its own: under AUTO_CV_COMBINE it follows the statement
before it (``src/transform/ascend_combinecv.cc``). One without any argument (``sync_all``) makes that pass fail.
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import EXPERT_ONLY, mode, operator, scalar
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param


def _sync(name: str, *params: Param, note: str = "") -> Operator:
    return operator(
        name,
        Kind.SYNC,
        *params,
        core=Core.NONE,
        modes=EXPERT_ONLY,
        defined=f"tilelang/language/ascend.py:{name}",
        note=note,
    )


EVENT_IDS, CROSS_FLAGS, OLD_IDS = 8, 11, 16
"""Numbers of the events of a pair of pipes (AscendC's EVENT_ID0 to EVENT_ID7) and of flags between cores: 0 to 10 are
the user's in the present documentation, 0 to 15 were in older one, and public kernels use some of those."""

OPERATORS = (
    _sync("set_flag", mode("src"), mode("dst"), scalar("eventId"), note="pipes: fix, mte1, mte2, mte3, m, v, s"),
    _sync("wait_flag", mode("src"), mode("dst"), scalar("eventId")),
    _sync(
        "set_cross_flag",
        mode("pipe"),
        scalar("flag"),
        scalar("mode", "2"),
        note="mode 0: all cores of one sort; 1: the two vector cores of a group; 2: cube and vector cores of a group",
    ),
    _sync("wait_cross_flag", scalar("flag"), mode("pipe", "''"), note="pipe is for A5 only"),
    _sync("barrier_all", note="all pipes of the core; pipe_barrier of 'ALL'"),
    _sync("pipe_barrier", mode("pipe")),
    _sync("sync_all", note="all cores of the grid"),
)

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
