"""``T.copy``: moves data between two memories, on the core that the memories belong to."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[copy by-operands each] tilelang/language/copy.py
copy@npu_copy_v2: <src >dst enable_relu=False transpose=False pad_value=None # transpose only for L1 -> L0A/L0B;
    pad_value (default 0) fills what a clamped load leaves of UB
[copy nowhere] tilelang/language/copy.py
c2d_im2col: <img >col nhw_step c_step kernel stride dilation pad # GPU only
""")
