"""Launch, loops, allocations, scopes, flags and output.

Every allocation is a tensor to the compiler; in Developer mode its scope is a hint. ``num_stages`` is not read. The
launch takes one or two extents and binds one name more than extents, the last for the vector core.
"""

from __future__ import annotations

from dataclasses import replace

from tl2npu.dialects import ascend
from tl2npu.dialects.ascend.build import EXPERT_ONLY
from tl2npu.dialects.catalogue import Core, Kind
from tl2npu.dialects.npuir.build import both_modes, rows

_ALLOCATE = "tilelang/language/allocate.py"
_SAME = (
    *("serial", "unroll", "vectorized", "parallel", "thread_binding", "grid", "alloc_buffer"),
    *("prim_func", "macro"),
)

OPERATORS = (
    *rows(
        Kind.ALLOC,
        """
alloc_shared: shape dtype scope='shared.dyn'
""",
        file=_ALLOCATE,
        core=Core.BY_OPERANDS,
        memory="shared",
    ),
    *rows(
        Kind.ALLOC,
        """
alloc_fragment: shape dtype scope='local.fragment'
alloc_local: shape dtype scope='local'
""",
        file=_ALLOCATE,
        core=Core.BY_OPERANDS,
        memory="fragment",
    ),
    *rows(
        Kind.ALLOC,
        "alloc_var: dtype scope='local.var' # one element, without an initial value",
        file=_ALLOCATE,
        core=Core.BOTH,
        memory="var",
    ),
    *(
        row
        for name, memory, core in (
            ("alloc_L1", "l1", Core.CUBE),
            ("alloc_L0A", "l0a", Core.CUBE),
            ("alloc_L0B", "l0b", Core.CUBE),
            ("alloc_L0C", "l0c", Core.CUBE),
            ("alloc_ub", "ub", Core.VECTOR),
        )
        for row in rows(Kind.ALLOC, f"{name}: shape dtype", file=_ALLOCATE, core=core, memory=memory, modes=EXPERT_ONLY)
    ),
    *both_modes(ascend.OPERATORS[name] for name in _SAME),
    replace(
        next(both_modes([ascend.OPERATORS["Kernel"]])),
        note="with is_npu one or two extents and no threads; (cid, vid) or (bx, by, vid)",
    ),
    *rows(
        Kind.LOOP,
        "Parallel: *extents coalesced_width=None # constant extents; not every body becomes a vector operation",
        file="tilelang/language/parallel.py",
        core=Core.BOTH,
    ),
    *rows(
        Kind.LOOP,
        "Pipelined: start stop=None num_stages=0 order=None stage=None sync=None group=None # num_stages is not read",
        file="tilelang/language/pipeline.py",
        core=Core.BOTH,
    ),
    *rows(Kind.SCOPE, "Scope: name # 'Cube' or 'Vector'", core=Core.NONE, modes=EXPERT_ONLY),
    *rows(
        Kind.SYNC,
        "rs: resource # with T.rs('PIPE_MTE2'): the pipe of what is inside",
        core=Core.NONE,
        modes=EXPERT_ONLY,
    ),
    *rows(
        Kind.SYNC,
        """
set_flag wait_flag: other event_id=0 # inside of T.rs
pipe_barrier: pipe
block_barrier subblock_barrier sync_block_set sync_block_wait: id # inside of T.rs
""",
        core=Core.NONE,
        modes=EXPERT_ONLY,
    ),
    *rows(Kind.DEBUG, "print: ?obj msg='' hex=False", core=Core.NONE),
)
