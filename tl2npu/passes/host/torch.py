"""Devices of torch in host code."""

from __future__ import annotations

import re

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.tree import last_name

SAME_IN_NPU = frozenset(
    {
        *("Event", "Stream", "amp", "current_device", "current_stream", "default_stream", "device", "device_count"),
        *("empty_cache", "get_device_name", "get_device_properties", "get_rng_state", "graph", "init", "is_available"),
        *("manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info"),
        *("memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device", "set_rng_state", "stream"),
        *("synchronize",),
    }
)
"""What ``torch.npu`` has under the same name as ``torch.cuda``."""

_DEVICE = re.compile(r"cuda(:\d+)?")
_CALLS = frozenset({"device", "to", "set_default_device", "Generator", "empty", "zeros", "ones", "autocast"})


def is_device(index: Index, node: cst.SimpleString | cst.FormattedString) -> bool:
    """The text is the name of a device: it is given to torch, or to something that is called a device."""
    if isinstance(node, cst.SimpleString):
        value = text_of(node)
        if not isinstance(value, str) or not _DEVICE.fullmatch(value):
            return False
    elif not (node.parts and isinstance(node.parts[0], cst.FormattedStringText) and node.parts[0].value == "cuda:"):
        return False
    above: cst.CSTNode = node
    parent = index.parent(node)
    while isinstance(parent, (cst.IfExp, cst.BooleanOperation, cst.ComparisonTarget)):
        above, parent = parent, index.parent(parent)
    if isinstance(parent, cst.Arg):
        if parent.keyword is not None and "device" in parent.keyword.value:
            return True
        call = index.parent(parent)
        assert isinstance(call, (cst.Call, cst.ClassDef))
        return (
            isinstance(call, cst.Call)
            and (parent.keyword is None or code(parent.keyword) == "default")
            and (last_name(call.func) in _CALLS or any("device" in code(arg) for arg in call.args if arg is not parent))
        )
    if isinstance(parent, cst.Assign):
        return any("device" in code(target.target) for target in parent.targets)
    if isinstance(parent, (cst.Param, cst.AnnAssign)):
        return "device" in code(parent.name if isinstance(parent, cst.Param) else parent.target)
    if isinstance(parent, cst.Comparison):
        return "device" in code(parent)
    return isinstance(parent, cst.Return) and above is not None and _returns_device(index, parent)


def _returns_device(index: Index, node: cst.Return) -> bool:
    function = index.enclosing(node, cst.FunctionDef)
    return function is not None and "device" in function.name.value


def device_text(node: cst.SimpleString) -> cst.SimpleString:
    """``"npu:1"`` for ``"cuda:1"``, in the same quotes."""
    return node.with_changes(value=node.value.replace("cuda", "npu", 1))


def joined_device(node: cst.FormattedString) -> cst.FormattedString:
    """``f"npu:{rank}"`` for ``f"cuda:{rank}"``."""
    return node.with_changes(parts=[cst.FormattedStringText("npu:"), *node.parts[1:]])
