"""Eager style: ``@tilelang.jit`` on a function that is itself the kernel (tilelang/language/eager).

Tensor parameters are declared in the body (``A: T.Tensor((M, K), dtype)``); ``T.const`` extents are found by tracing
up to the launch once, where all declarations have been seen, and then again with numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import STATED, Builder, StopTracing
from tl2npu.simulator.frontend.parameters import Undeclared, declare
from tl2npu.simulator.frontend.prim_func import NPUIR, PrimFunc, run_traced
from tl2npu.simulator.frontend.types import TensorSpec
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var, plain
from tl2npu.simulator.ir.stmt import Kernel


class _Declared(StopTracing):
    """All declarations have been seen."""


def given(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name, defaults filled in."""
    bound = inspect.signature(function).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def placeholders(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and element type of arguments like ``T.Tensor((64, 64), "float32")``, which stand for tensors."""
    own = {k: v for k, v in kwargs.items() if k in inspect.signature(function).parameters}
    values = given(function, args, own).items()
    return {name: (value.shape, value.dtype) for name, value in values if isinstance(value, TensorSpec)}


def trace(
    function: Callable[..., Any], args: Any, kwargs: Any, shapes: dict[str, tuple[tuple[int, ...], str]]
) -> tuple[PrimFunc, dict[str, int]]:
    """The kernel for given arguments, and the values of its constants.

    ``shapes``: shape and element type of the tensors that are known; keyword arguments that are no parameters are
    values of ``T.const`` extents.
    """
    if STATED.get() == NPUIR:
        raise TraceError("the npuir branch has no eager style: a function that returns a prim_func is needed")
    signature = inspect.signature(function)
    constants = {k: plain(v) for k, v in kwargs.items() if k not in signature.parameters}
    own = {k: v for k, v in kwargs.items() if k in signature.parameters}
    known = {n: v for n, v in given(function, args, own).items() if n not in shapes}
    if shapes:
        constants |= _solve(function, known, shapes, constants)
    builder = _builder(function, constants)
    with builder.tracing():
        returned = run_traced(builder, function, *_arguments(builder, signature, known))
    kernel = builder.finish()
    order = {name: number for number, name in enumerate(signature.parameters)}
    kernel.params.sort(key=lambda param: order.get(param.name, len(order)))  # callers go by it, not by declarations
    outputs = [returned] if isinstance(returned, Buffer) else list(returned or ())
    kernel.outputs = [b for b in outputs if b in kernel.outputs] or kernel.outputs
    return PrimFunc(kernel, function), constants


def _builder(function: Callable[..., Any], constants: dict[str, int]) -> Builder:
    builder = Builder(Kernel(function.__name__, []), {function.__code__.co_filename})
    builder.constants = constants
    return builder


def _arguments(
    builder: Builder, signature: inspect.Signature, known: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword-only arguments: parameters that are tensors become placeholders, annotated ones are
    declared at once."""
    result: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, (TensorSpec, Buffer)):
            result[name] = declare(name, known.get(name) or Undeclared(name), annotation)
        elif name in known:
            result[name] = known[name]
        else:
            result[name] = Undeclared(name)
    named = {p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
    return [v for n, v in result.items() if n not in named], {n: v for n, v in result.items() if n in named}


def _solve(
    function: Callable[..., Any],
    known: dict[str, Any],
    shapes: dict[str, tuple[tuple[int, ...], str]],
    constants: dict[str, int],
) -> dict[str, int]:
    """Values of ``T.const`` extents from the shapes of the tensors; those of ``T.dynamic`` are left to the launch."""
    builder = _builder(function, constants)
    builder.on_launch = _stop
    with builder.tracing():
        try:
            run_traced(builder, function, *_arguments(builder, inspect.signature(function), known))
        except _Declared:
            pass
        except TraceError:
            pass  # a constant that is needed earlier than its declaration allows: reported by the second pass
    found: dict[str, int] = {}
    for param in builder.kernel.params:
        if isinstance(param, Buffer) and param.name in shapes:
            shape = shapes[param.name][0]
            if len(shape) != len(param.shape):
                raise TraceError(f"{param.name} has {len(param.shape)} axes, but the tensor has shape {list(shape)}")
            for dim, size in zip(param.shape, shape, strict=True):
                if isinstance(dim, Var) and dim.name in builder.unsolved:
                    found.setdefault(dim.name, size)
    return found


def _stop() -> None:
    raise _Declared
