"""Runs a script under an installed TileLang and records each launch of a kernel.

    python record.py --out trace/ [--max-bytes N] [--launches N] [--seed N] SCRIPT [ARGUMENTS...]

Stand-alone: Python, NumPy, torch and the script's own tilelang; no part of tl2npu but ``trace_writer.py`` beside it.
Only what is called is hooked, by the names that the releases of TileLang have (0.1.4 to 0.1.15, and tilelang-ascend):
``JITKernel.__call__`` and the adapter that a profiler calls. The factory and its arguments come from ``JITImpl`` or
``_JitImplementation``, or from the function that a ``T.prim_func`` was defined in. Launches of the autotuner are
not recorded, those of a benchmark only where the kernel was not launched before.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import runpy
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trace_writer import (
    MAX_BYTES,
    PATTERNS,
    PER_KERNEL,
    NotKept,
    Value,
    Writer,
    as_json,
    header_of,
    key_of,
    stored_type,
    summary,
    text_digest,
)


@dataclass(frozen=True)
class Origin:
    """The call of a factory that gave a kernel."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    impl: Any = None


@dataclass(frozen=True)
class Parameters:
    """The parameters of a compiled kernel: names in order, which of them are tensors, and which the call makes."""

    names: list[str]
    tensors: frozenset[str]
    returned: list[str]
    scratch: list[str]

    @property
    def given(self) -> list[str]:
        """What the caller passes, in order."""
        made = {*self.returned, *self.scratch}
        return [name for name in self.names if name not in made]


class Recorder:
    """Keeps launches in a ``Writer``."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.quiet = 0
        self.benchmarks = 0
        self._done: set[int] = set()
        self._lock = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Inside of it, in all threads, launches are not recorded: ``quiet`` none at all, ``benchmarks`` none of a
        kernel that has been launched before."""
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
        try:
            yield
        finally:
            with self._lock:
                setattr(self, what, getattr(self, what) - 1)

    @contextmanager
    def calling(self, origin: Origin) -> Iterator[None]:
        """A call of a factory, for the launches of an eager kernel inside of it."""
        before = getattr(self._local, "origin", None)
        self._local.origin = origin
        try:
            yield
        finally:
            self._local.origin = before

    def launch(self, kernel: Any, run: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a launch and keep it, but for those inside of another launch or of a benchmark."""
        known = self.benchmarks and id(kernel) in self._done
        if self.quiet or known or getattr(self._local, "busy", False) or _capturing():
            return run()
        self._local.busy = True
        self._done.add(id(kernel))
        try:
            return self._keep(kernel, run, args, kwargs)
        finally:
            self._local.busy = False

    def _keep(self, kernel: Any, run: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = _kernel_name(kernel)
        try:
            parameters = parameters_of(kernel)
            origin = getattr(self._local, "origin", None) or getattr(kernel, "_tl2npu_origin", None)
            told = _told(kernel, origin)
            name = told["kernel"]
            given = _given(parameters, args, kwargs)
            shapes = [(n, str(getattr(v, "dtype", "")), str(getattr(v, "shape", ""))) for n, v in given.items()]
            if not self.writer.wanted(name, key_of(name, told["arguments"], shapes)):
                return run()
            before = {n: value_of(v) for n, v in given.items() if n in parameters.tensors}
            scalars = {n: as_json(_plain(v)) for n, v in given.items() if n not in parameters.tensors}
        except NotKept as error:
            self.writer.leave_out(name, str(error))
            return run()
        result = run()
        outputs = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
        try:
            if len(outputs) != len(parameters.returned):
                raise NotKept(f"the call returns {len(outputs)} tensors, not {len(parameters.returned)}")
            after = {n: value_of(v) for n, v in given.items() if n in parameters.tensors}
            after |= {n: value_of(v) for n, v in zip(parameters.returned, outputs, strict=True)}
        except NotKept as error:
            self.writer.leave_out(name, str(error))
            return result
        names = [n for n in parameters.names if n in parameters.tensors]
        launch = {**told, "scalars": scalars}
        self.writer.add(launch, names, parameters.given, before, after, parameters.returned, parameters.scratch)
        return result


def _given(parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What the caller passed, by parameter name."""
    names = parameters.given
    found = dict(zip(names, args, strict=False))  # further arguments are extents, which the tensors have
    found |= {name: value for name, value in kwargs.items() if name in names}
    missing = [name for name in names if name not in found]
    if missing:
        raise NotKept(f"the call does not pass {missing[0]}")
    return found


def parameters_of(kernel: Any) -> Parameters:
    """The parameters of a compiled kernel. Raises NotKept where TileLang does not tell them."""
    function = getattr(kernel, "prim_func", None)
    if function is None:
        raise NotKept("TileLang does not expose its prim_func")
    buffers = dict(function.buffer_map.items())
    names = [str(buffers[p].name if p in buffers else p.name) for p in function.params]
    tensors = frozenset(str(buffers[p].name) for p in function.params if p in buffers)
    if len(set(names)) < len(names):
        raise NotKept("two of its parameters have one name")

    def at(indices: Any) -> list[str]:
        listed = [indices] if isinstance(indices, int) else list(indices or ())
        return [names[int(i)] for i in listed]

    scratch = at(getattr(kernel, "workspace_idx", None))
    return Parameters(names, tensors, at(getattr(kernel, "out_idx", None)), scratch)


def value_of(tensor: Any) -> Value:
    """A copy of a torch tensor. Raises NotKept for what is no tensor of a type that can be kept."""
    if not (hasattr(tensor, "data_ptr") and hasattr(tensor, "stride")):
        raise NotKept(f"{type(tensor).__name__} was passed for a tensor")
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    stored = stored_type(dtype)
    dense = tensor.detach().contiguous().cpu()
    if dtype in PATTERNS:
        dense = dense.view(torch.int16 if stored == "uint16" else torch.uint8)
    array = dense.numpy().view(stored).copy()
    memory = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), dtype) if tensor.numel() else None
    return Value(array, dtype, tuple(tensor.stride()), memory)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _capturing() -> bool:
    """True while a CUDA graph is captured, when nothing may be copied to the host."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return bool(cuda is not None and cuda.is_available() and cuda.is_current_stream_capturing())


def _kernel_name(kernel: Any) -> str:
    function = getattr(kernel, "prim_func", None)
    wrapped = getattr(function, "orig_func", None)
    if wrapped is not None:
        return str(wrapped.__qualname__).replace(".<locals>", "")
    attrs = getattr(function, "attrs", None) or {}
    return str(attrs["global_symbol"]) if "global_symbol" in attrs else "main"


def _told(kernel: Any, origin: Origin | None) -> dict[str, Any]:
    """The fields of a launch that say which kernel it is and how it was made."""
    name = _kernel_name(kernel)
    if origin is None:
        factory, function, arguments, why = getattr(kernel.prim_func, "_tl2npu_made", ("", None, None, "no factory"))
    else:
        function = origin.function
        factory = function.__name__
        arguments, why = _arguments(origin, kernel)
        if "." not in name and name != factory:
            name = f"{factory}.{name}"
    found = function or getattr(kernel.prim_func, "orig_func", None)
    file, line, digest = _source(found)
    if arguments is not None:
        try:
            arguments = {str(key): as_json(value) for key, value in arguments.items()}
        except NotKept as error:
            arguments, why = None, str(error)
    return {
        "kernel": name,
        "factory": factory,
        "arguments": arguments,
        "arguments_missing": None if arguments is not None else why,
        "file": file,
        "line": line,
        "source_sha256": digest,
    }


def _arguments(origin: Origin, kernel: Any) -> tuple[dict[str, Any] | None, str]:
    """The arguments of the factory: defaults and what a tuner chose are filled in, tensors are left out, and the
    constants that an eager kernel takes from the shapes of its tensors are added."""
    signature = inspect.signature(origin.function)
    kwargs = {**origin.kwargs, **origin.kwargs.get("__tune_params", {})}
    kwargs = {name: value for name, value in kwargs.items() if not name.startswith("__")}
    further = {n: v for n, v in kwargs.items() if n not in signature.parameters}
    try:
        bound = signature.bind_partial(*origin.args, **{n: v for n, v in kwargs.items() if n not in further})
    except TypeError as error:
        return None, str(error)
    config = getattr(kernel, "config", None)
    if isinstance(config, dict):
        bound.arguments.update({n: v for n, v in config.items() if n in signature.parameters})
    bound.apply_defaults()
    return {
        **{n: v for n, v in bound.arguments.items() if not hasattr(v, "data_ptr")},
        **further,
        **_constants(origin),
    }, ""


def _constants(origin: Origin) -> dict[str, Any]:
    """The values of ``T.const`` in an eager kernel; TileLang keeps them beside the template that it traced."""
    function = getattr(origin.impl, "func", None)
    binder, cache = getattr(function, "_argument_binder", None), getattr(function, "p1_cache", None)
    if binder is None or not cache:
        return {}
    try:
        bound = binder.bind(origin.args, {n: v for n, v in origin.kwargs.items() if not n.startswith("__")})
        template = cache[bound.p1_key]
        if template.matcher is None:
            return {}
        values = template._parse_phase2_key(**bound.tensor_args, **bound.compile_kwargs)
        return {str(row[3]): int(value) for row, value in zip(template.matcher.values(), values, strict=True)}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _source(function: Any) -> tuple[str, int, str | None]:
    """The file name, the line and the digest of a function's text."""
    try:
        lines, start = inspect.getsourcelines(function)
        file = Path(inspect.getsourcefile(function) or "").name
    except (OSError, TypeError):
        return "", 0, None
    return file, start, text_digest(textwrap.dedent("".join(lines)))


def install(recorder: Recorder) -> None:
    """Hook an installed TileLang. Raises ImportError."""
    kernels = importlib.import_module("tilelang.jit.kernel").JITKernel
    adapters = importlib.import_module("tilelang.jit.adapter.base").BaseKernelAdapter
    jit = importlib.import_module("tilelang.jit")
    of_impl = functools.partial(_of_impl, recorder, kernels)
    _hook(kernels, "__call__", functools.partial(_of_kernel, recorder))
    _hook(kernels, "get_profiler", _of_profiler)
    _hook(adapters, "__call__", functools.partial(_of_adapter, recorder))
    if hasattr(jit, "JITImpl"):
        _hook(jit.JITImpl, "__call__", of_impl)
        _hook(jit.JITImpl, "compile", of_impl)
    elif hasattr(jit, "_JitImplementation"):
        _hook(jit._JitImplementation, "__call__", functools.partial(_of_old_impl, recorder, kernels))
    for module in ("tilelang.profiler", "tilelang.profiler.bench"):
        with suppress(ImportError):
            _hook(importlib.import_module(module), "do_bench", functools.partial(_during, recorder, "benchmarks"))
    with suppress(ImportError):
        tuner = importlib.import_module("tilelang.autotuner.tuner")
        _hook(getattr(tuner, "AutoTuner", None), "run", functools.partial(_during, recorder, "quiet"))
        _hook(getattr(tuner, "AutoTuneImpl", None), "__call__", of_impl)
    _hook(importlib.import_module("tilelang.language"), "prim_func", _with_frame)


def _hook(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function around a method, where there is one."""
    before = getattr(owner, name, None)
    if before is not None:
        setattr(owner, name, functools.update_wrapper(make(before), before))


def _of_kernel(recorder: Recorder, run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: recorder.launch(self, lambda: run(self, *args, **kwargs), args, kwargs)


def _of_adapter(recorder: Recorder, run: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = getattr(self, "_tl2npu_kernel", None)
        if kernel is None:
            return run(self, *args, **kwargs)
        return recorder.launch(kernel, lambda: run(self, *args, **kwargs), args, kwargs)

    return call


def _of_profiler(make: Callable[..., Any]) -> Callable[..., Any]:
    def get_profiler(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "adapter", None) is not None:
            self.adapter._tl2npu_kernel = self
        return make(self, *args, **kwargs)

    return get_profiler


def _noted(recorder: Recorder, kernels: type, origin: Origin, call: Callable[[], Any]) -> Any:
    """What a call makes; a kernel knows where it comes from."""
    with recorder.calling(origin):
        result = call()
    if isinstance(result, kernels):
        result._tl2npu_origin = origin  # type: ignore[attr-defined]
    return result


def _of_impl(recorder: Recorder, kernels: type, call: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        impl = getattr(self, "jit_impl", self)
        function = getattr(impl.func, "orig_func", impl.func)
        origin = Origin(function, args, dict(kwargs), impl)
        return _noted(recorder, kernels, origin, lambda: call(self, *args, **kwargs))

    return made


def _of_old_impl(recorder: Recorder, kernels: type, decorate: Callable[..., Any]) -> Callable[..., Any]:
    def decorated(self: Any, function: Any) -> Any:
        wrapper = decorate(self, function)

        @functools.wraps(wrapper)
        def made(*args: Any, **kwargs: Any) -> Any:
            return _noted(recorder, kernels, Origin(function, args, dict(kwargs)), lambda: wrapper(*args, **kwargs))

        self.wrapper = made
        return made

    return decorated


def _during(recorder: Recorder, what: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with recorder.during(what):
            return run(*args, **kwargs)

    return call


def _with_frame(define: Callable[..., Any]) -> Callable[..., Any]:
    """``T.prim_func``, which notes the function that a kernel is defined in: ``tilelang.compile`` does not tell it."""

    def prim_func(func: Any = None, **options: Any) -> Any:
        if func is None:
            return lambda later: prim_func(later, **options)
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        made, code = define(func, **options), frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        outer = frame.f_globals.get(code.co_name)
        outer = getattr(getattr(outer, "func", outer), "orig_func", outer)
        if callable(outer) and getattr(outer, "__code__", None) is code:
            arguments = {name: frame.f_locals[name] for name in code.co_varnames[:count] if name in frame.f_locals}
            with suppress(AttributeError):
                made._tl2npu_made = (code.co_name, outer, arguments, "")
        return made

    return prim_func


def header(script: Path, arguments: list[str], seed: int | None, tool: str | None) -> dict[str, Any]:
    """The fields of the manifest beside the launches."""
    import numpy
    import tilelang
    import torch

    device: dict[str, Any] = {"kind": "cpu", "name": "cpu"}
    for kind in ("cuda", "npu"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            device = {"kind": kind, "name": str(module.get_device_name(0))}
    versions = {
        "tl2npu": tool,
        "tilelang": str(getattr(tilelang, "__version__", "unknown")),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    return {**header_of(script, arguments, seed), "device": device, "versions": versions}


def _seed(seed: int) -> None:
    import random

    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def run_script(script: Path, arguments: list[str]) -> int:
    """Execute a script as Python does; the exit code that Python would give."""
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    try:
        runpy.run_path(str(script.absolute()), run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return int(stop.code or 0)
        print(stop.code, file=sys.stderr)
        return 1
    except Exception:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def main(argv: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record the launches of a TileLang script.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--max-bytes", type=int, default=MAX_BYTES)
    parser.add_argument("--launches", type=int, default=PER_KERNEL)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tl2npu", default=None)
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    try:
        found = header(given.script, given.arguments, given.seed, given.tl2npu)
        writer = Writer(given.out, found, given.max_bytes, given.launches)
        install(Recorder(writer))
    except ImportError as error:
        print(f"error: {sys.executable} cannot record: {error}", file=sys.stderr)
        return 2
    _seed(given.seed)
    code: int = summary(writer, run_script(given.script, given.arguments))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
