"""Launch, loops, allocations, scopes, flags and output.

Every allocation is a tensor to the compiler; in Developer mode its scope is a hint. ``num_stages`` is not read. The
launch takes one or two extents and binds one name more than extents, the last for the vector core.
"""

from __future__ import annotations

from dataclasses import replace

from tl2npu.dialects import ascend
from tl2npu.dialects.npuir.build import both_modes
from tl2npu.dialects.tables import table

_SAME = "serial unroll vectorized parallel thread_binding grid alloc_buffer prim_func macro"

OPERATORS = (
    *table("""
[alloc by-operands memory=shared] tilelang/language/allocate.py
alloc_shared: shape dtype scope='shared.dyn'
[alloc by-operands memory=fragment] tilelang/language/allocate.py
alloc_fragment: shape dtype scope='local.fragment'
alloc_local: shape dtype scope='local'
[alloc both memory=var] tilelang/language/allocate.py
alloc_var: dtype scope='local.var' # one element, without an initial value
[alloc cube expert memory=l1] tilelang/language/allocate.py
alloc_L1: shape dtype
[alloc cube expert memory=l0a] tilelang/language/allocate.py
alloc_L0A: shape dtype
[alloc cube expert memory=l0b] tilelang/language/allocate.py
alloc_L0B: shape dtype
[alloc cube expert memory=l0c] tilelang/language/allocate.py
alloc_L0C: shape dtype
[alloc vector expert memory=ub] tilelang/language/allocate.py
alloc_ub: shape dtype
"""),
    *both_modes(ascend.OPERATORS[name] for name in _SAME.split()),
    replace(
        next(both_modes([ascend.OPERATORS["Kernel"]])),
        note="with is_npu one or two extents and no threads; (cid, vid) or (bx, by, vid)",
    ),
    *table("""
[loop both] tilelang/language/parallel.py
Parallel: *extents coalesced_width=None # constant extents; not every body becomes a vector operation
[loop both] tilelang/language/pipeline.py
Pipelined: start stop=None num_stages=0 order=None stage=None sync=None group=None # num_stages is not read
[scope expert] tilelang/language/customize_npuir.py
Scope: name # 'Cube' or 'Vector'
[sync expert] tilelang/language/customize_npuir.py
rs: resource # with T.rs('PIPE_MTE2'): the pipe of what is inside
set_flag wait_flag: other event_id=0 # inside of T.rs
pipe_barrier: pipe
block_barrier subblock_barrier sync_block_set sync_block_wait: id # inside of T.rs
[debug] tilelang/language/customize_npuir.py
print: ?obj msg='' hex=False
"""),
)
