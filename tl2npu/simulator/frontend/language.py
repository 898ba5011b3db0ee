"""``tilelang.language``: the names that a kernel finds under ``T``.

Names that are no data operators are listed here; every other name is an operator of a catalogue (``operators.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.dialects.npuir import OLDER_FUNCTIONS
from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.frontend import ascend_names, gpu_names, loops, npuir_names, npuir_sync, types
from tl2npu.simulator.frontend.builder import STATED, Builder, OnlyNpuir
from tl2npu.simulator.frontend.kernel_frame import KernelFrame
from tl2npu.simulator.frontend.operators import OperatorName
from tl2npu.simulator.frontend.prim_func import Reference, macro, prim_func
from tl2npu.simulator.frontend.scopes import Variable, variable
from tl2npu.simulator.ir import dtypes, expr
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Const, Expr, Load, Var, plain
from tl2npu.simulator.ir.stmt import Alloc, Break, Scope, Store

# ``T.Scope("C")`` and ``T.Scope("V")``, and frames that mean nothing to a simulator.

_CORES = {"c": "C", "cube": "C", "aic": "C", "v": "V", "vec": "V", "vector": "V", "aiv": "V"}


@contextmanager
def _scope_frame(core: str) -> Iterator[None]:
    """What ``T.Scope`` gives."""
    builder = Builder.current()
    if str(core).lower() not in _CORES:
        raise TraceError(f"T.Scope({core!r}): the cores are 'C' and 'V'", builder.here())
    scope = Scope(_CORES[str(core).lower()], [])
    builder.add(scope)
    builder.bodies.append(scope.body)
    yield
    builder.bodies.pop()


@contextmanager
def _transparent() -> Iterator[None]:
    """A frame whose body is executed as if it were not there (``T.attr``, ``T.block_attr``)."""
    yield


# memory


def _alloc(memory: str) -> Callable[..., Any]:
    def alloc(shape: Any, dtype: Any = "float32", *_: Any, scope: Any = None, **__: Any) -> Buffer:
        builder = Builder.current()
        dims = tuple(plain(d) for d in shape) if isinstance(shape, (list, tuple)) else (plain(shape),)
        buffer = Buffer("?", dims, types.dtype_name(dtype), memory, line=builder.here().line)
        builder.add(Alloc(buffer))
        return buffer

    return alloc


def alloc_var(dtype: Any, *args: Any, init: Any = None, scope: Any = None) -> Variable:
    """``T.alloc_var(dtype, init)``: one scalar variable. Inside of a ``T.Parallel`` each iteration has its own.

    Raises UnsupportedOperator for one in a ``T.Parallel`` whose number of iterations is not a constant.
    """
    builder = Builder.current()
    lanes, extents = tuple(var for var, _ in builder.lanes), tuple(extent for _, extent in builder.lanes)
    if not all(isinstance(extent, int) for extent in extents):
        raise UnsupportedOperator("T.alloc_var in a T.Parallel whose extent is not a constant", builder.here())
    buffer = Buffer("?", (*extents, 1), types.dtype_name(dtype), "var", line=builder.here().line)
    builder.add(Alloc(buffer))
    given = init if init is not None else next((a for a in args if not isinstance(a, str)), None)
    if given is not None:
        builder.add(Store(buffer, (*lanes, 0), builder.scalar(given, buffer.dtype)))
    return variable(buffer, lanes)


def symbolic(name: Any, dtype: Any = "int32") -> Any:
    """``T.symbolic`` and ``T.dynamic``: an extent that a call decides; ``"M, N"`` gives several."""
    names = [n.strip() for n in name.split(",")] if isinstance(name, str) else [str(name)]
    found = tuple(Var(n, types.dtype_name(dtype)) for n in names if n)
    return found[0] if len(found) == 1 else found


def const(names: str, dtype: Any = "int32") -> Any:
    """``T.const("M, N")``, ``T.const("M N")`` (eager style): extents that are constants of the compiled kernel."""
    builder = Builder.current()
    asked = names.replace(",", " ").split()
    builder.unsolved |= set(asked) - builder.constants.keys()
    found = tuple(builder.constants.get(n, Var(n)) for n in asked)
    return found[0] if len(found) == 1 else found


# expressions


class IntImm(int):
    """An integer that a function of the language gave: ``T.ceildiv(7, 2).value`` is 4, as in TVM."""

    @property
    def value(self) -> int:
        """The number."""
        return int(self)

    dtype = "int32"


def _scalar(name: str) -> Callable[..., Any]:
    def function(*args: Any, **_: Any) -> Any:
        found = expr.call(name, *(_value(a) for a in args))
        return IntImm(found) if type(found) is int else found

    return function


def _value(value: Any) -> Any:
    if isinstance(value, (Buffer, Region)):
        raise TraceError("a whole buffer where a scalar is needed", Builder.current().here())
    return value


def _binary(op: str) -> Callable[..., Any]:
    return lambda left, right, *_, **__: expr.binary(op, _value(left), _value(right))


def cast(*args: Any) -> Any:
    """``T.cast(value, dtype)`` and ``T.Cast(dtype, value)``."""
    value, dtype = args[:2]
    if isinstance(value, str):
        value, dtype = dtype, value
    return expr.cast(types.dtype_name(dtype), _value(value))


def infinity(dtype: Any, *_: Any) -> Const:
    """The largest value: infinity for a float."""
    return Const(math.inf, types.dtype_name(dtype))


def _limit(largest: bool) -> Callable[..., Const]:
    def limit(dtype: Any, *_: Any) -> Const:
        import ml_dtypes

        name = types.dtype_name(dtype)
        kind = dtypes.numpy_dtype(name)
        if dtypes.is_float(name):
            info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
            return Const(float(info.max if largest else info.min), name)
        limits = np.iinfo(kind)
        return Const(int(limits.max if largest else limits.min), name)

    return limit


def reinterpret(*args: Any) -> Any:
    """``T.reinterpret(dtype, value)``: the same bits as another type."""
    dtype, value = args if isinstance(args[0], str) else (args[1], args[0])
    name = types.dtype_name(dtype)
    return expr.Call("reinterpret", (plain(value),), name)


def any_of(buffer: Any) -> Expr:
    """True if an element of the buffer or region is not zero."""
    return expr.Call("any_of", (_region(buffer),), "bool")


def all_of(buffer: Any) -> Expr:
    """True if no element of the buffer or region is zero."""
    return expr.Call("all_of", (_region(buffer),), "bool")


def _region(buffer: Any) -> Any:
    from tl2npu.simulator.ir.buffer import whole

    return whole(buffer) if isinstance(buffer, Buffer) else buffer


def evaluate(value: Any) -> Any:
    """``T.evaluate(call)``: the call as a statement."""
    return value


def _nothing(*_: Any, **__: Any) -> None:
    """Hints that change no value."""


def annotate_address(addresses: Any) -> None:
    """``T.annotate_address({buffer: byte})``: addresses given by hand; they change no value, but what fits."""
    known = Builder.current().kernel.attrs.setdefault("addresses", {})
    known.update({b.name: int(a) for b, a in addresses.items() if isinstance(a, int)})


def use_swizzle(*args: Any, **kwargs: Any) -> Any:
    """GPU: a hint. Ascend (``M=``, ``N=``, ...): a permutation of the block index is an operator of the catalogue."""
    builder = Builder.current()
    if builder.launch is not None and builder.launch.is_npu and not builder.npuir:
        from tl2npu.simulator.frontend.swizzle import npu_swizzle

        return npu_swizzle(*args, **kwargs)
    return None


def loop_break() -> Any:
    """``T.loop_break()``."""
    Builder.current().add(Break())


def has_let_value(var: Any) -> bool:
    """True if a variable is a named value."""
    return Builder.active() and var in Builder.current().lets


def get_let_value(var: Any) -> Any:
    """What a named value is."""
    return Builder.current().lets[var]


def get_block_binding(dim: int = 0) -> Var:
    """``blockIdx``; of an Ascend launch the frame binds the block and the vector core's number (``src/ir.cc``)."""
    launch = _launch()
    if dim == 1 and launch.is_npu and not launch.npuir:
        if launch.vid is None:
            launch.vid = Var(Builder.current().unique("vid"))
        return launch.vid  # type: ignore[no-any-return]
    return launch.blocks[dim]  # type: ignore[no-any-return]


def get_block_bindings() -> list[Var]:
    """All block indices."""
    return list(_launch().blocks)


def _launch() -> Any:
    builder = Builder.current()
    if builder.launch is None:
        raise TraceError("outside of T.Kernel", builder.here())
    return builder.launch


class GemmWarpPolicy:
    """How a GPU gemm is spread over warps: nothing that changes a value."""

    Square = "Square"
    FullRow = "FullRow"
    FullCol = "FullCol"


_SCALARS = (
    *FUNCTIONS,
    *("fabs", "nearbyint", "pow", "isnan", "isinf", "isfinite", "if_then_else", "ceildiv", "truncdiv", "truncmod"),
    *("popcount", "clz", "asin", "acos", "atan", "atan2", "fmod", "asinh", "acosh", "copysign", "likely"),
)
_BINARY = {
    "floordiv": "//",
    "floormod": "%",
    "Div": "/",
    "FloorDiv": "//",
    "FloorMod": "%",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "EQ": "==",
    "NE": "!=",
    "And": "and",
    "Or": "or",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}


class Shared:
    """A name that is an operator in an npuir kernel (a function: on buffers) and something else elsewhere."""

    def __init__(self, name: str, elsewhere: Any) -> None:
        self.__name__ = name
        self.elsewhere = elsewhere

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        npuir = Builder.active() and Builder.current().npuir
        if npuir and (self.__name__ not in OLDER_FUNCTIONS or npuir_names.older(args)):
            return npuir_names.call(self.__name__, args, kwargs)
        return self.elsewhere(*args, **kwargs)


def pipe_frame(pipe: Any) -> Any:
    """``T.rs("PIPE_MTE2")``: a frame of the npuir language."""
    builder = Builder.current()
    if not builder.npuir and STATED.get() is None:
        raise OnlyNpuir("T.rs is a frame of the npuir language", builder.here())
    return npuir_sync.pipe_frame(pipe) if builder.npuir else _scope_frame(pipe)


NAMES: dict[str, Any] = {
    **{name: types.DType(name) for name in types.NAMES},
    **{name: _scalar(name) for name in _SCALARS},
    **{name: _binary(op) for name, op in _BINARY.items()},
    **dict.fromkeys(("annotate_layout", "annotate_padding", "annotate_l2_hit_ratio"), _nothing),
    **dict.fromkeys(("annotate_restrict_buffers", "import_source", "assume", "func_attr"), _nothing),
    **dict.fromkeys(("block_attr", "reads", "writes", "no_set_max_nreg", "disable_warp_group_reg_alloc"), _nothing),
    **{name: lambda *_, **__: _transparent() for name in ("attr", "block", "init", "allow_partial")},
    "max": _scalar("max"),
    "min": _scalar("min"),
    "Max": _scalar("max"),
    "Min": _scalar("min"),
    "Select": _scalar("if_then_else"),
    "Not": lambda value: expr.negate(_value(value)),
    "bitwise_not": lambda value: ~_value(value),
    "cast": cast,
    "Cast": cast,
    "reinterpret": reinterpret,
    "infinity": infinity,
    "max_value": _limit(True),
    "min_value": _limit(False),
    "any_of": any_of,
    "all_of": all_of,
    "evaluate": evaluate,
    "Evaluate": evaluate,
    "prim_func": prim_func,
    "macro": macro,
    "Kernel": KernelFrame,
    "Scope": _scope_frame,
    "rs": pipe_frame,
    "serial": loops.serial,
    "Serial": loops.serial,
    "unroll": loops.unroll,
    "Unroll": loops.unroll,
    "vectorized": loops.vectorized,
    "Vectorized": loops.vectorized,
    "Parallel": loops.parallel,
    "parallel": loops.parallel,
    "Pipelined": loops.pipelined,
    "Persistent": loops.persistent,
    "grid": loops.grid,
    "Tensor": types.TENSOR,
    "Buffer": types.TENSOR,
    "StridedTensor": types.STRIDED,
    "SharedBuffer": types.SHARED,
    "FragmentBuffer": types.FRAGMENT,
    "LocalBuffer": types.LOCAL,
    "alloc_shared": _alloc("shared"),
    "alloc_fragment": _alloc("fragment"),
    "alloc_local": _alloc("local"),
    "alloc_var": alloc_var,
    "alloc_ub": _alloc("ub"),
    "alloc_L1": _alloc("l1"),
    "alloc_L0A": _alloc("l0a"),
    "alloc_L0B": _alloc("l0b"),
    "alloc_L0C": _alloc("l0c"),
    "symbolic": symbolic,
    "dynamic": symbolic,
    "var": lambda dtype="int32": Var("v", types.dtype_name(dtype)),
    "const": const,
    "view": types.view,
    "reshape": types.view,
    "annotate_address": annotate_address,
    "use_swizzle": use_swizzle,
    "loop_break": loop_break,
    "has_let_value": has_let_value,
    "get_let_value": get_let_value,
    "get_block_binding": get_block_binding,
    "get_block_bindings": get_block_bindings,
    "GemmWarpPolicy": GemmWarpPolicy,
    "dtype": types.DType,
    "Var": Var,
    "IntImm": IntImm,
    "PrimExpr": Expr,
    "BufferLoad": Load,
    "BufferRegion": Region,
    "Ref": Reference,
    "Optional": Any,
    **gpu_names.NAMES,
    **ascend_names.NAMES,
}


for _name in (*npuir_names.FORMS, *OLDER_FUNCTIONS):
    if _name in NAMES:
        NAMES[_name] = Shared(_name, NAMES[_name])


def lookup(name: str) -> Any:
    """``T.<name>``. Raises AttributeError for dunder names only: whether an operator exists shows when it is called."""
    if name in NAMES:
        return NAMES[name]
    if name.startswith("__"):
        raise AttributeError(name)
    return OperatorName(name)
