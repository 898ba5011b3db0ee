"""``tilelang.jit`` and ``tilelang.compile``: factories, and the kernels that they give."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

from tl2npu.dialects.compilation import Compiler, order
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.frontend import eager
from tl2npu.simulator.frontend.builder import stated
from tl2npu.simulator.frontend.prim_func import PrimFunc
from tl2npu.simulator.frontend.rewrite import definition_of, launches
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import npuir
from tl2npu.simulator.lowering.uses import buffers
from tl2npu.simulator.machine.symbols import extents, solve
from tl2npu.simulator.standin import raw_memory, tensors
from tl2npu.simulator.standin.latency import UNMEASURED
from tl2npu.simulator.standin.nested import Outer, outer_of
from tl2npu.simulator.standin.session import Session

NO_SOURCE = "// not available: the kernel runs on the tl2npu simulator, no device code was generated"


def indices(value: Any, count: int) -> list[int]:
    """``out_idx`` in all its forms: None, an integer, a list; negative ones count from the end."""
    if value is None:
        return []
    listed = [value] if isinstance(value, int) else list(value)
    result = []
    for index in listed:
        if not -count <= index < count:
            raise ValueError(f"index {index} of out_idx or workspace_idx, but the prim_func has {count} parameters")
        result.append(index % count)
    return result


class JITKernel:
    """A compiled kernel: called with the inputs, it makes and returns the outputs."""

    def __init__(
        self,
        session: Session,
        func: PrimFunc,
        out_idx: Any = None,
        workspace_idx: Any = None,
        pass_configs: Any = None,
        factory: str = "",
        arguments: dict[str, Any] | None = None,
        target: Any = None,
        outer: Outer | None = None,
    ) -> None:
        func = func.of_target(target)
        self.session = session
        self.prim_func = func
        self.kernel = func.kernel
        self.kernel.configs = {str(k): v for k, v in (pass_configs or {}).items()}
        self.kernel.attrs["target"] = str(target or "auto")
        if self.kernel.npuir:
            self.kernel.attrs["mode"] = mode = npuir.environment()
            if not mode and not any(npuir.written_for_expert(launch) for launch in self.kernel.launches):
                raw_memory.say(
                    f"note: {npuir.VARIABLE} is not set: {self.kernel.name} would be compiled in Expert mode; it is "
                    "run in Developer mode, for which it is written"
                )
        params = self.kernel.params
        self.out_idx = indices(out_idx, len(params))
        self.workspace_idx = indices(workspace_idx, len(params))
        self.factory = factory
        self.arguments = arguments or {}
        self.outer = outer
        self.latency = self.ref_latency = UNMEASURED
        self.config: Any = None

    @property
    def is_npu(self) -> bool:
        """True for an Ascend kernel."""
        return bool(self.kernel.launches) and all(launch.is_npu for launch in self.kernel.launches)

    def get_tuner_result(self) -> Any:
        """The configuration that a tuner took."""
        return self.config

    @property
    def params(self) -> list[Any]:
        """The parameters of the prim_func; tensors that an eager kernel makes are the last, as in TileLang."""
        return [*self.kernel.params, *self.kernel.outputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = {*self.out_idx, *self.workspace_idx}
        given = [n for n in range(len(self.kernel.params)) if n not in made]
        names = [self.kernel.params[n].name for n in given]
        if kwargs:
            kwargs.pop("stream", None)
            args = (*args, *(kwargs[n] for n in names[len(args) :] if n in kwargs))
        if len(args) > len(given) and self.is_npu and not self.kernel.npuir:
            raw_memory.say(f"note: {self.kernel.name} is called with {len(args)} tensors, {len(given)} are looked at")
            args = args[: len(given)]
        if len(args) != len(given):
            raise ValueError(
                f"Expected {len(given)} inputs ({', '.join(names)}), but got {len(args)}: {self.kernel.name} has "
                f"{len(self.kernel.params)} parameters, {len(made)} of them made by the call"
            )
        return self._run(dict(zip(given, args, strict=True)))

    def _run(self, given: dict[int, Any]) -> Any:
        params = self.kernel.params
        arrays, scalars = {}, {}
        tensor_params = []
        for n, value in given.items():
            param = params[n]
            if value is None and isinstance(param, Buffer) and self._null(param):
                continue
            if isinstance(param, Buffer):
                arrays[param.number] = self._array(param, value)
                tensor_params.append(param)
            else:
                scalars[param] = value.item() if hasattr(value, "item") else value
        longer: dict[int, Any] = {}
        if self.is_npu:
            poison_of = self.session.arithmetic_poison
            arrays, longer = raw_memory.declared(self.kernel.name, tensor_params, arrays, scalars, poison_of)
        values = solve(params, arrays, scalars)
        for param in (params[n] for n, value in given.items() if value is None):
            if isinstance(param, Buffer):
                nothing = extents(param, values) or (0,) * param.ndim
                poison = self.session.arithmetic_poison(param.dtype)
                arrays[param.number] = tensors.blank(nothing, param.dtype, poison, False)[1]
        with_torch = tensors.uses_torch(given.values())
        made: dict[int, Any] = {}
        blanks = {n: params[n] for n in (*self.out_idx, *self.workspace_idx)}
        blanks |= {len(params) + n: b for n, b in enumerate(self.kernel.outputs)}
        for n, param in blanks.items():
            if isinstance(param, Var):
                raise SimulatorError(f"out_idx or workspace_idx names {param.name}, which is not a tensor")
            shape = extents(param, values)
            if shape is None:
                raise SimulatorError(f"the shape of the output {param.name} depends on a symbol that no input has")
            poison = self.session.arithmetic_poison(param.dtype)
            made[n], arrays[param.number] = tensors.blank(shape, param.dtype, poison, with_torch)
        ends = {number: memory.array.size for number, (memory, _) in longer.items()}
        self.session.execute(self, self.kernel, arrays, scalars, ends)
        for memory, poison in longer.values():
            memory.give_back(poison)
        wanted = [*self.out_idx, *(len(params) + n for n in range(len(self.kernel.outputs)))]
        results = [made[n] for n in wanted]
        if not results:
            return None
        return results[0] if len(results) == 1 else results

    def _null(self, param: Buffer) -> bool:
        """True for a tensor that an npuir kernel may be given as None, a null pointer: no statement touches it."""
        everything = [s for launch in self.kernel.launches for s in statements(launch.body)]
        return self.kernel.npuir and not any(b is param for s in everything for b in buffers(s))

    def _array(self, param: Buffer, value: Any) -> Any:
        if not tensors.is_tensor(value):
            raise TypeError(f"{param.name} of {self.kernel.name} has to be a tensor, not {type(value).__name__}")
        array = tensors.array_of(value)
        found = tensors.dtype_of(value)
        if found != param.dtype:
            if {found, param.dtype} == {"bool", "int8"} or {found, param.dtype} == {"bool", "uint8"}:
                return array.view(self.session.arithmetic.storage(param.dtype))
            raise TypeError(
                f"{param.name} of {self.kernel.name} has element type {param.dtype}, but the tensor has {found}"
            )
        return array

    def get_kernel_source(self, *_: Any, **__: Any) -> str:
        """Says that there is none."""
        return NO_SOURCE

    get_host_source = show_source = print_source_code = show_ptx = show_sass = get_kernel_source

    def get_profiler(self, *_: Any, **__: Any) -> Any:
        """A profiler that measures nothing."""
        from tl2npu.simulator.standin.profiler import Profiler

        return Profiler(self.kernel.params, self.out_idx, self.workspace_idx).with_default_adapter(self)

    @property
    def adapter(self) -> Any:
        """What remains of the real one."""
        return self

    @property
    def artifact(self) -> Any:
        """What remains of the real one."""
        return self

    kernel_source = property(get_kernel_source)
    device_source = host_source = property(get_kernel_source)
    torch_function = property(lambda self: self)

    def export_library(self, *_: Any, **__: Any) -> None:
        """Nothing to export."""

    export_sources = export_ptx = export_sass = export_library


class Factory:
    """A function under ``@tilelang.jit`` that returns a prim_func."""

    def __init__(self, session: Session, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.session = session
        self.function = function
        self.options = options
        self.signature = inspect.signature(function)
        self.outer = outer_of(function)
        self.cache: dict[Any, JITKernel] = {}
        self.eager = has_launch(function)
        self.target = options.get("target", "auto")
        self.platform = options.get("platform", "auto")
        self.__jit_impl__ = self  # where scripts look for the options
        self.func = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kwargs = {k: v for k, v in kwargs.items() if not (k.startswith("__") and k.endswith("__"))}
        if self.eager:
            return self._eager(args, kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        key = repr(sorted((k, repr(v)) for k, v in bound.arguments.items()))
        if key not in self.cache:
            with stated(self.options.get("target")):
                func = self.function(*args, **kwargs)
            if not isinstance(func, PrimFunc):
                raise TypeError(f"{self.function.__name__} is under tilelang.jit, but returns {type(func).__name__}")
            self.cache[key] = self._kernel(func, dict(bound.arguments))
        return self.cache[key]

    def _kernel(self, func: PrimFunc, arguments: dict[str, Any]) -> JITKernel:
        return JITKernel(
            self.session,
            func,
            self.options.get("out_idx"),
            self.options.get("workspace_idx"),
            self.options.get("pass_configs"),
            self.function.__name__,
            arguments,
            self.options.get("target"),
            self.outer,
        )

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for given arguments; eager style: extents by name, tensors may be left out."""
        if not self.eager:
            return self(*args, **kwargs)  # type: ignore[no-any-return]
        if any(map(tensors.is_tensor, (*args, *kwargs.values()))):
            return self._for(args, kwargs)
        key = repr((args, sorted((k, repr(v)) for k, v in kwargs.items())))
        if key not in self.cache:
            with stated(self.options.get("target")):
                func, _ = eager.trace(self.function, args, kwargs, eager.placeholders(self.function, args, kwargs))
            self.cache[key] = self._kernel(func, {**{str(n): a for n, a in enumerate(args)}, **kwargs})
        return self.cache[key]

    def _for(self, args: Any, kwargs: Any) -> JITKernel:
        """The kernel for the tensors of a call."""
        shapes = {
            n: (tensors.array_of(v).shape, tensors.dtype_of(v))
            for n, v in eager.given(self.function, args, kwargs).items()
            if tensors.is_tensor(v)
        }
        plain = {n: v for n, v in eager.given(self.function, args, kwargs).items() if not tensors.is_tensor(v)}
        key = repr((sorted(shapes.items()), sorted((k, repr(v)) for k, v in plain.items())))
        if key not in self.cache:
            with stated(self.options.get("target")):
                func, constants = eager.trace(self.function, args, kwargs, shapes)
            passed = {p.name for p in func.params}  # scalars of the launch are no arguments of the compilation
            self.cache[key] = self._kernel(func, {n: v for n, v in (plain | constants).items() if n not in passed})
        return self.cache[key]

    def _eager(self, args: Any, kwargs: Any) -> Any:
        kernel = self._for(args, kwargs)
        everything = eager.given(self.function, args, kwargs)
        return kernel(*(everything[p.name] for n, p in enumerate(kernel.kernel.params) if n not in kernel.out_idx))

    def get_kernel_source(self, *_: Any, **__: Any) -> str:
        """Says that there is none."""
        return NO_SOURCE

    def get_tir(self, *args: Any, **kwargs: Any) -> PrimFunc:
        """The prim_func."""
        return self.compile(*args, **kwargs).prim_func

    def par_compile(self, configs: Any, *_: Any, **__: Any) -> list[JITKernel]:
        """Several kernels."""
        return [self.compile(**c) if isinstance(c, dict) else self.compile(*c) for c in configs]


def has_launch(function: Callable[..., Any]) -> bool:
    """True if the function itself has a ``with T.Kernel``: eager style."""
    try:
        node = definition_of(function)
    except (OSError, TypeError, SyntaxError):
        return False
    return isinstance(node, ast.FunctionDef) and launches(node.body)


def make_jit(session: Session) -> Callable[..., Any]:
    """``tilelang.jit`` for a session."""

    def jit(func: Any = None, **options: Any) -> Any:
        if callable(func) and not isinstance(func, PrimFunc):
            return Factory(session, func, options)
        if isinstance(func, PrimFunc):
            return compile_(session)(func, **options)
        if func is not None:
            options.setdefault("out_idx", func)
        return lambda function: Factory(session, function, options)

    return jit


def compile_(session: Session, compiler: Compiler = "compile") -> Callable[..., JITKernel]:
    """``tilelang.compile`` for a session, or ``tilelang.cached``."""

    def compile(func: Any = None, out_idx: Any = None, *rest: Any, **options: Any) -> JITKernel:
        if isinstance(func, Factory):
            return func.compile()
        if compiler == "cached" and callable(func) and not isinstance(func, PrimFunc):
            func, rest = func(*rest), ()  # as old versions did it
        if not isinstance(func, PrimFunc):
            raise TypeError(f"tilelang.{compiler} needs a prim_func, not {type(func).__name__}")
        options |= zip(order(compiler, _language(func))[2:], rest, strict=False)
        return JITKernel(
            session,
            func,
            out_idx,
            options.get("workspace_idx"),
            options.get("pass_configs"),
            func.__name__,
            target=options.get("target"),
        )

    compile.compiles_prim_funcs = True  # type: ignore[attr-defined]
    return compile


def _language(func: PrimFunc) -> str:
    if func.kernel.npuir:
        return "npuir"
    return "ascend" if any(launch.is_npu for launch in func.kernel.launches) else "gpu"


def kernel_class(session: Session) -> type:
    """``tilelang.JITKernel``: the class of all kernels, which compiles where it is called itself."""

    class Compiling(type):
        def __call__(cls, *args: Any, **options: Any) -> JITKernel:
            return compile_(session)(*args, **options)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, JITKernel)

    return Compiling("JITKernel", (), {"compiles_prim_funcs": True})
