"""Shared memory between devices (shmem), registers, views, and other operators outside the dialect's core."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[system by-operands expert] tilelang/language/ascend.py
shmem_put_nbi shmem_get_nbi: >dst <src nelems newPe # newPe is the rank of the other device
shmem_ub_put_nbi: <ub >dst nelems newPe strelem=0 # newPe is the rank of the other device
shmem_ub_get_nbi: >dst <src nelems newPe # newPe is the rank of the other device
[system expert] tilelang/language/ascend.py
set_deq_scale: scale # sets a register of the core
[system both expert] tilelang/language/builtin.py
loop_break: # leaves the innermost loop; a call without arguments, which AUTO_CV_COMBINE cannot read
[system] tilelang/language/customize.py
reshape: <src shape # a second name of the same data
view: <src shape=None dtype=None # a second name of the same data
[atomic nowhere] tilelang/language/customize.py
atomic_add atomic_addx2 atomic_addx4: +dst ?value # GPU only: rejected by the Ascend compiler, use tile.atomic_add
[system nowhere] tilelang/language/customize.py
dp4a: <A <B +C # GPU only
[scalar] tilelang/language/customize.py
clamp: dst min_val max_val # an expression, the clamped value: min and max with constants, which T.Parallel cannot
    vectorise
""")
