"""``T.tile.compare`` and ``T.tile.select``: masks of one bit per element, the first element in the lowest bit.

Source: codegen_ascend.cc (``CompareCodegen``: 256-byte rule), and the field's tests: bit *i* of byte *k* belongs to
element ``8 k + i`` of the flat tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import elements, is_region, itemsize, number, put, region

_REPEAT = 256
"""Bytes that a vector instruction handles at once."""


@semantics("tile.compare", reads="src0 src1", writes="dst", raw=True)
def compare(A: Any, dst: Any, src0: Any, src1: Any, mode: str) -> None:
    """``dst = src0 <mode> src1`` as a bit mask; ``src1`` a tile or a number."""
    left = region("compare", src0, "r")
    if left.size * itemsize(src0) % _REPEAT:
        raise SimulatorError(
            f"T.tile.compare of {left.size} elements of {itemsize(src0)} bytes: the compiler takes multiples of "
            f"{_REPEAT} bytes only"
        )
    if is_region(src1):
        right = elements(A, "compare", region("compare", src1, "r"), left, exact=False)
    else:
        right = A.like(number(src1), left)
    put_bytes(A, dst, np.packbits(np.asarray(compared(A, left, right, mode)).reshape(-1), bitorder="little"))


def compared(A: Any, left: Any, right: Any, mode: str) -> Any:
    """A comparison by name: EQ, NE, GT, GE, LT, LE."""
    if mode == "EQ":
        return A.equal(left, right)
    if mode == "NE":
        return np.logical_not(A.equal(left, right))
    if mode in ("GT", "GE"):
        left, right, mode = right, left, {"GT": "LT", "GE": "LE"}[mode]
    if mode not in ("LT", "LE"):
        raise SimulatorError(f"T.tile.compare: no mode {mode!r}; there are EQ, NE, GT, GE, LT, LE")
    return A.less(left, right) if mode == "LT" else A.less_equal(left, right)


def put_bytes(A: Any, dst: Any, data: np.ndarray) -> None:
    """Bytes into the memory of a mask of any integer type, from where it begins."""
    view = region("compare", dst, "w")
    if A.is_float(view):
        raise SimulatorError("T.tile.compare: the mask has to be of integers")
    size = itemsize(dst)
    if data.size > view.size * size:
        raise SimulatorError(f"T.tile.compare: a mask of {data.size} bytes does not fit {list(view.shape)} {dst.dtype}")
    if data.size % size:
        raise SimulatorError(f"T.tile.compare: a mask of {data.size} bytes ends inside of a {dst.dtype}")
    put("compare", view, data.view(view.dtype))


def mask_bits(A: Any, mask: Any) -> np.ndarray:
    """The bits of a mask as booleans, flat."""
    view = region("select", mask, "r")
    if A.is_float(view):
        raise SimulatorError("T.tile.select: the mask has to be of integers")
    data = np.ascontiguousarray(view).reshape(-1).view(np.uint8)
    return np.unpackbits(data, bitorder="little").astype(bool)


@semantics("tile.select", reads="selMask src0 src1", writes="dst", raw=True)
def select(A: Any, dst: Any, selMask: Any, src0: Any, src1: Any, selMode: str) -> None:
    """``dst = src0 where the mask has a one, else src1``.

    ``VSEL_TENSOR_TENSOR_MODE`` and ``VSEL_TENSOR_SCALAR_MODE`` take a bit for every element. ``VSEL_CMPMASK_SPR`` has
    a mask of one repeat only (256 bytes of elements), which is used again for each.
    """
    target = region("select", dst, "w")
    chosen = mask_bits(A, selMask)
    if selMode == "VSEL_CMPMASK_SPR":
        once = min(_REPEAT // itemsize(dst), target.size)
        _enough(chosen, once)
        chosen = np.resize(chosen[:once], target.size)
    elif selMode not in ("VSEL_TENSOR_SCALAR_MODE", "VSEL_TENSOR_TENSOR_MODE"):
        raise SimulatorError(f"T.tile.select: no mode {selMode!r}")
    else:
        _enough(chosen, target.size)
        chosen = chosen[: target.size]
    if is_region(src1) == (selMode == "VSEL_TENSOR_SCALAR_MODE"):
        raise SimulatorError(f"T.tile.select: {selMode} with {'a tile' if is_region(src1) else 'a number'} as src1")
    yes = elements(A, "select", _used(src0, chosen), target)
    if is_region(src1):
        no = elements(A, "select", _used(src1, ~chosen), target, exact=False)
    else:
        no = A.like(number(src1), target)
    target[...] = A.where(chosen.reshape(target.shape), yes, no)


def _used(operand: Any, chosen: np.ndarray) -> Any:
    """The view of a region of which elements are chosen, flat; those that are not chosen may be undefined."""
    view = region("select", operand, "r")
    lanes = np.zeros(view.size, np.bool_)
    lanes[: chosen.size] = chosen[: view.size]
    operand.access.used(operand.number, lanes.reshape(view.shape))
    return view


def _enough(bits: np.ndarray, count: int) -> None:
    if bits.size < count:
        raise SimulatorError(f"T.tile.select: a mask of {bits.size} bits for {count} elements")
