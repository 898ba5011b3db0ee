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


def sized(operand: Operand) -> str | None:
    """An operand as text that has a size for ``T.tile.atomic_add``; None for a part that needs a tile of its own.

    Such are those with some of the columns of several rows, too: the rows lose their stride (``atomic_add_ub_to_gm``).
    """
    if operand.dims is None:
        return code(operand.node)
    items: list[str] = []
    for dim, size in zip(operand.dims, operand.buffer.shape, strict=False):
        if not isinstance(dim.node, cst.Slice):
            items.append(code(dim.node))
            continue
        lower = "" if dim.node.lower is None or dim.lo.is_zero else code(dim.node.lower)
        ends = dim.node.upper is None or (dim.extent is not None and dim.lo + dim.extent == size)
        upper = "" if ends or dim.node.upper is None else code(dim.node.upper)
        if (lower and upper) or (dim is operand.dims[-1] and (lower or upper)):
            return None
        items.append(f"{lower}:{upper}")
    return f"{operand.buffer.name}[{', '.join(items)}]"
