"""Names of a kernel that the generated C++ has another meaning for (TL747)."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.ascend.generated_names import KEYWORDS, OF_THE_FUNCTION, TYPES
from tl2npu.kernel.model import Kernel, Let, Loop
from tl2npu.source.tree import nodes_of


def clashes(kernel: Kernel) -> dict[str, tuple[cst.CSTNode, str, str]]:
    """The names that clash: where each is bound, why it does, and the element type without which it does not."""
    whole: dict[str, cst.CSTNode] = {buffer.name: buffer.node for buffer in kernel.buffers.values()}
    if kernel.launch is not None:
        whole |= dict.fromkeys(kernel.launch.names, kernel.launch.item)
    every = dict(whole)
    for stmt in kernel.walk():
        if isinstance(stmt, Loop):
            every |= {item.name: stmt.node for item in stmt.ranges if item.name not in every}
        elif isinstance(stmt, Let) and nodes_of(stmt.value.node, cst.Subscript):
            every.setdefault(stmt.name, stmt.node)  # another value is put where it is used
    found: dict[str, tuple[cst.CSTNode, str, str]] = {}
    for name, node in every.items():
        if name in TYPES:
            found[name] = node, f"hides the type `{name}` in the generated C++", TYPES[name]
        elif name in KEYWORDS:
            found[name] = node, "a keyword of C++, which the generated text would use as a name", ""
        elif name in OF_THE_FUNCTION and name in whole:
            found[name] = node, "the generated C++ declares this name itself", ""
    return found
