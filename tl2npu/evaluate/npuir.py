"""What the operators of AscendNPU IR do to their operands (branch npuir, ``codegen_npuir_dev.cc``).

The destination comes last, tiles of one rank meet with their axes of length 1 spread, nothing is clamped, and what
becomes an integer is rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.npuir import SHORT
from tl2npu.evaluate import arithmetic, operators
from tl2npu.evaluate.operators import Args, Place, region
from tl2npu.evaluate.values import Array, Fault, NotChecked, Region, Tile, whole_number

UNCLAMPED = "and is not clamped"
_BESIDE = frozenset({"Tmp"})
"""Operands that hold something on the way to the result."""
_COMBINE: Mapping[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def apply(op: Operator, args: Args, place: Place) -> None:
    """Carry out an operator. Raises :class:`NotChecked` for one without a meaning."""
    name = SHORT.get(op.name, op.name)
    function = _BY_NAME.get(name) or (_element_wise(op) if op.meaning and name.startswith("v") else None)
    if function is None or place.lanes:
        operators.apply(op, args, place)
    else:
        function(args)


def _sized(args: Args, name: str, size: Sequence[Any] | None) -> Region:
    """An operand; ``size`` says how much of it is meant, and its index where that begins."""
    found = region(args, name)
    if size is None:
        return found
    extents = [whole_number(extent, found.tile.name) for extent in size]
    missing = len(found.tile.shape) - len(extents)
    if missing < 0:
        raise NotChecked(f"`size` has more axes than `{found.tile.name}`")
    return Region(found.tile, [*found.starts, *[0] * missing][: len(found.tile.shape)], [1] * missing + extents)


def _pair(args: Args) -> tuple[Region, Region]:
    """Source and destination of a copy; a side that is a place only takes the extents of the other one.

    Raises :class:`NotChecked` for a side that ends behind its tensor: what lies there is read, or overwritten.
    """
    source, target = (_sized(args, name, args.get("size")) for name in ("src", "dst"))
    for own, other in ((source, target), (target, source)):
        if own.extents is None:
            extents = list(other.shape)[-len(own.tile.shape) :]
            own.extents = [1] * (len(own.tile.shape) - len(extents)) + extents
            own.starts = [*own.starts, *[0] * (len(own.extents) - len(own.starts))]
    for side in (source, target):
        for start, extent, length in zip(side.starts, side.shape, side.tile.shape, strict=True):
            if not 0 <= whole_number(start, side.tile.name) <= length - extent:
                raise NotChecked(f"a copy ends behind `{side.tile.name}`, {UNCLAMPED}")
    if [size for size in source.shape if size != 1] != [size for size in target.shape if size != 1]:
        raise Fault(f"a copy of {list(source.shape)} elements to {list(target.shape)} of `{target.tile.name}`")
    return source, target


def _copy(args: Args) -> None:
    """A copy that converts into a part of a tile makes the tile anew (``InsertSliceWithCast``)."""
    source, target = _pair(args)
    if source.tile.in_global and target.tile.in_global:
        raise NotChecked("a tensor is copied to a tensor")
    values = source.view().copy()
    if args.get("pre_relu_mode") == "relu":
        values = np.maximum(values, 0)
    whole = list(target.shape) == list(target.tile.shape)
    if source.tile.dtype != target.tile.dtype and not target.tile.in_global and not whole:
        target.tile.data[...] = arithmetic.lost(target.tile.shape, target.tile.dtype)
    target.assign(arithmetic.cast(values, target.tile.dtype, "CAST_RINT"))


def _atomic_add(args: Args) -> None:
    if not isinstance(args["src"], (Tile, Region)):
        target = _sized(args, "dst", args.get("size"))
        target.assign(target.view() + args["src"])
        return
    source, target = _pair(args)
    before = target.view()
    target.assign(before + source.view().reshape(before.shape))


def _gemm(args: Args) -> None:
    flags = {f"transpose_{side}": args.get(f"{side.lower()}_transpose", False) for side in "AB"}
    size = args.get("size")
    given = {"clear_accum": bool(args.get("initC", False)), **flags}
    for name, axes in (("A", "mk"), ("B", "kn"), ("C", "mn")):
        turned = given.get(f"transpose_{name}", False)
        own = size and [size["mkn".index(axis)] for axis in (axes[::-1] if turned else axes)]
        given[name] = _sized(args, name, own or None)
    operators.gemm(given)


def _met(*operands: Any) -> list[Array]:
    """Operands in the shape in which they meet: that of the lowest rank, without first axes of length 1."""
    rank = min((np.ndim(one) for one in operands if np.ndim(one)), default=0)
    lowered = [np.reshape(one, np.shape(one)[np.ndim(one) - rank :]) if np.ndim(one) else one for one in operands]
    try:
        return list(np.broadcast_arrays(*lowered))
    except ValueError:
        raise Fault("the axes of the operands do not fit") from None


def _value(operand: Any) -> Array:
    operand = Region.whole(operand) if isinstance(operand, Tile) else operand
    return operand.view() if isinstance(operand, Region) and operand.extents is not None else operators.operand(operand)


@cache
def _element_wise(op: Operator) -> Callable[[Args], None]:
    program = compile(op.meaning, op.name, "eval")
    written, *_ = [param.name for param in op.params if "w" in param.mask and param.name not in _BESIDE]
    used = [param.name for param in op.params if param.name in program.co_names]
    functions = {name: arithmetic.function(name) for name in program.co_names if name not in used}

    def function(args: Args) -> None:
        values = _met(*(_value(args[name]) for name in used))
        found = eval(program, {"__builtins__": {}}, {**functions, **dict(zip(used, values, strict=True))})
        _put(_sized(args, written, args.get("size")), found)
        for name in _BESIDE & args.keys():
            beside = region(args, name)
            beside.assign(arithmetic.lost(tuple(beside.shape), beside.tile.dtype))

    return function


def _put(target: Region, values: Array, mode: str = "CAST_RINT") -> None:
    """The result of an operator; one of another rank is laid into the destination as it stands."""
    view, found = target.view(), np.asarray(values)
    if found.size != view.size:
        if found.ndim not in (0, view.ndim) or not set(found.shape) <= {1, *view.shape}:
            raise Fault(f"a result of {list(found.shape)} does not fit `{target.tile.name}`")
        found = np.broadcast_to(found, view.shape)
    target.assign(arithmetic.cast(found, target.tile.dtype, mode))


def _spread(args: Args) -> None:
    _put(region(args, "dst"), _value(args["src"]))


def _cast(args: Args) -> None:
    mode = f"CAST_{str(args.get('round_mode', 'rint')).upper()}"
    if mode == "CAST_ODD":
        raise NotChecked("rounding to odd has no meaning here")
    source = _sized(args, "src", args.get("size"))
    _put(_sized(args, "dst", args.get("size")), source.view(), mode)


def _compare(args: Args) -> None:
    left, right = _met(_value(args["A"]), _value(args["B"]))
    _put(region(args, "C"), arithmetic.COMPARISONS[str(args["cmp_mod"]).upper()](left, right))


def _arange(args: Args) -> None:
    target = region(args, "dst")
    steps = zip(np.indices(target.view().shape), args["strides"], strict=True)
    _put(target, sum(step * stride for step, stride in steps) + args.get("offset", 0))


def _reduction(mode: str, source: str, target: str) -> Callable[[Args], None]:
    def reduce(args: Args) -> None:
        kind = mode or str(args["reduce_mode"])
        of_magnitudes, kind = kind.startswith("abs"), kind.removeprefix("abs")
        if kind not in _COMBINE:
            raise NotChecked(f"a reduction `{kind}` has no meaning here")
        size, clear = args.get("size"), args.get("clear", True)
        if isinstance(size, bool):  # the older spelling
            size, clear = None, size
        given, out = _sized(args, source, size), region(args, target)
        values = np.abs(given.view()) if of_magnitudes else given.view()
        if of_magnitudes:
            given.assign(values)
        axes = args.get("dims", args.get("dim", -1))
        axes = tuple(int(axis) % values.ndim for axis in (axes if isinstance(axes, (list, tuple)) else [axes]))
        found = _COMBINE[kind].reduce(values, axis=axes, keepdims=True)
        part = out if size is None else Region(out.tile, out.starts, list(found.shape))
        before = part.view().copy()
        if before.shape != found.shape:
            raise Fault(f"a reduction of `{given.tile.name}` does not fit `{out.tile.name}`")
        if not clear and size is not None and out.extents is not None:  # it is combined with a tile of that part only
            out.tile.data[...] = arithmetic.lost(out.tile.shape, out.tile.dtype)
        part.assign(found if clear else _COMBINE[kind](before, found))

    return reduce


_BY_NAME: Mapping[str, Callable[[Args], None]] = {
    **dict.fromkeys(("copy", "load_nd2nz", "store_nz2nd", "store_fixpipe"), _copy),
    **dict.fromkeys(("atomic_add", "atomic_addx4"), _atomic_add),
    "gemm": _gemm,
    "vbrc": _spread,
    "vcast": _cast,
    "vcmp": _compare,
    "arange": _arange,
    "reduce": _reduction("", "src", "dst"),
    **{f"reduce_{mode}": _reduction(mode, "buffer", "out") for mode in ("sum", "max", "min", "abssum", "absmax")},
}
