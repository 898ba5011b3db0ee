"""Builds kernels by factory and arguments, and runs them on arrays given by parameter name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tl2npu.simulator.frontend.prim_func import PrimFunc
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import extents, solve, symbols_of
from tl2npu.simulator.standin.jit import Factory, JITKernel
from tl2npu.simulator.standin.nested import Outer
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.calls import misfit, no_factory
from tl2npu.verify.compiling import compiled
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.settings import Call


class CannotBuild(Exception):
    """No kernel comes of a factory and its arguments; ``str()`` says why."""


class WrongCall(CannotBuild):
    """There is no such factory, or it does not take these arguments."""


def build(module: ModuleType, factory: str, arguments: dict[str, Any], session: Session) -> JITKernel:
    """The kernel that a factory of the module gives. Raises CannotBuild, and what the factory raises."""
    result = built(module, factory, arguments, session)
    if not isinstance(result, JITKernel):
        raise CannotBuild(f"{factory} returns {type(result).__name__}, not a kernel")
    return result


def built(
    module: ModuleType, factory: str, arguments: dict[str, Any], session: Session, *, of_old: bool = False
) -> JITKernel | Callable[..., Any]:
    """The kernel that a factory gives, or the function that runs several. Raises as :func:`build` does.

    ``of_old``: the arguments are those of the old kernel; parameters that the new factory has lost are left out.
    """
    function = factory_of(module, factory)
    if function is None or not callable(function):
        raise WrongCall(_no_factory(factory, module))
    return _built(module, factory, function, arguments, session, of_old)


def _no_factory(name: str, module: ModuleType) -> str:
    own = [
        key
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    return no_factory(name, vars(module), own)


def built_inside(
    module: ModuleType, outer: Outer, factory: str, arguments: dict[str, Any], session: Session
) -> JITKernel | Callable[..., Any]:
    """What a factory inside of another function gives: that function gives the factory, or what it gives."""
    around = getattr(module, outer.name, None)
    if not callable(around):
        raise WrongCall(_no_factory(outer.name, module))
    found = around(**{n: a for n, a in outer.arguments.items() if _takes(inspect.signature(around), n)})
    inside = f"{outer.name}.<locals>.{factory}"
    name = getattr(found, "__qualname__", "")
    if isinstance(found, (Factory, FunctionType)) and name == inside:
        return _built(module, factory, found, arguments, session, True)
    if isinstance(found, JITKernel) and found.factory == factory:
        return found
    if isinstance(found, FunctionType) and name.startswith(f"{inside}.<locals>."):
        return found  # it runs several kernels
    raise CannotBuild(f"{outer.name} does not give its {factory}")


def _built(
    module: ModuleType, factory: str, function: Any, arguments: dict[str, Any], session: Session, of_old: bool
) -> JITKernel | Callable[..., Any]:
    signature = function.signature if isinstance(function, Factory) else inspect.signature(function)
    eager = getattr(function, "eager", False) is True  # also below a tuner
    if of_old and not eager:
        arguments = {name: value for name, value in arguments.items() if _takes(signature, name)}
    args, kwargs = _split(arguments, signature, factory, eager)
    compiles = eager or isinstance(function, Factory)
    result: object = function.compile(*args, **kwargs) if compiles else function(*args, **kwargs)
    if isinstance(result, PrimFunc):
        kernel = compiled(result, function, vars(module), session)
        kernel.factory, kernel.arguments = factory, _numbered(arguments, signature)
        return kernel
    if not isinstance(result, (JITKernel, FunctionType)):
        raise WrongCall(f"{factory} returns {type(result).__name__}, not a kernel")
    if isinstance(result, JITKernel) and not compiles and not _can_be_made_again(module, result):
        # The host function that makes the kernel, not a factory inside of it, is what can be called again.
        result.factory, result.arguments = factory, _numbered(arguments, signature)
    return result


def refuse_unread(module: ModuleType, call: Call, compiled: JITKernel) -> None:
    """Raises WrongCall for arguments by name that an eager kernel does not ask for: it takes any."""
    function = factory_of(module, call.factory)
    body = getattr(function, "function", None)
    if getattr(function, "eager", False) is not True or not isinstance(body, FunctionType):
        return
    texts = [text for text in body.__code__.co_consts if isinstance(text, str)]  # T.const("M, N")
    known = {*body.__code__.co_varnames, *(word for text in texts for word in re.findall(r"\w+", text))}
    late = {symbol.name for symbol in symbols_of([p for p in compiled.kernel.params if isinstance(p, Buffer)])}
    for name, value in call.arguments.items():
        if name in late:
            raise WrongCall(f"`{name}` is known at the launch only: use `--size {name}={value}`")
        if not name.isdigit() and name not in known:
            raise WrongCall(f"{call.factory} has no `{name}`")


def _takes(signature: inspect.Signature, name: str) -> bool:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    return str(name).isdigit() or name in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds


def _can_be_made_again(module: ModuleType, kernel: JITKernel) -> bool:
    return bool(kernel.arguments) and factory_of(module, kernel.factory) is not None


def factory_of(module: ModuleType | None, name: str) -> Any:
    """What makes kernels under a name; None if there is nothing of that name.

    Beside a function of the name that calls a factory and what it gives (all that is left of an eager kernel), the
    factory counts.
    """
    function = getattr(module, name, None)
    if function is not None and not isinstance(function, Factory):
        for other in beside(name):
            if isinstance(found := getattr(module, other, None), Factory):
                return found
    return function


def beside(name: str) -> tuple[str, str]:
    """The names that a migration may give the factory of a kernel whose own name a function keeps."""
    return f"{name.rstrip('_')}_kernel", f"{name}_factory"


def _split(
    arguments: dict[str, Any], signature: inspect.Signature, factory: str, eager: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments; a recorded ``*args`` or ``**kwargs`` is spread out again.

    An eager kernel is given its sizes by name and no tensors, so that only tracing it tells whether all is there.
    """
    args = [value for name, value in arguments.items() if str(name).isdigit()]
    kwargs: dict[str, Any] = {}
    for name, value in arguments.items():
        if str(name).isdigit():
            continue
        parameter = signature.parameters.get(name)
        if parameter is not None and parameter.kind is parameter.VAR_KEYWORD and isinstance(value, dict):
            kwargs |= value
        elif parameter is not None and parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise WrongCall(f"{factory} takes {name} by position only")
        else:
            kwargs[name] = value
    given = Call(factory, {**{str(place): value for place, value in enumerate(args)}, **kwargs})
    if eager and len(args) > len(signature.parameters):
        raise WrongCall(f"{factory} takes {signature}; leave tensors out and give their sizes by name")
    if not eager and (why := misfit(given, signature)):
        raise WrongCall(why)
    return args, kwargs


def _numbered(arguments: dict[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    args, kwargs = _split(arguments, signature, "")
    return dict(signature.bind(*args, **kwargs).arguments)


def allocate(compiled: JITKernel, session: Session, given: Arrays, known: dict[Var, Any]) -> dict[int, np.ndarray]:
    """All tensors of a launch by buffer number: those given, by name, and poisoned ones for the rest.

    Raises CannotBuild where the extent of a tensor that the call makes is not known.
    """
    kernel = compiled.kernel
    buffers = [p for p in (*kernel.params, *kernel.outputs) if isinstance(p, Buffer)]
    arrays = {b.number: given[b.name] for b in buffers if b.name in given}
    values = solve(kernel.params, arrays, known)
    for buffer in buffers:
        if buffer.number not in arrays:
            shape = extents(buffer, values)
            if shape is None:
                raise CannotBuild(f"the shape of {buffer.name} depends on a symbolic size that no tensor has")
            poison = session.arithmetic_poison(buffer.dtype)
            arrays[buffer.number] = np.full(shape, poison, dtypes.numpy_dtype(buffer.dtype))
    return arrays


def named(compiled: JITKernel, arrays: dict[int, np.ndarray]) -> Arrays:
    """Arrays by the names of their parameters."""
    buffers = [p for p in (*compiled.kernel.params, *compiled.kernel.outputs) if isinstance(p, Buffer)]
    return {b.name: arrays[b.number] for b in buffers}
