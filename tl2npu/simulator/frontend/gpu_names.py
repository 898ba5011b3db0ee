"""Names of ``tilelang.language`` that only GPU kernels have and that are no data operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.frontend import types
from tl2npu.simulator.frontend.builder import Builder, OpCall
from tl2npu.simulator.frontend.gpu_layout import Fragment, Layout, annotate_layout
from tl2npu.simulator.frontend.operators import OperatorName
from tl2npu.simulator.frontend.reducers import UPDATES, Reducer
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Call, Expr, Load, plain
from tl2npu.simulator.ir.stmt import Alloc, Break, Return, Store

ATOMICS = {"atomic_add": "add", "atomic_max": "max", "atomic_min": "min", "atomic_or": "or"}
"""Operators that can give the previous value."""


def dims_of(shape: Any) -> tuple[Any, ...]:
    """Extents from a sequence or a single one."""
    return tuple(plain(d) for d in shape) if isinstance(shape, (tuple, list)) else (plain(shape),)


def empty(*shape: Any, dtype: Any = "float32", **_: Any) -> Buffer:
    """``T.empty((M, N), dtype)``, ``T.empty(M, N, dtype=...)`` (eager style): an output tensor."""
    dims = list(shape)
    if len(dims) > 1 and isinstance(dims[0], (tuple, list)):
        dtype = dims.pop(1)
    elif len(dims) > 1 and isinstance(dims[-1], str):
        dtype = dims.pop()
    builder = Builder.current()
    flat = dims_of(dims[0]) if len(dims) == 1 else dims_of(dims)
    buffer = Buffer("?", flat, types.dtype_name(dtype), "global", line=builder.here().line)
    builder.kernel.outputs.append(buffer)
    return buffer


def alloc_global(shape: Any, dtype: Any = "float32", scope: Any = "global") -> Buffer:
    """``T.alloc_global``: memory that all blocks of a launch share; in front of ``T.Kernel``, all launches."""
    builder = Builder.current()
    buffer = Buffer("?", dims_of(shape), types.dtype_name(dtype), "global", line=builder.here().line)
    if builder.launch is None:
        builder.kernel.attrs.setdefault("globals", []).append(buffer)
    else:
        builder.add(Alloc(buffer))
    return buffer


def alloc_reducer(shape: Any, dtype: Any, op: Any = "sum", replication: Any = None) -> Buffer:
    """``T.alloc_reducer``: a tile to which the iterations of a ``T.Parallel`` contribute."""
    builder = Builder.current()
    buffer = Reducer("?", dims_of(shape), types.dtype_name(dtype), "fragment", line=builder.here().line)
    buffer.op = str(op)
    builder.add(Alloc(buffer))
    return buffer


def reducer_update(target: Any, value: Any) -> OpCall:
    """``T.reducer_update(acc[i], value)``: one contribution."""
    builder = Builder.current()
    if not isinstance(target, Load) or not isinstance(target.buffer, Reducer):
        raise TraceError("reducer_update expects `acc[indices]` of a reducer as its first argument", builder.here())
    return _contribution(builder, target, builder.scalar(value, target.dtype))


def _contribution(builder: Builder, target: Load, value: Any) -> OpCall:
    name = UPDATES.get(target.buffer.op)  # type: ignore[attr-defined]
    if name is None:
        raise UnsupportedOperator(f"a reducer with the operation {target.buffer.op!r}", builder.here())  # type: ignore[attr-defined]
    call = OpCall(name, {"dst": target, "value": value}, builder.here())
    builder.calls.append(call)
    return call


def reducer_init(reducer: Any, init: Any = None) -> Any:
    """``T.reducer_init(acc, init)``."""
    return OperatorName("reducer_init")(reducer, init, op=getattr(reducer, "op", "sum"))


def _atomic(name: str) -> Callable[..., Any]:
    def function(dst: Any, value: Any, *args: Any, return_prev: bool = False, **kwargs: Any) -> Any:
        builder = Builder.current()
        if isinstance(dst, Expr) and isinstance(builder.lets.get(dst), Load):  # type: ignore[call-overload]
            dst = builder.lets[dst]  # type: ignore[index]
        if len(args) > 1:
            return_prev, args = bool(args[1]), args[:1]
        if not return_prev:
            return OperatorName(name)(dst, value, *args, **kwargs)
        if not isinstance(dst, Load) or isinstance(value, (Buffer, Region)):
            raise UnsupportedOperator("return_prev is not supported for tile-region-based atomic operations")
        return previous(dst, builder.scalar(value, dst.dtype), ATOMICS[name])

    return function


def previous(dst: Load, value: Any, kind: str) -> Expr:
    """An atomic update as a value: what was there before. It takes place here, once."""
    return Builder.current().let("previous", Call("atomic", (dst, value, kind), dst.dtype))  # type: ignore[arg-type]


def atomic_load(src: Any, memory_order: Any = None) -> Any:
    """``T.atomic_load(src)``: a load."""
    return Builder.current().let("loaded", src)


def atomic_store(dst: Any, value: Any, memory_order: Any = None) -> None:
    """``T.atomic_store(dst, value)``: a store."""
    builder = Builder.current()
    if not isinstance(dst, Load):
        raise TraceError("atomic_store expects one element", builder.here())
    builder.add(Store(dst.buffer, dst.indices, builder.scalar(value, dst.dtype)))


def annotate_safe_value(values: Any) -> None:
    """Another value than 0 for what lies outside of a tensor is not modelled."""
    if any(plain(v) != 0 for v in dict(values).values()):
        raise UnsupportedOperator(
            "T.annotate_safe_value: another value than 0 outside of a tensor is not modelled", Builder.current().here()
        )


def get_block_extent(dim: int = 0) -> Any:
    """``gridDim``."""
    return get_block_extents()[dim]


def get_block_extents() -> list[Any]:
    """All extents of the grid."""
    builder = Builder.current()
    if builder.launch is None:
        raise TraceError("outside of T.Kernel", builder.here())
    return list(builder.launch.extents)


def get_thread_extents() -> list[Any]:
    """``blockDim``."""
    builder = Builder.current()
    threads = builder.launch.threads if builder.launch is not None else None
    given = list(threads) if isinstance(threads, (list, tuple)) else [128 if threads is None else threads]
    return given + [1] * (3 - len(given))


def _fast(name: str) -> Callable[..., Any]:
    return lambda value: expr.call(name, value)


def _ieee(op: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, rounding_mode: str = "rn") -> Any:
        nearest(rounding_mode)
        return expr.binary(op, x, y)

    return function


def nearest(mode: str) -> None:
    """Refuses rounding other than to nearest even."""
    if mode != "rn":
        raise UnsupportedOperator(f"the rounding mode {mode!r}", Builder.current().here())


def _of_one(compute: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(x: Any, rounding_mode: str = "rn") -> Any:
        nearest(rounding_mode)
        return compute(x)

    return function


def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> Any:
    """``x * y + z``; rounded twice here."""
    nearest(rounding_mode)
    return expr.binary("+", expr.binary("*", x, y), z)


def clamp(value: Any, low: Any, high: Any) -> Any:
    """``max``, then ``min`` (tilelang/language/customize.py)."""
    return expr.call("min", expr.call("max", value, low), high)


def loop_break() -> None:
    """``T.break_loop()``."""
    Builder.current().add(Break())


def thread_return() -> None:
    """``T.thread_return()``: of all threads of the block."""
    Builder.current().add(Return())


def _refused(name: str) -> Callable[..., Any]:
    """A name that starts with two underscores: Python looks it up nowhere else."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedOperator(f"T.{name}: it has no meaning in the simulator", Builder.current().here())

    return refuse


HINTS = (
    *("set_max_nreg", "inc_max_nreg", "dec_max_nreg", "no_set_max_nreg", "disable_warp_group_reg_alloc"),
    *("annotate_consumer_reg_alloc", "annotate_producer_reg_dealloc", "annotate_min_blocks_per_sm"),
    *("annotate_compile_flags", "annotate_pass_configs", "ignore_loop_partition"),
)
"""Calls that change no value."""


def hint(*_: Any, **__: Any) -> None:
    """Nothing."""


def alloc_buffer(shape: Any, dtype: Any = "float32", *_: Any, scope: Any = "global", **__: Any) -> Buffer:
    """``T.alloc_buffer(shape, dtype, scope=...)``."""
    memory = {"local.fragment": "fragment", "local": "local", "shared": "shared", "shared.dyn": "shared"}
    builder = Builder.current()
    if scope == "global":
        return alloc_global(shape, dtype)
    if scope not in memory:
        raise UnsupportedOperator(f"T.alloc_buffer with scope {scope!r}", builder.here())
    buffer = Buffer("?", dims_of(shape), types.dtype_name(dtype), memory[scope], line=builder.here().line)
    builder.add(Alloc(buffer))
    return buffer


NAMES: dict[str, Any] = {
    **{name: _atomic(name) for name in ATOMICS},
    **{f"__{name}": _fast(name) for name in ("log", "log2", "log10", "tan", "cos", "sin", "exp10", "exp")},
    "fast_rcp": lambda x: expr.binary("/", 1.0, x),
    "ieee_add": _ieee("+"),
    "ieee_sub": _ieee("-"),
    "ieee_mul": _ieee("*"),
    "ieee_fdiv": _ieee("/"),
    "ieee_fmaf": ieee_fmaf,
    "ieee_frcp": _of_one(lambda x: expr.binary("/", 1.0, x)),
    "ieee_fsqrt": _of_one(lambda x: expr.call("sqrt", x)),
    "ieee_frsqrt": _of_one(lambda x: expr.call("rsqrt", x)),
    "atomic_load": atomic_load,
    "atomic_store": atomic_store,
    "annotate_safe_value": annotate_safe_value,
    "alloc_global": alloc_global,
    "alloc_reducer": alloc_reducer,
    "reducer_init": reducer_init,
    "reducer_update": reducer_update,
    "Layout": Layout,
    "Fragment": Fragment,
    "annotate_layout": annotate_layout,
    "break_loop": loop_break,
    "thread_return": thread_return,
    "Any": Any,
    "__ldg": lambda value, *_: value,
    **{name: _refused(name) for name in ("__ffs", "__fns")},
    **dict.fromkeys(HINTS, hint),
    "cdiv": lambda x, y: expr.call("ceildiv", x, y),
    "align_up": lambda x, y: expr.binary("*", expr.call("ceildiv", x, y), y),
    "Mod": lambda x, y, span=None: expr.call("truncmod", x, y),
    "empty": empty,
    "clamp": clamp,
    "get_block_extent": get_block_extent,
    "get_block_extents": get_block_extents,
    "get_thread_extent": lambda dim=0: get_thread_extents()[dim],
    "get_thread_extents": get_thread_extents,
}
