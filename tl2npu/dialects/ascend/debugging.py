"""Output from inside a kernel."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[debug both] tilelang/language/ascend.py
printf: format_str *<args # the one call that AUTO_CV_COMBINE keeps on both cores
[debug by-operands] tilelang/language/ascend.py
dump_tensor: <tensor desc dump_size shape_info=() # runs on the core of the tensor's memory, for a tensor in global
    memory on that of the statement before
[debug nowhere] tilelang/language/print.py
print: ?obj msg='' # GPU only: use printf or dump_tensor
""")
