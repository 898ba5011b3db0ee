"""Where undefined data goes.

A tile is often larger than what was loaded into it; operators then compute on the rest as well, and nothing of that is
stored. So a read of unwritten elements is not reported at once if the operator keeps them apart: the results that
depend on them become undefined, and the report comes when undefined data decides something (a scalar, a product or
reduction that mixes it into every element) or is left in an output. A computing operator whose whole operand is
unwritten is reported where it stands, unless a condition switched off every element of what should have written it,
or a load began behind the end of its tensor, as in the last rows of a tail, or other elements of the buffer are
written: such a load left the rest. A copy hands the gap on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tl2npu.simulator.hazards.pipes import Step
from tl2npu.simulator.hazards.shadow import Cells

if TYPE_CHECKING:
    from tl2npu.simulator.hazards.watched import Watched


@dataclass
class Gap:
    """Undefined elements that a statement reads. ``mask``: which of the region, None for all; ``previous``: the events
    of the region (0: nothing wrote it, negative: undefined data was moved there); ``step`` None for a scalar read."""

    cells: Cells
    mask: Any
    previous: Any
    site: int
    number: int
    step: Step | None
    pipe: int | None = None
    apart: bool = False
    """The statement keeps the elements apart: it only adds to each, or chooses those of the mask."""

    def source(self) -> int:
        """The event that brought undefined data here, 0 if nothing wrote the elements."""
        if isinstance(self.previous, int):
            return -self.previous
        values = np.asarray(self.previous)[self.mask] if self.mask is not None else np.asarray(self.previous)
        return int(-values.min(initial=0))


def spread(access: Watched, cells: Cells, key: Any, full: bool, event: int, gaps: list[Gap]) -> None:
    """Mark what a statement wrote from gaps as undefined, or report them."""
    report = access.observer.report
    shape = cells.get(cells.state.writer, key, False)
    extent = np.shape(shape) if not isinstance(shape, int) else _extent(cells, key)
    extent = extent[: len(extent) - (len(cells.shape) - len(cells.full))]
    total: Any = False
    for gap in gaps:
        step = gap.step
        assert step is not None
        whole = gap.mask is None or bool(np.all(gap.mask))
        left = gap.cells.state.passed_by or (whole and _is_left_over(gap, event))
        meant = left or (gap.cells.state is cells.state and step.operator == "Parallel")
        if whole and not (step.moves or step.element or meant or gap.apart):
            report.uninitialised(access, gap)
            continue
        mask = True if whole else _mapped(gap, extent)
        if mask is None or (not whole and bool(np.all(mask))):
            report.uninitialised(access, gap)
            continue
        total = total | mask
        cells.state.passed_by |= left
        access.observer.origins.setdefault(event, (gap.source(), access.party(gap.site, "Read", gap.pipe), gap.cells))
    if not np.any(total):
        return
    cells.state.tainted = True
    if total is True:
        cells.put(cells.state.writer, key, full, -event)
        return
    marks = np.where(np.broadcast_to(total, extent), np.int32(-event), np.int32(event))
    if len(cells.shape) > len(cells.full):
        marks = marks[..., None]
    cells.put(cells.state.writer, key, False, marks)


def _is_left_over(gap: Gap, event: int) -> bool:
    """Whether something else than this event has written elements of the buffer."""
    writers = np.asarray(gap.cells.get(gap.cells.state.writer, gap.cells.full, True))
    return bool(np.any((writers > 0) & (writers != event)))


def _extent(cells: Cells, key: Any) -> tuple[int, ...]:
    probe = np.broadcast_to(np.int8(0), cells.shape)
    return tuple(np.shape(probe[key]))


def _mapped(gap: Gap, extent: tuple[int, ...]) -> Any:
    """Which results depend on the gap; None if that cannot be told."""
    step = gap.step
    assert step is not None
    mask: Any = np.asarray(gap.mask)
    if mask.ndim > len(gap.cells.full):
        mask = mask.any(axis=-1)
    if step.operands:
        return _product(step.operands.get(gap.number), mask, extent)
    mask = np.squeeze(mask) if mask.ndim > 1 else mask
    kept = tuple(n for n in extent if n != 1)
    count = int(np.prod(kept, dtype=np.int64))
    if mask.shape == kept:
        return mask.reshape(extent)
    if step.operator in _BITS and mask.size == 8 * count:  # a byte of a mask for eight elements
        return mask.reshape(-1, 8).any(axis=-1).reshape(extent)
    if step.operator in _BITS and 8 * mask.size == count:
        return np.repeat(mask.reshape(-1), 8).reshape(extent)
    if mask.ndim == len(kept) - 1:  # a row or column vector spread over a tile
        for axis in reversed(range(len(kept))):
            if mask.shape == tuple(n for a, n in enumerate(kept) if a != axis):
                return np.broadcast_to(np.expand_dims(mask, axis), kept).reshape(extent)
    if mask.ndim == len(kept) + 1:  # a reduction
        for axis in reversed(range(mask.ndim)):
            if kept == tuple(n for a, n in enumerate(mask.shape) if a != axis):
                return mask.any(axis=axis).reshape(extent)
    if mask.size == count:
        return mask.reshape(extent)
    return None


_BITS = ("tile.compare", "tile.select")


def _product(operand: tuple[str, bool] | None, mask: np.ndarray, extent: tuple[int, ...]) -> Any:
    """Rows of the result for A, columns for B; the accumulator element by element."""
    if operand is None:
        return mask.reshape(extent) if mask.size == int(np.prod(extent, dtype=np.int64)) else None
    name, transposed = operand
    matrix = mask.reshape(mask.shape[-2:]) if mask.ndim > 1 else None
    if matrix is None or len(extent) < 2:
        return None
    axis = 1 if (name == "A") != transposed else 0
    lines: Any = matrix.any(axis=axis)
    lead = (1,) * (len(extent) - 2)
    if name == "A" and len(lines) == extent[-2]:
        return np.broadcast_to(lines.reshape(*lead, -1, 1), extent)
    if name == "B" and len(lines) == extent[-1]:
        return np.broadcast_to(lines.reshape(*lead, 1, -1), extent)
    return None
