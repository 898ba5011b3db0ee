"""``T.prim_func`` and ``T.macro``."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tl2npu.simulator.errors import SimulatorError, TraceError
from tl2npu.simulator.frontend import hooks
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.frontend.rewrite import traced
from tl2npu.simulator.frontend.types import DType, TensorSpec, dtype_name
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Expr, Var
from tl2npu.simulator.ir.stmt import Kernel, Site


class PrimFunc:
    """A traced prim_func. ``attrs`` as in TVM; ``with_attr`` gives a copy with one more."""

    def __init__(self, kernel: Kernel, function: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.attrs = kernel.attrs
        self.__name__ = kernel.name
        self.__wrapped__ = function
        self.script_source = function

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
    return PrimFunc(trace(function, parameters(function)), function)


def parameters(function: Callable[..., Any]) -> list[Buffer | Var]:
    """The parameters of a prim_func, from its annotations. Raises TraceError for one without a known annotation."""
    code = function.__code__
    site = Site(code.co_filename, code.co_firstlineno)
    result = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = _evaluated(parameter.annotation, function, site)
        result.append(parameter_of(name, annotation, site))
    return result


def parameter_of(name: str, annotation: Any, site: Site) -> Buffer | Var:
    """One parameter from its annotation."""
    if callable(annotation) and not isinstance(annotation, (DType, TensorSpec, type)) and hasattr(annotation, "spec"):
        annotation = annotation.spec
    if isinstance(annotation, TensorSpec):
        return Buffer(name, annotation.shape, annotation.dtype, "global", annotation.strides, line=site.line)
    if isinstance(annotation, Buffer):
        return Buffer(name, annotation.shape, annotation.dtype, "global", annotation.strides, line=site.line)
    try:
        return Var(name, dtype_name(annotation))
    except TypeError:
        raise TraceError(
            f"parameter {name} is annotated with {annotation!r}, not with a tensor or a type", site
        ) from None


def _evaluated(annotation: Any, function: Any, site: Site) -> Any:
    if not isinstance(annotation, str) or isinstance(annotation, DType):
        return annotation
    closure = inspect.getclosurevars(function)
    space = {**function.__globals__, **closure.nonlocals}
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename != function.__code__.co_filename:
        frame = frame.f_back  # with postponed annotations a factory's names are found where the factory runs
    if frame is not None:
        space = {**space, **frame.f_locals}
    try:
        return eval(annotation, space)
    except Exception as error:
        raise TraceError(f"the annotation {annotation!r} cannot be evaluated: {error}", site) from error


def trace(function: Callable[..., Any], params: list[Buffer | Var]) -> Kernel:
    """The program of a function whose parameters are known."""
    builder = Builder(Kernel(function.__name__, params), {function.__code__.co_filename})
    with builder.tracing():
        run_traced(builder, function, params)
    return builder.finish()


def run_traced(builder: Builder, function: Callable[..., Any], args: list[Any]) -> Any:
    """Run the rewritten function. Python's errors get the line of the kernel that they came from."""
    try:
        return traced(function, hooks)(*args)
    except SimulatorError:
        raise
    except (TypeError, ValueError, AttributeError, NameError, IndexError, KeyError, AssertionError) as error:
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
    rewritten: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def inlined(*args: Any, **kwargs: Any) -> Any:
        builder = Builder.current()
        if not rewritten:
            rewritten.append(traced(function, hooks))
        builder.files.add(function.__code__.co_filename)
        loops, builder.loops = builder.loops, []
        try:
            return rewritten[0](
                *(_argument(builder, a) for a in args), **{k: _argument(builder, v) for k, v in kwargs.items()}
            )
        finally:
            builder.loops = loops

    return inlined


def _argument(builder: Builder, value: Any) -> Any:
    """An expression that reads memory is read once, when the macro is called."""
    if isinstance(value, Expr) and not isinstance(value, Var):
        from tl2npu.simulator.ir.expr import Load, walk

        if any(isinstance(e, Load) for e in walk(value)) and not isinstance(value, Load):
            return builder.let("arg", value)
    return value
