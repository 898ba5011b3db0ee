"""What the operators on tiles share: operands of equal element count, counts, scalars.

The vector instructions know no shapes. They work on so many elements of flat memory, from where the operand begins; the
language takes the number from the destination's region (tilelang/language/ascend_tile.py:binary_op). So operands of
equal element count agree whatever their shapes are, and a whole buffer that is larger gives its first elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes


def spelled(name: str) -> str:
    """The operator as the user writes it."""
    return f"T.{name}" if name.startswith(("reduce_max", "reduce_min")) or name == "reduce_sum" else f"T.tile.{name}"


def shape_of(tile: Any) -> list[int]:
    """The shape for a message; of a number []."""
    return list(np.shape(tile))


def is_tile(value: Any) -> bool:
    """False for a number or a single element."""
    return getattr(value, "ndim", 0) > 0


def elements(A: Any, name: str, source: Any, target: Any, exact: bool = True) -> Any:
    """The elements of a source that meet those of a target, in the target's shape.

    ``exact``: the language compares the sizes; without it a larger source gives its first elements. Raises
    SimulatorError for a number where a tile is needed, for sizes that do not agree and for another element type.
    """
    if not is_tile(source):
        raise SimulatorError(f"{spelled(name)}: a number or a single element where a tile is needed")
    same_type(name, source, target)
    if source.shape == target.shape:
        return source
    if source.size == target.size:
        return source.reshape(target.shape)
    if exact or source.size < target.size:
        raise SimulatorError(
            f"{spelled(name)}: {shape_of(source)} ({source.size} elements) does not fit {shape_of(target)} "
            f"({target.size} elements)"
        )
    return source.reshape(-1)[: target.size].reshape(target.shape)


def same_type(name: str, source: Any, target: Any) -> None:
    """Raises SimulatorError for operands of different element types: no instruction takes them."""
    if source.dtype != target.dtype:
        raise SimulatorError(f"{spelled(name)}: operands of the element types {source.dtype} and {target.dtype}")


def operand(A: Any, name: str, value: Any, target: Any) -> Any:
    """A second operand: a tile, or a number in the target's element type."""
    return elements(A, name, value, target, exact=False) if is_tile(value) else A.like(value, target)


def put(name: str, tile: Any, values: Any, start: int = 0) -> None:
    """Writes flat values from element ``start`` of a tile on, whatever its strides are."""
    values = np.asarray(values).reshape(-1)
    stop = start + values.size
    if stop > tile.size:
        raise SimulatorError(
            f"{spelled(name)}: writes elements {start} to {stop} of a tile {shape_of(tile)} that has {tile.size}"
        )
    if start == 0 and stop == tile.size:
        tile[...] = values.reshape(tile.shape)
    elif tile.flags.c_contiguous:
        tile.reshape(-1)[start:stop] = values
    else:
        tile.flat[start:stop] = values


def put_at(name: str, tile: Any, index: Any, values: Any) -> None:
    """Writes flat values to flat positions of a tile. Raises SimulatorError for a position outside of it."""
    index, values = np.asarray(index).reshape(-1), np.asarray(values).reshape(-1)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= tile.size):
        raise SimulatorError(
            f"{spelled(name)}: writes element {int(index.max())} of a tile {shape_of(tile)} that has {tile.size}"
        )
    if tile.flags.c_contiguous:
        tile.reshape(-1)[index] = values
    else:
        tile.flat[index] = values


def take(name: str, flat: Any, index: Any) -> Any:
    """Elements of flat memory. Raises SimulatorError for a position outside of it."""
    index = np.asarray(index)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= flat.size):
        worst = int(index.max()) if int(index.max()) >= flat.size else int(index.min())
        raise SimulatorError(f"{spelled(name)}: reads element {worst} of a tile that has {flat.size}")
    return flat[index]


# operands that arrive as ``machine.operand.Operand``


def region(name: str, operand: Any, kind: str) -> Any:
    """The view of a region, with all axes. Raises SimulatorError for a number or a start index."""
    if getattr(operand, "extents", None) is None:
        raise SimulatorError(f"{spelled(name)}: a number or a single element where a tile is needed")
    return operand.view(operand.starts, operand.extents, kind)


def number(operand: Any) -> Any:
    """A number, or the element that a start index names."""
    if hasattr(operand, "access"):
        return operand.access.load(operand.number, operand.array, operand.starts, operand.site)
    return operand


def is_region(operand: Any) -> bool:
    """True for an operand with extents."""
    return getattr(operand, "extents", None) is not None


def from_here(operand: Any, kind: str) -> Any:
    """All memory of the buffer from where the operand begins, flat: what an instruction that computes addresses sees.

    Recorded is the region, for which of the elements the instruction takes only its offsets tell.
    """
    if is_region(operand):
        operand.view(operand.starts, operand.extents, kind)
    if kind == "r":
        return operand.array.reshape(-1)[int(np.ravel_multi_index(operand.starts, operand.array.shape)) :]
    return operand.access.tail(operand.number, operand.array, operand.starts, kind, operand.site)


def itemsize(operand: Any) -> int:
    """Bytes of one element as declared."""
    return dtypes.bits(operand.dtype) // 8


def span(name: str, operand: Any, count: Any, kind: str) -> Any:
    """The first ``count`` elements from where a region begins, flat; they may lie beyond the region.

    Raises OutOfBounds if the buffer ends before.
    """
    count = int(count)
    if not is_region(operand):
        raise SimulatorError(f"{spelled(name)}: a number or a single element where a tile is needed")
    if count == math.prod(operand.extents):
        view = region(name, operand, kind)
        return view.reshape(-1)
    if count < 0:
        raise SimulatorError(f"{spelled(name)} of {count} elements")
    return operand.access.flat(operand.number, operand.array, operand.starts, count, kind, operand.site)
