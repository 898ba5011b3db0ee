"""Which ``T.Parallel`` loops the compiler of AscendNPU IR turns into vector operations.

Source: ``src/transform/npu_loop_vectorize.cc`` of tile-ai/tilelang-ascend, branch npuir.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.functions import NPUIR_VECTOR
from tl2npu.kernel.expressions import one_line
from tl2npu.kernel.model import Let, Loop, Operand, Range, Store
from tl2npu.kernel.runtime import Late
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.names import Names
from tl2npu.source.tree import children

_PLAIN = NPUIR_VECTOR | {
    "if_then_else",
    "Cast",
    "cast",
    "min",
    "max",
    "Select",
    "infinity",
    "ceildiv",
    "floordiv",
    "floormod",
}
_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo)


def scalar_reason(loop: Loop, late: Late, names: Names) -> str:
    """Why a loop nest is run element by element; empty for one that becomes vector operations."""
    for item in loop.ranges:
        if late.is_late(item.extent):
            return f"the extent of `{item.name}` is not constant"
    return _body(names, loop, list(loop.ranges))


def _body(names: Names, loop: Loop, ranges: list[Range]) -> str:
    for stmt in loop.body:
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            why = _body(names, stmt, [*ranges, *stmt.ranges])
        elif isinstance(stmt, Store):
            why = _store(names, stmt, ranges)
        elif isinstance(stmt, Let):
            continue
        else:
            why = "one of its statements is not an assignment to an element"
        if why:
            return why
    return ""


def _store(names: Names, stmt: Store, ranges: Sequence[Range]) -> str:
    variables = [item.var for item in ranges]
    for dim in stmt.target.dims or ():
        if dim.loads or (_used(dim.lo, variables) and dim.lo not in variables):
            return f"`{one_line(stmt.target.node)}` is not written at the loop's own indices"
    for load in stmt.value.loads:
        if not in_steps_of_one(load, ranges):
            return f"`{one_line(load.node)}` is not read with stride 1"
    return _expression(names, stmt.value.node)


def in_steps_of_one(load: Operand, ranges: Sequence[Range]) -> bool:
    """Whether each index of a load is that of at most one loop, with something added, and none is read from a tile."""
    variables = [item.var for item in ranges]
    return all(
        _is_unit_stride(dim.lo, variables) and not any(_depends(inner, variables) for inner in dim.loads)
        for dim in load.dims or ()
    )


def _used(index: Sym, variables: Sequence[Sym]) -> list[Sym]:
    return [var for var in variables if index.variables() & var.variables()]


def _is_unit_stride(index: Sym, variables: Sequence[Sym]) -> bool:
    used = _used(index, variables)
    return not used or (len(used) == 1 and not _used(index - used[0], variables))


def _depends(load: Operand, variables: Sequence[Sym]) -> bool:
    return any(_used(dim.lo, variables) for dim in load.dims or ())


def _expression(names: Names, node: cst.CSTNode) -> str:
    if isinstance(node, cst.Subscript):
        return ""
    if isinstance(node, cst.Call):
        short = names.operator(node.func)
        if short and short not in _PLAIN and not short.startswith(("float", "int", "uint", "bfloat")):
            return f"T.{short} has no vector operation here"
    arithmetic = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OPERATORS)
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)) and not arithmetic:
        return f"`{one_line(node)}` has no vector operation here"
    return next((why for child in children(node) if (why := _expression(names, child))), "")
