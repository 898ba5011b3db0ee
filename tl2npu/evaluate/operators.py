"""What the operators of GPU TileLang and of Ascend do to their operands. One that is missing has no meaning here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tl2npu.dialects.catalogue import Kind, Operator
from tl2npu.evaluate import arithmetic, copies, elements
from tl2npu.evaluate.values import Array, Cell, Fault, NotChecked, Region, Tile, whole_number
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.sizes import ITEM_SIZE

Args = Mapping[str, Any]

IDLE = frozenset({Kind.SYNC, Kind.ANNOTATION, Kind.DEBUG})
"""What orders or describes, and computes nothing."""
_IDLE_NAMES = frozenset({"use_swizzle", "sync_threads", "sync_all", "disable_warp_group_reg_alloc", "finalize_reducer"})


_PRODUCT = 1 << 18
"""Multiplications up to which OpenBLAS starts no threads: they would cost more than they save."""


@dataclass(frozen=True)
class Place:
    """Where an operator stands: the lanes around it, who is active, the number of the vector core, the language."""

    lanes: tuple[int, ...]
    mask: Array | None
    vid: int
    gpu: bool


def apply(op: Operator, args: Args, place: Place) -> None:
    """Carry out an operator. Raises :class:`NotChecked` for one without a meaning."""
    if op.kind in IDLE or op.name in _IDLE_NAMES:
        return
    if op.kind is Kind.SYSTEM and not any(isinstance(value, (Tile, Region)) for value in args.values()):
        return
    function = _BY_NAME.get(op.name) or (_element_wise(op) if op.meaning else None)
    if function is None:
        raise NotChecked(f"`T.{op.name}` has no meaning here")
    if place.lanes and op.kind is not Kind.ATOMIC and (op.kind is not Kind.FILL or place.mask is not None):
        raise NotChecked(f"`T.{op.name}` stands in a `T.Parallel` loop")
    function(args, place)


def is_statement(op: Operator) -> bool:
    """Whether an operator stores something, and has no value."""
    return op.name in _BY_NAME or any("w" in param.mask for param in op.params)


def region(args: Args, name: str) -> Region:
    """An operand that is a tile or a part of one."""
    found = args.get(name)
    if isinstance(found, Tile):
        return Region.whole(found)
    if not isinstance(found, Region):
        raise NotChecked(f"`{name}` is not a tile")
    return found


def _flag(args: Args, name: str, default: bool = False) -> bool:
    return bool(args.get(name, default))


# both languages ------------------------------------------------------------------------------------------------------


def _copy(args: Args, place: Place) -> None:
    pad = args.get("pad_value")
    source, target = region(args, "src"), region(args, "dst")
    source = _turned(source) if _flag(args, "transpose") else source
    combine = (lambda _, new: np.maximum(new, 0)) if _flag(args, "enable_relu") else None
    copies.copy(source, target, 0 if pad is None else pad, place.gpu, place.vid, combine)


def _turned(region: Region) -> Region:
    """The same elements with the last two axes exchanged."""
    tile, turned = region.tile, [*range(len(region.starts) - 2), len(region.starts) - 1, len(region.starts) - 2]
    made = Tile(tile.name, tile.dtype, tile.memory, tile.data.transpose(turned), written=tile.written)
    extents = None if region.extents is None else [region.extents[axis] for axis in turned]
    return Region(made, [region.starts[axis] for axis in turned], extents)


def _fill(args: Args, place: Place) -> None:
    value, target = operand(args.get("value", 0), 1), args.get("buffer")
    if isinstance(target, Cell):
        target.value = arithmetic.cast(value, target.dtype)[()]
        return
    part = region(args, "buffer")
    if part.extents is None:
        if not part.is_element:
            raise NotChecked(f"a part of `{part.tile.name}` without extent is filled")
        elements.store(part.tile, part.starts, value, (), None)
        return
    part.tile.lanes.clear()
    part.assign(np.full(part.view().shape, value))


def _matrix(region: Region, transposed: bool) -> np.ndarray[Any, Any]:
    found = region.view()
    found = found.reshape([size for size in found.shape[:-2] if size != 1] + list(found.shape[-2:]))
    if found.ndim != 2:
        raise NotChecked(f"`{region.tile.name}` is not a matrix")
    found = found.astype(np.float64)
    return found.T if transposed else found


def gemm(args: Args, place: Place | None = None) -> None:
    """``C + A @ B``, or ``A @ B``."""
    left = _matrix(region(args, "A"), _flag(args, "transpose_A"))
    right = _matrix(region(args, "B"), _flag(args, "transpose_B"))
    target = region(args, "C")
    if left.shape[1] != right.shape[0]:
        raise Fault("a product of matrices that do not fit")
    rows = max(_PRODUCT // max(right.size, 1), 1)
    found = np.concatenate([left[row : row + rows] @ right for row in range(0, len(left), rows)])
    clear = _flag(args, "clear_accum") or _flag(args, "init")  # a kernel between two passes has either
    before = target.view()
    if found.size != before.size:
        raise Fault("a product does not fit its sum")
    target.assign(found if clear else before + found.reshape(before.shape))


_REDUCTIONS: Mapping[str, tuple[Callable[..., Any], Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (np.sum, lambda x: x, np.add),
    "max": (np.max, lambda x: x, np.maximum),
    "min": (np.min, lambda x: x, np.minimum),
    "abssum": (np.sum, np.abs, np.add),
    "absmax": (np.max, np.abs, np.maximum),
    "bitand": (np.bitwise_and.reduce, lambda x: x, np.bitwise_and),
    "bitor": (np.bitwise_or.reduce, lambda x: x, np.bitwise_or),
    "bitxor": (np.bitwise_xor.reduce, lambda x: x, np.bitwise_xor),
}


def _reduce(name: str) -> Callable[[Args, Place], None]:
    def function(args: Args, place: Place) -> None:
        kind = name or str(args.get("reduce_type", args.get("type", ""))).removeprefix("reduce_")
        if kind not in _REDUCTIONS:
            raise NotChecked(f"a reduction `{kind}` has no meaning here")
        combine, of, join = _REDUCTIONS[kind]
        source, target = region(args, "buffer"), region(args, "out")
        axis = whole_number(args.get("dim", -1), source.tile.name)
        values = source.view()
        for along, size in enumerate(args.get("real_shape") or ()):  # the compiler halves rows with the tile
            kept = min(whole_number(size, source.tile.name), values.shape[along])
            values = values.take(range(kept), axis=along)
        if not place.gpu and axis >= 0 and values.ndim > 1:
            axis -= 2  # of the last two axes
        elif not place.gpu and values.ndim == 1:
            axis = -1
        found = combine(of(values), axis=axis)
        before = target.view()
        if np.size(found) != before.size:
            raise Fault(f"a reduction of `{source.tile.name}` does not fit `{target.tile.name}`")
        found = np.reshape(found, before.shape)
        target.assign(found if _flag(args, "clear", True) else join(before, found))

    return function


def _cumsum(args: Args, place: Place) -> None:
    source = region(args, "src")
    target = region(args, "dst") if args.get("dst") is not None else source
    axis = whole_number(args.get("dim", 0), source.tile.name)
    values = source.view()
    if _flag(args, "reverse"):
        target.assign(np.flip(np.cumsum(np.flip(values, axis), axis), axis))
    else:
        target.assign(np.cumsum(values, axis))


def _transpose(args: Args, place: Place) -> None:
    target = region(args, "dst")
    target.assign(np.squeeze(region(args, "src").view()).T.reshape(target.view().shape))


def _im2col(args: Args, place: Place) -> None:
    """Rows of a convolution as a matrix (``Conv2DIm2ColOp``, tilelang/src/op/copy.cc): the image is NHWC, channels are
    the fastest columns, what lies outside of the image is 0."""
    image, target = region(args, "img").view(), region(args, "col")
    _, height, width, channels = image.shape
    kernel, stride, dilation, pad = (int(args[name]) for name in ("kernel", "stride", "dilation", "pad"))
    rows, columns = target.view().shape
    row = (args["nhw_step"] * rows + np.arange(rows))[:, None]
    column = (args["c_step"] * columns + np.arange(columns))[None, :]
    high, wide = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width))
    y = row % (high * wide) // wide * stride + column // channels // kernel * dilation - pad
    x = row % wide * stride + column // channels % kernel * dilation - pad
    index = [row // (high * wide), y, x, column % channels]
    inside = np.all([(i >= 0) & (i < n) for i, n in zip(np.broadcast_arrays(*index), image.shape, strict=True)], axis=0)
    index = [np.clip(i, 0, n - 1) for i, n in zip(index, image.shape, strict=True)]
    target.assign(np.where(inside, image[tuple(index)], 0))


def _several_atomics(count: int) -> Callable[[Args, Place], None]:
    """``T.atomic_addx2``: elements side by side."""
    add = _atomic("+")

    def function(args: Args, place: Place) -> None:
        sides = [region(args, name) for name in ("dst", "value")]
        for number in range(count):
            moved = [Region(side.tile, [*side.starts[:-1], side.starts[-1] + number], None) for side in sides]
            add({**args, "dst": moved[0], "value": moved[1]}, place)

    return function


def _atomic(how: str) -> Callable[[Args, Place], None]:
    def function(args: Args, place: Place) -> None:
        if args.get("return_prev"):
            raise NotChecked("an atomic operator gives the old value")
        value = args["value"] if "value" in args else args["src"]
        target = region(args, "dst")
        if isinstance(value, (Tile, Region)):
            value = region({"value": value}, "value")
        if isinstance(value, Region) and not (value.is_element and target.is_element):
            copies.copy(value, target, 0, True, 0, elements.COMBINED[how])  # no half of the rows: both cores add
        else:
            found = elements.load(value.tile, value.starts, False) if isinstance(value, Region) else value
            if not target.is_element:
                raise NotChecked("a number is added to a part of a tensor")
            elements.store(target.tile, target.starts, found, place.lanes, place.mask, how)

    return function


# Ascend --------------------------------------------------------------------------------------------------------------


def operand(value: Any, count: int = 1) -> Any:
    """An operand of ``T.tile``: the elements of a tile from where it begins, or one number for all."""
    if isinstance(value, Tile):
        value = Region.whole(value)
    if isinstance(value, Region):
        return elements.load(value.tile, value.starts, False) if value.is_element else value.flat(count)
    if isinstance(value, Cell):
        return value.value
    if isinstance(value, str):
        raise NotChecked(f"`{value}` is not a tile")
    return value


@cache
def _element_wise(op: Operator) -> Callable[[Args, Place], None]:
    used = [param.name for param in op.params]
    program = compile(op.meaning, op.name, "eval")
    written = next(param.name for param in op.params if "w" in param.mask)

    def function(args: Args, place: Place) -> None:
        target = region(args, written)
        view = target.view()
        values = {name: operand(args[name], view.size) for name in used if name in args}
        functions = {name: arithmetic.function(name) for name in program.co_names if name not in values}
        found = eval(program, {"__builtins__": {}}, {**functions, **values})
        target.assign(found if np.size(found) == view.size else np.broadcast_to(found, view.shape))

    return function


def _compare(args: Args, place: Place) -> None:
    mask, left = region(args, "dst"), args["src0"]
    left = Region.whole(left) if isinstance(left, Tile) else left
    if not isinstance(left, Region) or args.get("mode") not in arithmetic.COMPARISONS:
        raise NotChecked("a comparison of this kind has no meaning here")
    count = left.size
    found = arithmetic.COMPARISONS[args["mode"]](left.flat(count), operand(args["src1"], count))
    if mask.tile.bits is None or mask.tile.bits.size != count or mask.extents is None:
        mask.assign(np.full(mask.view().shape, arithmetic.LOST % 251))
    mask.tile.bits = np.broadcast_to(found, (count,)).copy()


def _select(args: Args, place: Place) -> None:
    target, mask = region(args, "dst"), region(args, "selMask")
    count, bits = target.view().size, mask.tile.bits
    if bits is None and not mask.tile.written:
        raise Fault(f"the mask `{mask.tile.name}` was never stored")
    if bits is None or bits.size < count or any(whole_number(s, "mask") for s in mask.starts):
        raise NotChecked(f"the bits of the mask `{mask.tile.name}` are not known")
    target.assign(np.where(bits[:count], operand(args["src0"], count), operand(args["src1"], count)))


def _cast(args: Args, place: Place) -> None:
    """From float32 to float32 a mode rounds to whole numbers (asc-devkit, ``Cast``); other floats are ideal."""
    source, target, mode = args["src"], region(args, "dst"), str(args.get("mode", "CAST_NONE"))
    values = operand(source, target.view().size)
    tile = source.tile if isinstance(source, Region) else source
    if isinstance(tile, Tile) and plain(tile.dtype) == plain(target.tile.dtype) == "float32":
        values = arithmetic.rounded(values, mode)
    target.assign(arithmetic.cast(values, target.tile.dtype, mode))


def _gather(args: Args, place: Place) -> None:
    """``dst[i]`` is the element of ``src`` at byte ``src_base_addr + src_offset[i]``."""
    target, source, offsets = (region(args, name) for name in ("dst", "src", "src_offset"))
    count = min(target.size, offsets.size)
    place_ = (offsets.flat(count).astype(np.int64) + args["src_base_addr"]) // ITEM_SIZE[plain(source.tile.dtype)]
    if np.any((place_ < 0) | (place_ >= source.tile.data.size)):
        raise Fault(f"elements outside of `{source.tile.name}` are gathered")
    new = target.view().copy().reshape(-1)
    new[:count] = source.tile.data.reshape(-1)[place_]
    target.assign(new)


def _index(args: Args, place: Place) -> None:
    target = region(args, "dst")
    target.assign(np.arange(target.view().size) + args["firstValue"])


def _progression(args: Args, place: Place) -> None:
    target = region(args, "buffer")
    count = whole_number(args["count"], target.tile.name)
    view = target.view().reshape(-1)
    if count > view.size:
        raise Fault("an arithmetic progression is longer than its tile")
    new = view.copy()
    new[:count] = args["first_value"] + np.arange(count) * args["diff_value"]
    target.assign(new)


def _broadcast(args: Args, place: Place) -> None:
    target, source = region(args, "dst"), region(args, "src")
    shape, values = target.view().shape, source.view()
    axis = args.get("axis")
    if values.ndim == 1 or values.size in shape:
        flat = values.reshape(-1)
        by_columns = axis == 0 or (axis is None and flat.size == shape[-1])
        values = flat.reshape((1, -1) if by_columns else (-1, 1))
    try:
        target.assign(np.broadcast_to(values, shape).copy())
    except ValueError:
        raise Fault(f"`{source.tile.name}` does not fit `{target.tile.name}`") from None


def _row_expand(function: Callable[[Any, Any], Any]) -> Callable[[Args, Place], None]:
    def expand(args: Args, place: Place) -> None:
        target = region(args, "dst")
        left, right = region(args, "src0").view(), region(args, "src1").view()
        target.assign(function(left, right.reshape(-1, 1)))

    return expand


_BY_NAME: Mapping[str, Callable[[Args, Place], None]] = {
    "copy": _copy,
    "tma_copy": _copy,
    "async_copy": _copy,
    "fill": _fill,
    "clear": _fill,
    "tile.fill": _fill,
    "tile.clear": _fill,
    "gemm": gemm,
    "gemm_v0": gemm,
    "mma": gemm,
    "wgmma_gemm": gemm,
    "tcgen05_gemm": gemm,
    "reduce": _reduce(""),
    **{f"reduce_{name}": _reduce(name) for name in _REDUCTIONS},
    "cumsum": _cumsum,
    "transpose": _transpose,
    "tile.transpose": _transpose,
    "atomic_add": _atomic("+"),
    "atomic_addx2": _several_atomics(2),
    "atomic_addx4": _several_atomics(4),
    "im2col": _im2col,
    "c2d_im2col": _im2col,
    "atomic_max": _atomic("max"),
    "atomic_min": _atomic("min"),
    "tile.atomic_add": _atomic("+"),
    "tile.compare": _compare,
    "tile.select": _select,
    "tile.cast": _cast,
    "tile.createvecindex": _index,
    "tile.gather": _gather,
    "tile.arith_progression": _progression,
    "tile.broadcast": _broadcast,
    "tile.row_expand_mul": _row_expand(np.multiply),
    "tile.row_expand_mul_experiment": _row_expand(np.multiply),
    "tile.row_expand_sub_experiment": _row_expand(np.subtract),
    "tile.row_expand_div_experiment": _row_expand(np.divide),
}
