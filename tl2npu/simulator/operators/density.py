"""Regions with gaps, which the vector instructions cannot name.

An instruction gets an address and a number of elements. A region such as some columns of all rows is not consecutive
memory: the compiler passes its first element and its element count, so the instruction works on other elements.
"""

from __future__ import annotations

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.stmt import Op

_STRIDED = {
    "tile.atomic_add",
    "tile.datacachecleanandinvalid_experiment",
    "tile.row_expand_mul",
    "tile.row_expand_mul_experiment",
    "tile.row_expand_sub_experiment",
    "tile.row_expand_div_experiment",
}
"""Operators that know the row length of the buffer."""


def has_gaps(region: Region) -> bool:
    """True if the extents, as far as they are constants, show that the region is not consecutive memory."""
    if region.buffer.strides is not None:
        return False
    known = zip(region.extents, region.buffer.shape, strict=True)
    axes = [(e, s) for e, s in known]
    outer = next((n for n, (e, _) in enumerate(axes) if not (isinstance(e, int) and e == 1)), len(axes))
    return any(isinstance(e, int) and isinstance(s, int) and e != s for e, s in axes[outer + 1 :])


def require_dense(stmt: Op) -> None:
    """Raises SimulatorError for a ``T.tile`` operator on a region with gaps."""
    if not stmt.name.startswith("tile.") or stmt.name in _STRIDED:
        return
    for name, value in stmt.args.items():
        if isinstance(value, Region) and has_gaps(value):
            raise SimulatorError(
                f"T.{stmt.name}: {name} is {value.buffer.name}{list(value.extents)}, a region with gaps in a buffer of "
                f"shape {list(value.buffer.shape)}; the instruction works on consecutive elements",
                stmt.site,
            )
