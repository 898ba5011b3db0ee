"""The launch of a kernel, the cores' scopes, and the decorators."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[launch both] tilelang/language/kernel.py
Kernel: *blocks threads=None is_cpu=False prelude=None is_npu=False pipeline=False # with is_npu: one block
    dimension, threads None (binds cid and vid), 1 or 2 (binds cid)
[scalar] tilelang/language/kernel.py
get_block_binding: dim/scalar=0 # variable `dim` of the launch's frame: 0 the block, 1 the vector core, 0 or 1
[scope expert] tilelang/language/warpgroup.py
Scope: name # 'C' is the cube core, 'V' the vector cores
[decorator] tilelang/language/tir/entry.py
prim_func: func=None private=False check_well_formed=True
[decorator] tvm:script/parser/tir/entry.py
macro: *args hygienic=True # its body is inlined where it is called
""")
