"""``T.prim_func`` and ``T.macro``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from tl2npu.simulator.errors import SimulatorError, TraceError
from tl2npu.simulator.frontend import hooks
from tl2npu.simulator.frontend.builder import STATED, Builder, OnlyNpuir, StopTracing
from tl2npu.simulator.frontend.parameters import parameter_of
from tl2npu.simulator.frontend.rewrite import is_npu, source_of, traced
from tl2npu.simulator.frontend.types import DType
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Const, Expr, Var
from tl2npu.simulator.ir.stmt import Kernel, Site

NPUIR = "npuir"
"""The target whose language has operators of its own."""


class Reference:
    """``T.Ref``: the annotation of a macro's parameter that the macro assigns to."""


class PrimFunc:
    """A traced prim_func. ``attrs`` as in TVM; ``with_attr`` gives a copy with one more."""

    def __init__(self, kernel: Kernel, function: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.attrs = kernel.attrs
        self.__name__ = kernel.name
        self.__wrapped__ = function
        self.script_source = function
        self.reread = function
        """The function as it was when it was traced."""
        self.failure: SimulatorError | None = None
        """Why the function is no kernel of a target other than npuir."""

    def of_target(self, target: Any) -> PrimFunc:
        """The function as the language of a target reads it, which may be known only when it is compiled.

        Raises the error that reading it gave, if it cannot be read for the target.
        """
        if str(target) == NPUIR:
            if self.kernel.npuir:
                return self
            found = PrimFunc(trace(self.reread, _again(self.kernel.params), npuir=True), self.__wrapped__)
            found.attrs.update({k: v for k, v in self.attrs.items() if k not in found.attrs})
            return found
        if self.failure is not None:
            raise self.failure
        return self

    @property
    def params(self) -> list[Any]:
        """The parameters, in order."""
        return self.kernel.params

    @property
    def buffer_map(self) -> dict[Any, Any]:
        """Parameter -> buffer."""
        return {p: p for p in self.kernel.params if isinstance(p, Buffer)}

    def with_attr(self, name: str, value: Any) -> PrimFunc:
        """The function with one more attribute."""
        self.attrs[name] = value
        return self

    def script(self, *_: Any, **__: Any) -> str:
        """Not the compiler's text; the name only."""
        return f"# prim_func {self.kernel.name}: no TVM script in the simulator"

    def show(self, *_: Any, **__: Any) -> None:
        """Prints what ``script`` gives."""
        print(self.script())

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TraceError(f"the prim_func {self.kernel.name} has to be compiled before it is called")


def prim_func(function: Callable[..., Any] | None = None, **_: Any) -> Any:
    """The decorator: traces the function at once, as the compiler does."""
    if function is None:
        return prim_func
    return _traced(function)


def _traced(function: Callable[..., Any]) -> PrimFunc:
    """The function in the language of its target: that of the compilation around it, else by the names it uses."""
    target = STATED.get()
    params = parameters(function)
    if target == NPUIR:
        return PrimFunc(trace(function, params, npuir=True), function)
    try:
        found = PrimFunc(trace(function, params), function)
    except OnlyNpuir:
        return PrimFunc(trace(function, parameters(function), npuir=True), function)
    except SimulatorError as error:
        if target is not None or not is_npu(function):
            raise
        try:
            found = PrimFunc(trace(function, parameters(function), npuir=True), function)
        except SimulatorError:
            raise error from None
        found.failure = error  # whether it is needed is known when the function is compiled
    if target is None:
        found.reread = _frozen(function)
    return found


def _again(params: list[Buffer | Var]) -> list[Buffer | Var]:
    """Tensors of their own with the same shapes."""
    return [
        Buffer(p.name, p.shape, p.dtype, p.memory, p.strides, line=p.line) if isinstance(p, Buffer) else p
        for p in params
    ]


def _frozen(function: Any) -> Any:
    """The function with the values that its free names have now: it may be read again when it is compiled."""
    function = inspect.unwrap(function)
    if not inspect.isfunction(function) or not function.__closure__:
        return function
    cells = []
    for cell in function.__closure__:
        try:
            cells.append(types.CellType(cell.cell_contents))
        except ValueError:
            cells.append(cell)
    found = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    )
    found.__kwdefaults__, found.__annotations__ = function.__kwdefaults__, function.__annotations__
    found.__qualname__, found.__module__, found.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return found


def parameters(function: Callable[..., Any]) -> list[Buffer | Var]:
    """The parameters of a prim_func, from its annotations. Raises TraceError for one without a known annotation."""
    function = inspect.unwrap(function)
    site = Site(function.__code__.co_filename, source_of(function).lineno)
    result = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            raise TraceError(f"parameter {name} has no annotation: a tensor or an element type is needed", site)
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise TraceError(f"a prim_func has no parameters like *{name}", site)
        annotation = _evaluated(parameter.annotation, function, site)
        result.append(parameter_of(name, annotation, site))
    return result


def _evaluated(annotation: Any, function: Any, site: Site) -> Any:
    if not isinstance(annotation, str) or isinstance(annotation, DType):
        return annotation
    space: dict[str, Any] = dict(function.__globals__)
    frame: Any = sys._getframe()
    frames = []
    while frame is not None:
        if frame.f_code.co_filename == function.__code__.co_filename:
            frames.append(frame)  # with postponed annotations a factory's names are found where the factory runs
        frame = frame.f_back
    for outer in reversed(frames):
        space |= outer.f_locals
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a name that has no value yet
            space[name] = cell.cell_contents
    try:
        return eval(annotation, space)
    except Exception as error:
        raise TraceError(f"the annotation {annotation!r} cannot be evaluated: {error}", site) from error


def trace(function: Callable[..., Any], params: list[Buffer | Var], npuir: bool = False) -> Kernel:
    """The program of a function whose parameters are known. ``npuir``: read as that language has it."""
    builder = Builder(Kernel(function.__name__, params), {inspect.unwrap(function).__code__.co_filename})
    builder.npuir = builder.kernel.npuir = npuir
    with builder.tracing():
        run_traced(builder, function, params)
    return builder.finish()


def run_traced(
    builder: Builder, function: Callable[..., Any], args: list[Any], named: dict[str, Any] | None = None
) -> Any:
    """Run the rewritten function. Python's errors get the line of the kernel that they came from."""
    builder.npu = is_npu(function)
    try:
        return traced(function, hooks)(*args, **(named or {}))
    except SimulatorError as error:
        if error.site.line:
            raise
        raise type(error)(error.plain, _line_of(error, builder.files)) from error
    except RecursionError:
        raise
    except Exception as error:
        if isinstance(error, StopTracing):
            raise
        raise TraceError(f"{type(error).__name__}: {error}", _line_of(error, builder.files)) from error


def _line_of(error: BaseException, files: set[str]) -> Site:
    site = Site("<kernel>", 0)
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in files:
            site = Site(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return site


def macro(function: Callable[..., Any] | None = None, **_: Any) -> Any:
    """The decorator of helpers that are traced where they are called."""
    if function is None:
        return macro
    if not callable(function):
        raise TraceError("T.macro decorates functions")
    function = inspect.unwrap(function)
    source_of(function)
    rewritten: list[Callable[..., Any]] = []
    by_reference = {n for n, a in getattr(function, "__annotations__", {}).items() if _is_reference(a)}
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def inlined(*args: Any, **kwargs: Any) -> Any:
        builder = Builder.current()
        if not rewritten:
            rewritten.append(traced(function, hooks))
        builder.files.add(function.__code__.co_filename)
        opened, builder.open = builder.open, []
        try:
            given = [a if n in by_reference else _argument(builder, n, a) for n, a in _with_names(names, args)]
            named = {n: a if n in by_reference else _argument(builder, n, a) for n, a in kwargs.items()}
            return rewritten[0](*given, **named)
        finally:
            builder.open = opened

    return inlined


def _with_names(names: list[str], args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Arguments with the names of their parameters; those of ``*args`` share the last name."""
    return [(names[min(n, len(names) - 1)] if names else "", a) for n, a in enumerate(args)]


def _is_reference(annotation: Any) -> bool:
    """``T.Ref`` and its old spelling ``T.Var``: the macro may assign to its parameter."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] in ("Ref", "Var")
    return annotation is Reference or annotation is Var


def _argument(builder: Builder, name: str, value: Any) -> Any:
    """GPU: an expression is read once, when the macro is called (builder.py, ``macro_arg``). Ascend: it stands for
    itself wherever the macro names its parameter, so that a variable can be assigned."""
    if builder.npu or not isinstance(value, Expr) or isinstance(value, (Var, Const)):
        return value
    return builder.let(name, value)
