"""Copies of npuir kernels: ``T.copy``, what Expert mode has in its place, and atomic sums.

Extents of 1 do not count, the others have to agree on both sides. Nothing is clipped: what lies outside of a tensor is
an access out of bounds. Between element types a copy rounds to nearest even (codegen_npuir_dev.cc,
``CreateCastIfTypeMismatch``).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.gpu_atomics import Place, update
from tl2npu.simulator.operators.registry import semantics


def lengths(extents: Any) -> list[int]:
    """Extents other than 1."""
    return [int(e) for e in extents if int(e) != 1]


def view(operand: Operand, kind: str) -> Any:
    """The region of an operand, all axes."""
    assert operand.extents is not None
    return operand.view(operand.starts, tuple(int(e) for e in operand.extents), kind)


def whole(operand: Operand) -> bool:
    """True for all of a buffer."""
    return not any(operand.starts) and operand.extents == operand.array.shape


def converted(A: Any, values: Any, source: str, target: str) -> Any:
    """Values as another element type, rounded to nearest even."""
    if source == target:
        return values
    if target == "bool":
        return np.logical_not(A.equal(values, A.number(0, source)))
    if source == "bool":
        return A.cast(values.astype(np.int8), target)
    return A.convert(values, target, "rint")


def agree(name: str, src: Operand, dst: Operand) -> None:
    """Raises SimulatorError where the extents of both sides differ."""
    if lengths(src.extents) != lengths(dst.extents):
        raise SimulatorError(
            f"T.{name} of {src.name}{list(src.extents or ())} to {dst.name}{list(dst.extents or ())}: "
            "the extents do not agree"
        )


@semantics("npuir.copy", reads="src", writes="dst", raw=True)
def copy(A: Any, src: Operand, dst: Operand) -> None:
    """``T.copy(src, dst)``.

    A copy that converts into a part of a tile makes the tile anew: nothing is known of the rest of it
    (``InsertSliceWithCast`` puts the part into an empty tile, and converts that).
    """
    if src.memory == "global" and dst.memory == "global":
        raise UnsupportedOperator(f"T.copy from {src.name} to {dst.name}: npuir copies no tensor to a tensor")
    agree("copy", src, dst)
    values = converted(A, view(src, "r"), src.dtype, dst.dtype)
    if np.may_share_memory(src.array, dst.array):
        values = np.array(values)
    if src.dtype != dst.dtype and dst.memory != "global" and not whole(dst):
        dst.array[...] = A.poison(dst.dtype)
    target = view(dst, "w")
    target[...] = values.reshape(target.shape)


@semantics("npuir.load_nd2nz", reads="src", writes="dst", raw=True)
def load_nd2nz(A: Any, src: Operand, dst: Operand) -> None:
    """Global memory to L1."""
    _moved(A, "load_nd2nz", src, dst)


@semantics("npuir.store_nz2nd", reads="src", writes="dst", raw=True)
def store_nz2nd(A: Any, src: Operand, dst: Operand) -> None:
    """L1 to global memory."""
    _moved(A, "store_nz2nd", src, dst)


def _moved(A: Any, name: str, src: Operand, dst: Operand) -> None:
    agree(name, src, dst)
    if src.dtype != dst.dtype:
        raise SimulatorError(f"T.{name} of {src.dtype} to {dst.dtype}: it converts nothing")
    target = view(dst, "w")
    target[...] = view(src, "r").reshape(target.shape)


_FIXPIPE = {("float32", "float16"), ("float32", "bfloat16"), ("int32", "int8")}


@semantics("npuir.store_fixpipe", reads="src", writes="dst", raw=True)
def store_fixpipe(A: Any, src: Operand, dst: Operand, pre_relu_mode: str = "", channel_split: Any = False) -> None:
    """L0C to global memory or UB, converted, with a ReLU before."""
    agree("store_fixpipe", src, dst)
    if src.dtype != dst.dtype and (src.dtype, dst.dtype) not in _FIXPIPE:
        raise SimulatorError(f"T.store_fixpipe of {src.dtype} to {dst.dtype}")
    if pre_relu_mode not in ("", "relu") or channel_split:
        raise UnsupportedOperator("T.store_fixpipe with a leaky or parametric ReLU, or channel_split")
    values = view(src, "r")
    if pre_relu_mode:
        values = A.maximum(values, A.like(0, values))
    target = view(dst, "w")
    target[...] = converted(A, values, src.dtype, dst.dtype).reshape(target.shape)


@semantics("npuir.atomic_add", reads="src", writes="dst", raw=True)
def atomic_add(A: Any, dst: Operand, src: Any) -> None:
    """``dst += src`` in global memory."""
    if not isinstance(src, Operand):
        target = view(dst, "a")
        target[...] = A.add(target, A.like(src, target))
        return
    if src.dtype != dst.dtype:
        raise SimulatorError(f"T.atomic_add of {src.dtype} to {dst.dtype}")
    agree("atomic_add", src, dst)
    values = np.array(view(src, "r"))
    target = view(dst, "a")
    target[...] = A.add(target, values.reshape(target.shape))


@semantics("npuir.atomic_add@lanes", reads="src", writes="dst")
def atomic_add_lanes(A: Any, dst: Place, src: Any, mask: Any = None) -> None:
    """The same for each iteration of a ``T.Parallel``: one after the other on one element."""
    update(A, "add", dst, src, mask, A.name_of(dst[2]))


@semantics("npuir.atomic_add_part", raw=True)
def atomic_add_part(A: Any, **_: Any) -> None:
    """Stands in a ``T.Parallel`` only."""
    raise UnsupportedOperator("T.atomic_add with size= here")


@semantics("npuir.atomic_add_part@lanes", writes="dst src")
def atomic_add_part_lanes(A: Any, dst: Place, src: Place, part: Any, mask: Any = None) -> None:
    """``size=`` elements from a start index on for each iteration, along the last axes."""
    for step in itertools.product(*(range(n) for n in part)):
        access, number, array, index, site = src
        read = access.gather(number, array, _moved_by(index, step), mask, site)
        update(A, "add", (*dst[:3], _moved_by(dst[3], step), dst[4]), read, mask, A.name_of(dst[2]))


def _moved_by(index: Any, step: tuple[int, ...]) -> tuple[Any, ...]:
    """An index whose last axes are so much further; the first axes of a longer step have to be single."""
    step = step[-len(index) :]
    return (*index[: len(index) - len(step)], *(i + s for i, s in zip(index[-len(step) :], step, strict=True)))


@semantics("npuir.print", reads="obj", raw=True)
def show(A: Any, obj: Any) -> None:
    """``T.print``: nothing is printed here."""
