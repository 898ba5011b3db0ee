"""Which language a kernel is written in, told from its launch before anything else is read."""

from __future__ import annotations

import libcst as cst

from tl2npu.source.names import Names
from tl2npu.source.tree import walk

_ASCEND_ONLY = frozenset({"alloc_ub", "alloc_L1", "alloc_L0A", "alloc_L0B", "alloc_L0C", "Scope"})


def is_gpu_kernel(node: cst.FunctionDef, names: Names) -> bool:
    """True for a kernel that is launched without ``is_npu`` and uses no memory or scope of the NPU."""
    launched = False
    for found in walk(node.body):
        if not isinstance(found, cst.Call):
            continue
        resolved = names.resolve(found.func) or ""
        name = resolved.removeprefix("tilelang.language.")
        if name == resolved:
            continue
        if name in _ASCEND_ONLY:
            return False
        if name in ("Kernel", "ClusterKernel", "CUDASourceCodeKernel"):
            launched = True
            if any(arg.keyword is not None and arg.keyword.value == "is_npu" for arg in found.args):
                return False
    return launched
