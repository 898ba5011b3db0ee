"""Rare names of the Ascend language that are no data operators: branches in the builder's form, flag lists, buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tl2npu.dialects.pipes import wrong_flags
from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.frontend import gpu_names, types
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.frontend.swizzle import npu_swizzle
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var, plain
from tl2npu.simulator.ir.stmt import Alloc, If, Op

_SCOPES = {
    "shared": "ub",
    "shared.dyn": "l1",
    "shared.l1": "l1",
    "wmma.matrix_a": "l0a",
    "wmma.matrix_b": "l0b",
    "wmma.accumulator": "l0c",
    "local.fragment": "fragment",
}


_OPEN: list[If] = []


@contextmanager
def branch(condition: Any) -> Iterator[None]:
    """``with T.If(condition):``; in it stand ``T.Then()`` and ``T.Else()`` and nothing else."""
    builder = Builder.current()
    condition = plain(condition)
    statement = If(condition, [], [], site=builder.here())
    _OPEN.append(statement)
    builder.bodies.append([])
    try:
        yield
    finally:
        _OPEN.pop()
    if builder.bodies.pop():
        raise TraceError("a statement in T.If that is neither in T.Then nor in T.Else", statement.site)
    if isinstance(condition, expr.Expr):
        builder.add(statement)
    else:
        builder.body.extend(statement.then if condition else statement.orelse)


@contextmanager
def _side(yes: bool) -> Iterator[None]:
    """``with T.Then():`` (``yes``) and ``with T.Else():``."""
    builder = Builder.current()
    if not _OPEN:
        raise TraceError("T.Then and T.Else belong into T.If", builder.here())
    builder.bodies.append(_OPEN[-1].then if yes else _OPEN[-1].orelse)
    yield
    builder.bodies.pop()


def _flags(operator: str) -> Callable[[Mapping[str, Mapping[str, Iterable[int]]]], None]:
    def flags(fmap: Mapping[str, Mapping[str, Iterable[int]]]) -> None:
        builder = Builder.current()
        if text := wrong_flags(fmap):
            raise TraceError(text, builder.here())
        for source, targets in fmap.items():
            for target, events in targets.items():
                for event in events:
                    builder.add(Op(operator, {"src": source.lower(), "dst": target.lower(), "eventId": plain(event)}))

    return flags


def alloc_buffer(shape: Any, dtype: Any = "float32", *_: Any, scope: str = "global", **__: Any) -> Buffer:
    """``T.alloc_buffer(shape, dtype, scope="shared")``: an on-chip buffer of a memory that the scope names."""
    builder = Builder.current()
    if builder.launch is None or not builder.launch.is_npu:
        return gpu_names.alloc_buffer(shape, dtype, scope=scope)
    if scope not in _SCOPES:
        raise UnsupportedOperator(f"T.alloc_buffer with scope {scope!r}", builder.here())
    dims = tuple(plain(d) for d in shape) if isinstance(shape, (list, tuple)) else (plain(shape),)
    buffer = Buffer("?", dims, types.dtype_name(dtype), _SCOPES[scope], line=builder.here().line)
    builder.add(Alloc(buffer))
    return buffer


def buffer_store(buffer: Buffer, value: Any, indices: Any) -> None:
    """``T.buffer_store(buffer, value, indices)``: ``buffer[indices] = value``."""
    Builder.current().store(buffer, tuple(indices), value)


def _constant(dtype: Any, value: Any, *_: Any) -> Any:
    """``T.IntImm("int32", 4)``."""
    return expr.cast(types.dtype_name(dtype), value)


NAMES: dict[str, Any] = {
    "If": branch,
    "Then": lambda: _side(True),
    "Else": lambda: _side(False),
    "init_flag": _flags("set_flag"),
    "clear_flag": _flags("wait_flag"),
    "alloc_buffer": alloc_buffer,
    "buffer_store": buffer_store,
    "npu_use_swizzle": npu_swizzle,
    "Mod": lambda left, right, *_: expr.call("truncmod", left, right),
    "IntImm": _constant,
    "FloatImm": _constant,
    "StringImm": str,
    "SizeVar": lambda name, dtype="int32", *_: Var(name, types.dtype_name(dtype)),
    "boolean": types.DType("bool"),
    "e4m3_float8": types.DType("e4m3_float8"),
    "e5m2_float8": types.DType("e5m2_float8"),
    "func_name": lambda *_, **__: None,
}
"""Names of the Ascend language; what is common to both dialects stands in ``language``."""
