"""Buffer allocation: ``T.alloc_*``.

Scopes: ``shared`` is UB, ``shared.dyn`` and ``shared.l1`` are L1, ``wmma.matrix_a/b/accumulator`` are L0A, L0B, L0C.
``alloc_shared`` becomes L1 or UB by its uses (``src/transform/ascend_infer_buffer_scope.cc``).
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
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
[alloc by-operands memory=shared] tilelang/language/allocate.py
alloc_shared: shape dtype scope='shared.dyn' # L1 unless a vector operator or a copy on the vector side uses it
[alloc cube memory=fragment] tilelang/language/allocate.py
alloc_fragment: shape dtype scope='local.fragment' # always L0; as an accumulator L0C
[alloc both memory=var] tilelang/language/allocate.py
alloc_var: dtype *args[init,scope] scope='local.var' init=None # one element; a single positional string is the
    scope, anything else the initial value; under AUTO_CV_COMBINE stores to it run on the cube core only
[alloc by-operands] tvm:script/ir_builder/tir/ir.py
alloc_buffer: shape dtype='float32' <data=None strides=None elem_offset=None scope='global' align=-1 offset_factor=0
    buffer_type='default' axis_separators=None # the scope argument names the memory
""")
