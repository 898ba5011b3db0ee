"""The operators of the npuir language, as its Python builds them (branch npuir, tilelang/language/customize_npuir.py).

A call becomes an operator ``npuir.<name>`` whose operands are regions with all axes: a whole buffer, a slice, or a
start index, which is one element unless ``size=`` or the other side of a copy says how much is meant. Each operator has
its two names (``vadd`` and ``npuir_add``) and the signature of the branch; the older spelling of the language
(positional sizes of copies, ``T.exp(src, dst)``) is understood too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tl2npu.dialects.catalogue import Param
from tl2npu.dialects.npuir import OLDER_FUNCTIONS, OPERATORS, SHORT
from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.frontend.builder import Builder, OpCall
from tl2npu.simulator.ir.buffer import Buffer, Region, whole
from tl2npu.simulator.ir.expr import Expr, Load, Value, Var, plain

PREFIX = "npuir."

Bound = dict[str, Any]


def tile(data: Any) -> bool:
    """True for a buffer, a part of one, or an element of one."""
    return isinstance(_named(data), (Buffer, Region, Load))


def _named(data: Any) -> Any:
    """What a name for an element stands for: the element's address."""
    builder = Builder.current()
    if isinstance(data, Var) and isinstance(builder.lets.get(data), Load):
        return builder.lets[data]
    return data


def region(data: Any, size: Any = None) -> Region:
    """An operand as a region with all axes; ``size`` are the extents of a start index or from a buffer's begin on."""
    data = _named(data)
    if isinstance(data, Region):
        return Region(data.buffer, data.starts, data.extents, (True,) * len(data.starts))
    if isinstance(data, Buffer):
        return whole(data) if size is None else _sized(data, (0,) * data.ndim, size)
    if isinstance(data, Load):
        return _sized(data.buffer, data.indices, [1] * len(data.indices) if size is None else size)
    raise TraceError(f"{type(data).__name__} where a buffer or a part of one is needed", Builder.current().here())


def _sized(buffer: Buffer, starts: tuple[Value, ...], size: Any) -> Region:
    """The extents of the last axes; the axes before them are 1 long."""
    extents = [plain(e) for e in size][-buffer.ndim :]
    extents = [1] * (buffer.ndim - len(extents)) + extents
    return Region(buffer, starts, tuple(extents), (True,) * buffer.ndim)


def scalar(value: Any) -> Any:
    """An operand that may be a number: one element of a buffer is its value, a buffer or slice a region."""
    value = _named(value)
    if isinstance(value, (Buffer, Region)):
        return region(value)
    return plain(value)


def _rank(name: str, *regions: Region) -> None:
    if len({len(r.extents) for r in regions}) > 1:
        shapes = ", ".join(str(list(map(_shown, r.extents))) for r in regions)
        raise TraceError(f"T.{name}: operands of different rank: {shapes}", Builder.current().here())


def _shown(extent: Any) -> Any:
    return extent if isinstance(extent, int) else str(extent)


def _sizes(size: Any) -> list[Any] | None:
    return None if size is None or len(size) == 0 else [plain(s) for s in size]


# copies and products


def _copy(src: Any, dst: Any, coalesced_width: Any = None, size: Any = None) -> Bound:
    """``T.copy``: extents from ``size``, from slices, or from the side that is a whole buffer."""
    if isinstance(coalesced_width, (list, tuple)):  # the older spelling
        size = coalesced_width
    sizes, src, dst = _sizes(size), _named(src), _named(dst)
    if sizes is not None and (isinstance(src, Region) or isinstance(dst, Region)):
        raise TraceError("T.copy: cannot use both slice syntax and the size parameter.", Builder.current().here())
    return {"src": _turned(_side(src, dst, sizes)), "dst": _turned(_side(dst, src, sizes))}


def _side(data: Any, peer: Any, sizes: list[Any] | None) -> Region:
    if sizes is not None or isinstance(data, Region):
        return region(data, sizes)
    if isinstance(data, Buffer):
        same = isinstance(peer, Region) and len(peer.extents) == data.ndim
        return region(data, peer.extents if same else None)
    if isinstance(data, Load) and isinstance(peer, Load):
        raise TraceError(
            "T.copy cannot deduce copy extents from two start indices; use a slice on one side or pass size=[...]",
            Builder.current().here(),
        )
    return region(data, peer.shape if isinstance(peer, (Buffer, Region)) else None)


def _turned(part: Region) -> Region:
    """``size=[1, n]`` of a tile ``[m, 1]``: n elements one after the other, which are the first n of its column."""
    shape = part.buffer.shape
    long = [n for n, size in enumerate(shape) if not (isinstance(size, int) and size == 1)]
    asked = [n for n, extent in enumerate(part.extents) if not (isinstance(extent, int) and extent == 1)]
    begins = all(isinstance(s, int) and s == 0 for s in part.starts)
    if part.buffer.memory == "global" or len(long) != 1 or len(asked) != 1 or long == asked or not begins:
        return part
    extents = tuple(part.extents[asked[0]] if n == long[0] else 1 for n in range(len(shape)))
    return Region(part.buffer, part.starts, extents, part.kept)


def _gemm(
    A: Any, B: Any, C: Any, size: Any = None, initC: Any = False, a_transpose: Any = False, b_transpose: Any = False
) -> Bound:
    """``T.gemm``; ``size`` is ``[m, k, n]``."""
    sizes = _sizes(size)
    flags = {"initC": plain(initC), "a_transpose": bool(a_transpose), "b_transpose": bool(b_transpose)}
    if sizes is None:
        return {"A": region(A), "B": region(B), "C": region(C), **flags}
    if len(sizes) != 3:
        raise TraceError("T.gemm: size must contain [m, k, n]", Builder.current().here())
    m, k, n = sizes
    left, right = ([k, m] if a_transpose else [m, k]), ([n, k] if b_transpose else [k, n])
    return {"A": region(A, left), "B": region(B, right), "C": region(C, [m, n]), **flags}


# vector operators


def _by_catalogue(name: str) -> Callable[..., Bound]:
    """Operands as the catalogue has them: buffers are regions, what may also be a number a scalar."""
    row = OPERATORS[name]

    def form(*args: Any, **kwargs: Any) -> Bound:
        found = row.bind([*((None, arg) for arg in args), *kwargs.items()])
        size = found.pop("size", None)
        return {word: _operand(row.param(word), data, size) for word, data in found.items()}

    return form


def _operand(param: Param | None, data: Any, size: Any) -> Any:
    if param is None or not param.mask:
        return data
    return scalar(data) if param.scalar else region(data, size)


def _sized_unary(*args: Any, size: Any = None) -> Bound:
    *sources, target = args
    if len(sources) != 1:
        raise TraceError("one source and one destination are needed", Builder.current().here())
    return {"A": region(sources[0], size), "B": region(target, size)}


def _fill(buffer: Any, value: Any) -> Bound:
    return {"src": scalar(value), "dst": region(buffer)}


def _clear(buffer: Any) -> Bound:
    return {"src": 0, "dst": region(buffer)}


def _select(Cond: Any, A: Any, B: Any, Out: Any) -> Bound:
    return {"Cond": region(Cond), "A": region(A), "B": region(B), "Out": region(Out)}


def _compare(A: Any, B: Any, C: Any, cmp_mod: str) -> Bound:
    if cmp_mod not in ("eq", "ne", "lt", "gt", "ge", "le"):
        raise TraceError(f"T.vcmp: no mode {cmp_mod!r}; there are eq, ne, lt, gt, ge, le", Builder.current().here())
    return {"A": region(A), "B": scalar(B), "C": region(C), "cmp_mod": cmp_mod}


_MODES = (
    *("sum", "prod", "max", "min", "any", "all", "xori", "ori", "abssum", "absmax", "none"),
    *(f"{kind}_with_index_{side}" for kind in ("max", "min") for side in ("left", "right")),
)
_ADDING = ("sum", "max", "min", "abssum", "absmax")


def _reduce(src: Any, dst: Any, dims: Any, reduce_mode: str, size: Any = None, clear: Any = True) -> Bound:
    """The axes keep their place with extent 1; ``size`` is how much of the source counts."""
    axes = [dims] if isinstance(dims, int) else list(dims)
    site = Builder.current().here()
    if reduce_mode not in _MODES:
        raise TraceError(f"T.reduce: no mode {reduce_mode!r}", site)
    if not axes:
        raise TraceError("T.reduce: the reduction indices array cannot be empty", site)
    if not clear and reduce_mode not in _ADDING:
        raise TraceError(f"T.reduce: clear=False is not possible with the mode {reduce_mode!r}", site)
    sizes = _sizes(size)
    source = region(src, sizes)
    rank = len(source.extents)
    axes = [a + rank if a < 0 else a for a in axes]
    if any(not 0 <= a < rank for a in axes):
        raise TraceError(f"T.reduce over the axes {axes} of a tile with {rank}", site)
    left = None if sizes is None else [1 if n in axes else s for n, s in enumerate(sizes)]
    target = region(dst, left)
    _rank("reduce", source, target)
    found = {"src": source, "dst": target, "dims": tuple(axes), "reduce_mode": reduce_mode, "clear": bool(clear)}
    if not clear and sizes is not None and isinstance(_named(dst), Buffer):
        found["everything"] = region(dst)
    return found


def _named_reduce(mode: str) -> Callable[..., Bound]:
    def reduce(buffer: Any, out: Any, dim: int = -1, size: Any = None, clear: Any = True) -> Bound:
        if isinstance(size, bool):  # the older spelling
            size, clear = None, size
        return _reduce(buffer, out, dim, mode, size, clear)

    def of_magnitudes(buffer: Any, out: Any, dim: int = -1, clear: Any = True) -> Bound:
        return _reduce(buffer, out, dim, mode, None, clear)

    def without_clear(buffer: Any, out: Any, dim: int = -1) -> Bound:
        return _reduce(buffer, out, dim, mode, None, True)

    return {"abssum": without_clear, "absmax": of_magnitudes}.get(mode, reduce)


def _cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: Any = False) -> Bound:
    source = region(src)
    rank = len(source.extents)
    if not -rank < dim < rank:
        raise TraceError(f"T.cumsum: dimension {dim} is out of bounds for a tile with {rank}", Builder.current().here())
    return {"src": source, "dst": source if dst is None else region(dst), "dim": dim % rank, "reverse": bool(reverse)}


def _transpose(src: Any, dst: Any, permutation: Any, size: Any = None) -> Bound:
    order = [int(p) for p in permutation]
    target = None if size is None else [size[p] for p in order]
    return {"src": region(src, size), "dst": region(dst, target), "permutation": tuple(order)}


def _interleave(*args: Any, channel_nums: int = 2, size: Any = None) -> Bound:
    *sources, target = args
    wide = None if size is None else [*size[:-1], size[-1] * 2]
    return {
        "srcs": tuple(region(s, size) for s in sources),
        "dst": region(target, wide),
        "channel_nums": int(channel_nums),
    }


def _deinterleave(*args: Any, channel_nums: int = 2, index_mode: str = "ALL_CHANNELS", size: Any = None) -> Bound:
    source, *targets = args
    if size is not None:
        raise UnsupportedOperator("T.deinterleave with size=: the branch makes it a fraction", Builder.current().here())
    if index_mode not in ("CHANNEL_0", "CHANNEL_1", "ALL_CHANNELS"):
        raise TraceError(f"T.deinterleave: no mode {index_mode!r}", Builder.current().here())
    return {
        "src": region(source),
        "dsts": tuple(region(t) for t in targets),
        "channel_nums": int(channel_nums),
        "index_mode": index_mode,
    }


def _arange(dst: Any, strides: Any, offset: Any = 0) -> Bound:
    return {"dst": region(dst), "strides": tuple(plain(s) for s in strides), "offset": plain(offset)}


def _concat(*args: Any, size: Any = None) -> Bound:
    *sources, target, dim = args
    grown = None if size is None else [s * len(sources) if n == dim else s for n, s in enumerate(size)]
    return {"srcs": tuple(region(s, size) for s in sources), "dst": region(target, grown), "dim": int(dim)}


def _pad(src: Any, dst: Any, pad_value: Any, low: Any, high: Any, size: Any = None) -> Bound:
    source = region(src, size)
    before, after = [plain(x) for x in low], [plain(x) for x in high]
    site = Builder.current().here()
    if len(before) != len(source.extents) or len(after) != len(source.extents):
        raise TraceError("T.pad: low and high need one length for each axis", site)
    if (
        sum(isinstance(x, Expr) or x != 0 or isinstance(y, Expr) or y != 0 for x, y in zip(before, after, strict=True))
        > 1
    ):
        raise TraceError("T.pad: not more than one axis can be padded", site)
    return {
        "src": source,
        "dst": region(dst),
        "pad_value": plain(pad_value),
        "low": tuple(before),
        "high": tuple(after),
    }


def _atomic(dst: Any, src: Any, size: Any = None) -> Bound:
    if Builder.current().lanes and isinstance(_named(dst), Load):  # one element for each iteration of a T.Parallel
        if size is None and not isinstance(_named(src), (Buffer, Region)):
            return {"dst": _named(dst), "src": scalar(src)}
        if isinstance(_named(src), Load) and all(isinstance(s, int) for s in map(plain, size or ())):
            return {"dst": _named(dst), "src": _named(src), "part": tuple(int(s) for s in size)}
        raise UnsupportedOperator("T.atomic_add of a tile inside of a T.Parallel", Builder.current().here())
    return {"dst": region(dst, size), "src": region(src, size) if tile(src) else plain(src)}


def _print(obj: Any, msg: str = "", hex: Any = False) -> Bound:
    return {"obj": region(obj) if tile(obj) else plain(obj)}


# Expert mode


def _move(src: Any, dst: Any, size: Any = None) -> Bound:
    return {"src": region(src, size), "dst": region(dst, size)}


def _fixpipe(
    src: Any, dst: Any, size: Any = None, enable_nz2nd: Any = False, channel_split: Any = False, pre_relu_mode: str = ""
) -> Bound:
    if pre_relu_mode not in ("", "relu", "leaky_relu", "prelu"):
        raise TraceError(f"T.store_fixpipe: no mode {pre_relu_mode!r}", Builder.current().here())
    return {**_move(src, dst, size), "pre_relu_mode": pre_relu_mode, "channel_split": bool(channel_split)}


_PLAIN = """
vadd vsub vmul vdiv vmax vmin vor vand vxor vpow vshl vshr vexp vrelu vsigmoid vln vsqrt vrsqrt vabs vrec vnot
vexp2 vlog2 vcast vbrc vclamp gather flip reshape
"""

FORMS: dict[str, Callable[..., Bound]] = {
    **{name: _by_catalogue(name) for name in _PLAIN.split()},
    "copy": _copy,
    "gemm": _gemm,
    **dict.fromkeys(("vcos", "vsin", "verf", "vtanh"), _sized_unary),
    "fill": _fill,
    "clear": _clear,
    "vselect": _select,
    "vcmp": _compare,
    "reduce": _reduce,
    **{f"reduce_{mode}": _named_reduce(mode) for mode in ("max", "min", "sum", "abssum", "absmax")},
    "cumsum": _cumsum,
    "transpose": _transpose,
    "interleave": _interleave,
    "deinterleave": _deinterleave,
    "arange": _arange,
    "concat": _concat,
    "pad": _pad,
    "atomic_add": _atomic,
    "atomic_addx4": _atomic,
    "print": _print,
    "load_nd2nz": _move,
    "store_nz2nd": _move,
    "store_fixpipe": _fixpipe,
}
"""The shorter name of each operator -> how its arguments are bound."""

_SAME = {"fill": "vbrc", "clear": "vbrc", "atomic_addx4": "atomic_add"}
"""Operators that the branch builds from another one."""

OTHER_NAMES = {name: short for name, short in SHORT.items() if name != short}
"""The longer name -> the shorter one."""

REFUSED = {"vbitcast": "its result is an expression of the compiler that no other operator of the language takes"}
"""Operators without a meaning here, and why."""

SYNC = "set_flag wait_flag pipe_barrier block_barrier subblock_barrier sync_block_set sync_block_wait".split()

ONLY_HERE = frozenset(
    {n for n in FORMS if n.startswith("v")}
    | set(OTHER_NAMES)
    | {"load_nd2nz", "store_nz2nd", "store_fixpipe", "vbitcast", "interleave", "deinterleave"}
    | {"block_barrier", "subblock_barrier", "sync_block_set", "sync_block_wait"}
)
"""Names that no other dialect has: a kernel with one of them is npuir whatever its compilation says."""

_KEYWORDS = {"copy": {"size"}, "gemm": {"initC", "a_transpose", "b_transpose"}}


def older(args: tuple[Any, ...]) -> bool:
    """True for the arguments of an operator ``T.exp(src, dst)``, not those of a function of a number."""
    return len(args) > 1 and tile(args[0]) and tile(args[1])


def _operator(name: str, bound: Bound) -> str:
    """The operator that a call is, among those that have a meaning."""
    if name.startswith("reduce"):
        return "reduce_abs" if bound["reduce_mode"] in ("abssum", "absmax") else "reduce"
    return "atomic_add_part" if "part" in bound else _SAME.get(name, name)


def only_here(name: str, kwargs: dict[str, Any]) -> bool:
    """True for a call that only npuir has."""
    return name in ONLY_HERE or bool(_KEYWORDS.get(name, set()) & kwargs.keys())


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpCall | list[OpCall]:
    """The operator call. Raises TraceError for a name that the language does not have, and for wrong arguments."""
    builder = Builder.current()
    site = builder.here()
    short = OTHER_NAMES.get(name, name)
    if short in OLDER_FUNCTIONS and older(args):
        short = OLDER_FUNCTIONS[short]
    if short in REFUSED:
        raise UnsupportedOperator(f"T.{name}: {REFUSED[short]}", site)
    if short in SYNC:
        from tl2npu.simulator.frontend import npuir_sync  # needs this module's names

        return npuir_sync.call(short, args, kwargs)
    form = FORMS.get(short)
    if form is None:
        raise TraceError(f"the npuir language has no operator {name!r} that the simulator knows", site)
    try:
        bound = form(*args, **kwargs)
    except TypeError as error:
        raise TraceError(f"T.{name}(): {error}", site) from None
    found = OpCall(PREFIX + _operator(short, bound), bound, site)
    builder.calls.append(found)
    return found
