"""``T.tile.broadcast`` and the operators that spread a number per row along the row."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import itemsize, put, region, same_type


@semantics("tile.broadcast", reads="src", writes="dst", raw=True)
def broadcast(A: Any, dst: Any, src: Any, axis: int | None = None) -> None:
    """``[M, 1]`` or ``[M]`` along the rows (axis 1), ``[1, N]`` or ``[N]`` to all rows (axis 0).

    Without ``axis`` it is the one of extent 1; a flat source is tried as a row first. Of more than two axes the last
    two count (tilelang/language/ascend_tile.py:broadcast).
    """
    target, source = (_last_two(o, k) for o, k in ((dst, "w"), (src, "r")))
    same_type("broadcast", source, target)
    to, given = target.shape, source.shape
    if source.ndim == 1 and target.ndim == 2:
        if axis == 0 or (axis is None and to[1] == given[0]):
            axis, source = 0, source[None, :]
        elif axis == 1 or (axis is None and to[0] == given[0]):
            axis, source = 1, source[:, None]
        else:
            _unfit(given, to, axis)
    if source.ndim != target.ndim:
        _unfit(given, to, axis)
    if axis is None:
        axis = 1 if source.ndim == 2 and source.shape[1] == 1 != to[1] and not source.shape[0] == 1 != to[0] else 0
    if not 0 <= axis < source.ndim:
        raise SimulatorError(f"T.tile.broadcast: axis {axis} of a tile with {source.ndim} axes")
    expected = tuple(1 if n == axis else size for n, size in enumerate(to)) if source.shape[axis] == 1 else to
    if source.shape != expected:
        _unfit(given, to, axis)
    target[...] = source


def _last_two(operand: Any, kind: str) -> Any:
    view = region("broadcast", operand, kind)
    while view.ndim > 2:
        if view.shape[0] != 1:
            raise SimulatorError(
                f"T.tile.broadcast handles two axes, not the tile {list(view.shape)} of {operand.name}"
            )
        view = view[0]
    return view


def _unfit(given: tuple[int, ...], to: tuple[int, ...], axis: int | None) -> None:
    raise SimulatorError(f"T.tile.broadcast: {list(given)} cannot be spread to {list(to)}, axis {axis}")


def row_expand(A: Any, name: str, function: str, dst: Any, src0: Any, src1: Any) -> None:
    """``dst[i, j] = src0[i, j] <function> src1[i]``.

    ``src1`` has one element per row, or a 32-byte block per row, which is used again along the row (the form that the
    operators without ``tmp`` take). Leading axes are folded into the rows.
    """
    target, left, right = region(name, dst, "w"), region(name, src0, "r"), region(name, src1, "r")
    same_type(name, left, target)
    same_type(name, right, target)
    columns = target.shape[-1]
    rows = target.size // max(columns, 1)
    if left.size != target.size or left.shape[-1] != columns:
        raise SimulatorError(f"T.tile.{name}: {list(left.shape)} does not fit {list(target.shape)}")
    block = 32 // itemsize(dst)
    if right.size == rows:
        factor = right.reshape(rows, 1)
    elif right.size == rows * block and right.shape[-1] == block and columns % block == 0:
        factor = right.reshape(rows, 1, block)
        left = left.reshape(rows, columns // block, block)
    else:
        raise SimulatorError(f"T.tile.{name}: src1 {list(right.shape)} for the {rows} rows of {list(target.shape)}")
    put(name, target, getattr(A, function)(left if factor.ndim == 3 else left.reshape(rows, columns), factor))


def _meaning(name: str, function: str) -> None:
    def expand(A: Any, dst: Any, src0: Any, src1: Any, tmp: Any = None) -> None:
        row_expand(A, name, function, dst, src0, src1)

    semantics(f"tile.{name}", reads="src0 src1 tmp", writes="dst tmp", raw=True)(expand)


_meaning("row_expand_mul", "mul")
_meaning("row_expand_mul_experiment", "mul")
_meaning("row_expand_sub_experiment", "sub")
_meaning("row_expand_div_experiment", "div")
