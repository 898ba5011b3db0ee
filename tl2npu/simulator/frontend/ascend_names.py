"""Rare names of the Ascend language that are no data operators: branches in the builder's form, flag lists, buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar

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


class Branch(AbstractContextManager[None]):
    """``with T.If(condition):``; in it stand ``T.Then()`` and ``T.Else()`` and nothing else."""

    open: ClassVar[list[If]] = []

    def __init__(self, condition: Any) -> None:
        self.condition = plain(condition)

    def __enter__(self) -> None:
        builder = Builder.current()
        Branch.open.append(If(self.condition, [], [], site=builder.here()))
        builder.bodies.append([])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        statement = Branch.open.pop()
        if kind is not None:
            return
        builder = Builder.current()
        if builder.bodies.pop():
            raise TraceError("a statement in T.If that is neither in T.Then nor in T.Else", statement.site)
        if isinstance(self.condition, expr.Expr):
            builder.add(statement)
        else:
            builder.body.extend(statement.then if self.condition else statement.orelse)


class Side(AbstractContextManager[None]):
    """``with T.Then():`` (``yes``) and ``with T.Else():``."""

    def __init__(self, yes: bool) -> None:
        self.yes = yes

    def __enter__(self) -> None:
        builder = Builder.current()
        if not Branch.open:
            raise TraceError("T.Then and T.Else belong into T.If", builder.here())
        statement = Branch.open[-1]
        builder.bodies.append(statement.then if self.yes else statement.orelse)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            Builder.current().bodies.pop()


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
    "If": Branch,
    "Then": lambda: Side(True),
    "Else": lambda: Side(False),
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
