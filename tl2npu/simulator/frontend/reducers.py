"""Reducers: tiles to which the iterations of a loop contribute (``T.alloc_reducer``)."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Call, Load
from tl2npu.simulator.ir.stmt import Op


class Reducer(Buffer):
    """A tile made by ``T.alloc_reducer``; ``op``: sum, max, min, bitand, bitor, bitxor."""

    op: str = "sum"


UPDATES = {"sum": "atomic_add", "max": "atomic_max", "min": "atomic_min", "bitor": "atomic_or"}
"""What a reducer does -> the atomic operator that contributes to it."""


def contribution_of(buffer: Buffer, indices: tuple[Any, ...], value: Any) -> Op | None:
    """``acc[i] = acc[i] + value`` of a reducer as an atomic update; None for any other store."""
    if not isinstance(buffer, Reducer):
        return None
    names = {"sum": "+", "max": "max", "min": "min"}
    operands: tuple[Any, ...] = ()
    if isinstance(value, expr.Binary) and value.op == names.get(buffer.op):
        operands = (value.left, value.right)
    elif isinstance(value, Call) and value.name == names.get(buffer.op):
        operands = value.args
    for old, new in (operands, operands[::-1]):
        if isinstance(old, Load) and old.buffer is buffer and _same(old.indices, indices):
            return Op(UPDATES[buffer.op], {"dst": old, "value": new})
    return None


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return all(
        a is b or (isinstance(a, int) and isinstance(b, int) and a == b) for a, b in zip(left, right, strict=True)
    )
