"""Which atomic operations the NPU has."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Op, Operand, Scalar


def refuse_atomic(stmt: Op) -> None:
    """Raise :class:`Blocked` for anything but an addition to global memory whose old value nobody wants."""
    target = stmt.args.get("dst")
    if stmt.op.name != "atomic_add":
        raise Blocked("TL173", stmt.node, f"the NPU has no counterpart for `T.{stmt.op.name}`: it adds tiles")
    if not isinstance(target, Operand) or target.buffer.memory is not Memory.GM:
        name = code(target.node) if target is not None else "this"
        raise Blocked("TL173", stmt.node, f"`{name}` is on chip: the NPU has atomics only on global memory")
    previous = stmt.args.get("return_prev")
    if isinstance(previous, Scalar) and previous.sym.constant != 0:
        raise Blocked("TL173", stmt.node, "the NPU's atomic addition does not return the old value")


def extends(operand: Operand) -> bool:
    """True if ``T.tile.atomic_add`` can read a size from an operand: a whole tile, or rows of it as ``tile[i, :]``.

    A slice with bounds becomes a load of a vector in TVM's parser, and a load has no extents there
    (tilelang/language/ascend_tile.py:_atomic_add_extent; measured: "Cannot deduce atomic_add extents").
    """
    slices = [dim.node for dim in operand.dims or () if isinstance(dim.node, cst.Slice)]
    return operand.dims is None or (bool(slices) and all(s.lower is None and s.upper is None for s in slices))
