"""Reductions of a UB tile, ``T.reduce_*``, and what the name space inherits from the GPU language.

No temporary buffer is passed: the compiler adds it. (Older sources had ``reduce_max(out, buffer, tmp, dim)``, now only
in the unexported ``tilelang/language/pto.py``.) ``dim`` counts 0 or 1 (-2 or -1) of the last two axes.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[reduce vector row axis=dim] tilelang/language/reduce_ascend.py
reduce: <buffer >out reduce_type dim real_shape=None clear=True # reduce_type is 'reduce_max', 'reduce_min' or
    'reduce_sum'; clear=False combines with the old out, but the compiler sees out as written only
reduce_max reduce_min reduce_sum: <buffer >out dim=-1 *args/flag[clear,real_shape] clear=True real_shape=None #
    after dim, a bool is clear and a list or tuple is real_shape; clear=False combines with the old out, but the
    compiler sees out as written only
[reduce nowhere] tilelang/language/reduce.py
reduce_abssum: <buffer >out dim=-1 # GPU only
reduce_absmax: <buffer >out dim=-1 clear=True # GPU only: rejected by the Ascend compiler
cumsum: <src >dst=None dim=0 reverse=False # GPU only: silently dropped by the Ascend compiler; without dst it works
    in place
""")
