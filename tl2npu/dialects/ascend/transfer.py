"""``T.copy``: moves data between two memories, on the core that the memories belong to."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import NO_MODE, flag, operator, read, scalar, write
from tl2npu.dialects.catalogue import Core, Kind

_FILE = "tilelang/language/copy.py"

OPERATORS = (
    operator(
        "copy",
        Kind.COPY,
        read("src"),
        write("dst"),
        flag("enable_relu", "False"),
        flag("transpose", "False"),
        scalar("pad_value", "None"),
        core=Core.BY_OPERANDS,
        elementwise=True,
        defined=f"{_FILE}:npu_copy_v2",
        note="transpose only for L1 -> L0A/L0B; pad_value (default 0) fills what a clamped load leaves of UB",
    ),
    operator(
        "c2d_im2col",
        Kind.COPY,
        read("img"),
        write("col"),
        scalar("nhw_step"),
        scalar("c_step"),
        scalar("kernel"),
        scalar("stride"),
        scalar("dilation"),
        scalar("pad"),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_FILE}:c2d_im2col",
        note="GPU only",
    ),
)
