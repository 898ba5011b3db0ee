"""What an operator takes of a buffer, as the language works it out."""

from __future__ import annotations

from tl2npu.kernel.model import Operand
from tl2npu.kernel.symbolic import Sym, const


def extents(operand: Operand) -> tuple[Sym, ...]:
    """The sizes of the part that is named: all of a buffer, the extent of a slice, 1 for an index."""
    if operand.dims is None:
        return operand.buffer.shape
    return tuple(const(1) if dim.extent is None else dim.extent for dim in operand.dims)


def shown(sizes: tuple[Sym, ...]) -> str:
    """Sizes as a reader writes them."""
    return f"[{', '.join(map(str, sizes))}]"
