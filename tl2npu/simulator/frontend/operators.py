"""``T.copy(...)``, ``T.tile.add(...)``: calls of the operators that a catalogue lists."""

from __future__ import annotations

from typing import Any

from tl2npu.dialects.ascend import OPERATORS as ASCEND
from tl2npu.dialects.ascend.values import VALUES
from tl2npu.dialects.catalogue import Role
from tl2npu.simulator.errors import TraceError, UnsupportedOperator
from tl2npu.simulator.frontend import npuir_names
from tl2npu.simulator.frontend.builder import STATED, Builder, OnlyNpuir, OpCall
from tl2npu.simulator.ir.buffer import Buffer, Region, whole
from tl2npu.simulator.ir.expr import Load, Var, plain
from tl2npu.simulator.operators.registry import gpu_signature, refusal

_BUFFER_ROLES = {Role.READ, Role.WRITE, Role.READ_WRITE, Role.ACCUMULATE}


class OperatorName:
    """``T.copy`` or ``T.tile``: something that can be called, or has more names under it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> OperatorName:
        if name.startswith("__"):
            raise AttributeError(name)
        return OperatorName(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> OpCall | list[OpCall]:
        builder = Builder.current()
        site = builder.here()
        if builder.npuir:
            return npuir_names.call(self.__name__, args, kwargs)
        npu = builder.launch.is_npu if builder.launch is not None else True
        if npu and STATED.get() is None and npuir_names.only_here(self.__name__, kwargs):
            raise OnlyNpuir(f"T.{self.__name__} is an operator of the npuir language", site)
        if npu and (reason := refusal(self.__name__, gpu=False)):
            raise UnsupportedOperator(f"T.{self.__name__}: {reason}", site)
        bound = self._ascend(args, kwargs, site) if npu else None
        if bound is None:
            bound = gpu_signature(self.__name__, args, kwargs, site)
        if bound is None and not npu and (reason := refusal(self.__name__, gpu=True)):
            raise UnsupportedOperator(f"T.{self.__name__}: {reason}", site)
        if bound is None:
            bound = self._ascend(args, kwargs, site)
        if bound is None:
            raise TraceError(f"tilelang.language has no operator {self.__name__!r} that the simulator knows", site)
        call = OpCall(self.__name__, {k: operand(builder, v) for k, v in bound.items()}, site)
        builder.calls.append(call)
        return call

    def _ascend(self, args: Any, kwargs: Any, site: Any) -> dict[str, Any] | None:
        known = ASCEND.get(self.__name__)
        if known is None:
            return None
        try:
            bound = known.bind([*((None, a) for a in args), *kwargs.items()])
        except TypeError as error:
            raise TraceError(str(error), site) from None
        for param in known.params:
            value = bound.get(param.name)
            allowed = VALUES.get((known.name, param.name))
            if allowed is not None and (text := allowed.wrong(value)):
                raise TraceError(text, site)  # a flag of a pipe that no core has looks as if it ordered something
            if param.role in _BUFFER_ROLES and not param.scalar and isinstance(value, (Buffer, Var)):
                bound[param.name] = operand(Builder.current(), value, address=True)
            if param.role is Role.SCALAR and isinstance(value, Buffer) and all(plain(d) == 1 for d in value.shape):
                bound[param.name] = Load(value, (0,) * value.ndim)  # a buffer of one element is its element
        return bound


def operand(builder: Builder, value: Any, address: bool = False) -> Any:
    """An argument as the program keeps it: buffers become whole regions, scalar variables their value."""
    if isinstance(value, Buffer):
        return whole(value)
    if isinstance(value, Var) and address and isinstance(builder.lets.get(value), Load):
        return builder.lets[value]
    if isinstance(value, Region):
        return value
    if isinstance(value, OpCall):
        raise TraceError(f"the result of T.{value.name} as an operand", value.site)
    if isinstance(value, (list, tuple)):
        return tuple(operand(builder, v) for v in value)
    return plain(value)
