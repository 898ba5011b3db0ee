"""Which language a kernel is written in, told from its launch before anything else is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import libcst as cst

from tl2npu.dialects import ascend, gpu, npuir
from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.dialects.gpu.profiling import RANGE
from tl2npu.source.names import Names
from tl2npu.source.tree import calls_in, mentioned, remembered

Dialect = Literal["gpu", "ascend", "npuir"]

NPUIR: Literal["npuir"] = "npuir"
"""The compilation target of the AscendNPU IR branch."""

_NPUIR_ONLY = frozenset(npuir.OPERATORS) - frozenset(ascend.OPERATORS) - frozenset(gpu.OPERATORS)
_TELLING = _NPUIR_ONLY | {
    row.name for row in npuir.OPERATORS.values() if row.kind in (Kind.COPY, Kind.GEMM, Kind.REDUCE, Kind.ATOMIC)
}
"""Names of operators whose arguments may tell the languages apart."""
_ASCEND_ONLY = frozenset({"alloc_ub", "alloc_L1", "alloc_L0A", "alloc_L0B", "alloc_L0C", "Scope"})
_LAUNCHES = ("Kernel", "ClusterKernel", "CUDASourceCodeKernel")
_SHOWN = _ASCEND_ONLY | {*_LAUNCHES}


def dialect_of(node: cst.FunctionDef, names: Names, targets: Iterable[object] = ()) -> Dialect:
    """The language of a kernel; ``targets`` are those that it is compiled for, as far as they are known.

    A kernel is for AscendNPU IR if it is compiled for that target, or uses an operator, or an argument of one, that
    only this branch has. The launch is no sign: ``T.Kernel(n, is_npu=True) as (cid, _)`` is good in both branches.
    """
    if NPUIR in targets:
        return NPUIR
    functions = called(node, names)
    if any(_calls_npuir(part, names) for part in (node, *functions)):
        return NPUIR
    return "gpu" if _is_gpu(node, functions, names) else "ascend"


def _calls_npuir(node: cst.FunctionDef, names: Names) -> bool:
    for found in calls_in(node.body):
        if type(found.func) is cst.Attribute and found.func.attr.value not in _TELLING:
            continue
        resolved = names.resolve(found.func) or ""
        op = npuir.lookup(resolved)
        if op is None:
            continue
        known = _told_by(found)
        if resolved not in known:
            known[resolved] = op.name in _NPUIR_ONLY or _only_takes(op, resolved, found)
        if known[resolved]:
            return True
    return False


@remembered
def _told_by(_call: cst.Call) -> dict[str, bool]:
    """Whether a call is of AscendNPU IR, by what its function is: a call stays as it is from edit to edit."""
    return {}


def _only_takes(op: Operator, resolved: str, call: cst.Call) -> bool:
    """True if a call has arguments that the operator of this name has in no other language, such as a ``size``."""
    given = [(arg.keyword.value if arg.keyword is not None else None, arg.value) for arg in call.args]
    try:
        bound = op.bind(given)
    except TypeError:
        return False
    sizes = [bound.get("size"), bound.get("coalesced_width")]  # older kernels have the size of a copy in third place
    if op.kind is not Kind.REDUCE and any(isinstance(size, (cst.List, cst.Tuple)) for size in sizes):
        return True
    others = [row for row in (ascend.lookup(resolved), gpu.lookup(resolved)) if row is not None]
    return not any(row.takes(given) for row in others)


def is_gpu_kernel(node: cst.FunctionDef, names: Names) -> bool:
    """True for a kernel that is launched without ``is_npu`` and uses no memory or scope of the NPU.

    The launch may stand in a macro that the kernel calls.
    """
    return _is_gpu(node, called(node, names), names)


def _is_gpu(node: cst.FunctionDef, functions: Sequence[cst.FunctionDef], names: Names) -> bool:
    own = _verdict(node, names)
    if own is not None:
        return own
    found = {_verdict(function, names) for function in functions}
    return True in found and False not in found


def _verdict(node: cst.FunctionDef, names: Names) -> bool | None:
    """True for code for a GPU, False for code for an NPU, None where nothing tells."""
    launched: bool | None = None
    for found in calls_in(node.body):
        if type(found.func) is cst.Attribute and found.func.attr.value not in _SHOWN:
            continue
        name = names.operator(found.func)
        if not name:
            continue
        if name in _ASCEND_ONLY:
            return False
        if name in _LAUNCHES:
            launched = True
            if any(arg.keyword is not None and arg.keyword.value == "is_npu" for arg in found.args):
                return False
    return launched


def called(node: cst.FunctionDef, names: Names) -> list[cst.FunctionDef]:
    """The functions of the file that some code names, directly or through others."""
    found: dict[int, cst.FunctionDef] = {}
    open_ends = [node]
    while open_ends:
        for name in sorted(mentioned(open_ends.pop().body) & names.functions.keys()):
            for function in names.functions[name]:
                if function is not node and id(function) not in found:
                    found[id(function)] = function
                    open_ends.append(function)
    return list(found.values())


def launches_in(node: cst.CSTNode, names: Names) -> list[cst.Call]:
    """Every launch below a node."""
    return [found for found in calls_in(node) if names.operator(found.func) in _LAUNCHES]


def unprofiled(node: cst.With, names: Names) -> list[cst.WithItem]:
    """What a ``with`` of a GPU kernel opens, without the ranges of a profiler."""
    calls = [item.item if isinstance(item.item, cst.Call) and item.asname is None else None for item in node.items]
    return [i for i, call in zip(node.items, calls, strict=True) if call is None or names.resolve(call.func) != RANGE]
