"""Reductions and scans. A reduction keeps the rank: ``[M, N]`` becomes ``[M, 1]``.

The fourth position of ``reduce_max`` and its like is ``size``, not ``clear``. ``clear=False`` combines with the old
destination. ``abssum`` and ``absmax`` overwrite their source with its absolute values.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[reduce vector row axis=dims] tilelang/language/customize_npuir.py
reduce npuir_reduce: <src >dst dims reduce_mode size=None clear=True # a mode of several, such as sum, prod, max, any
[reduce vector row axis=dim] tilelang/language/customize_npuir.py
reduce_max reduce_min reduce_sum: <buffer >out dim=-1 size=None clear=True
reduce_abssum: ~buffer >out dim=-1
reduce_absmax: ~buffer >out dim=-1 clear=True
cumsum npuir_cumsum: <src >dst=None dim=0 reverse=False # without dst in place; reverse not in Developer mode
""")
