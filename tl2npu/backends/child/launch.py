"""Runs launches of one kernel where the user's TileLang-Ascend runs: on an NPU, or on CANN's simulator of one.

Stand-alone (see ``start.py``): standard library, numpy, and the user's torch, torch_npu and tilelang. The request, made
by ``device/launches.py``, has

- ``backend``: ``npu`` or ``camodel``; ``probe``: only say whether it is there
- ``path``, ``pieces``: the file, as [name, text] that are executed in order as the module ``name``
- ``target``, ``platform``: in place of what ``tilelang.jit`` says, or null
- ``repeat``: how often each launch is run; ``instrument``: compile for msSanitizer
- ``library``: the folder of ``libruntime_camodel.so``
- ``launches``: what ``Launch.written`` gives

Events: ``missing`` with ``what``; ``stage`` with ``stage`` (load, build, give, run) and ``number``; ``start`` and
``stop`` of the kernel; ``ran`` with ``number`` when the outputs of the first run are written; ``differs`` with
``number``, ``tensor``, ``run``, ``count``, ``size``, ``index``; ``failed`` with ``stage``, ``number``, ``message``;
``stopped`` with ``message`` where the code around the factories ended early; ``uninstrumented`` where the compiler
does not take the options of msSanitizer.

As TileLang-Ascend's own examples do it (95acbd7f): ``import torch, torch_npu``, tensors by ``.npu()``, the kernel that
the factory returns is called with them, ``torch.npu.synchronize()``. For the simulator as its
``run_a5_sim_template.py``: lower, compile with ``LibraryGenerator``, memory by ``rtMalloc`` of the runtime library.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Emit = Callable[[dict[str, Any]], None]
Stage = Callable[[str, "int | None"], None]
Arrays = dict[str, np.ndarray]

_SANITIZER = ("-g", "--cce-enable-sanitizer")  # msSanitizer's user guide, "Enabling Full Check"
_BITS = {"bfloat16": "int16", "float8_e4m3fn": "int8", "float8_e5m2": "int8"}
_BITS |= {"float8_e4m3fnuz": "int8", "float8_e5m2fnuz": "int8", "float8_e8m0fnu": "int8"}
_UNSIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}  # bits that every torch takes from NumPy


def main(request: dict[str, Any], emit: Emit) -> int:
    """Run the launches, one after the other; stop at the first that fails, since a fault leaves the device unusable."""
    try:
        _import(request["backend"])
    except _Missing as error:
        emit({"event": "missing", "what": str(error)})
        return 1
    if request.get("probe"):
        return 0
    if request["instrument"]:
        _instrument(emit)
    if request["platform"] is not None:
        os.environ["TL_PLATFORM"] = request["platform"]  # read by determine_platform
    compile_ = _keep_programs()
    emit({"event": "begin"})
    emit({"event": "start", "kernel": request["kernel"]})
    at: tuple[str, int | None] = ("", None)

    def stage(name: str, number: int | None) -> None:
        nonlocal at
        if at != (name, number):
            at = name, number
            emit({"event": "stage", "stage": name, "number": number})

    try:
        stage("load", None)
        module = _load(request, emit)
        compiled: dict[str, Any] = {}
        for told in request["launches"]:
            stage("build", told["number"])
            key = repr((told["factory"], told["arguments"]))
            if key not in compiled:
                program = _build(module, told)
                simulate = request["backend"] == "camodel"
                compiled[key] = _Simulated(program, request) if simulate else program.compiled(compile_, request)
            stage("give", told["number"])
            _run(compiled[key], told, request, emit, stage)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        emit({"event": "failed", "stage": at[0], "number": at[1], "message": _said(error)})
        return 1
    finally:
        emit({"event": "stop"})
    return 0


class _Missing(Exception):
    """The machine lacks something; ``str()`` names it."""


def _said(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _import(backend: str) -> None:
    names = ("torch", "torch_npu", "tilelang") if backend == "npu" else ("tilelang",)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise _Missing(f"{name} ({_said(error)})") from None
    if backend == "npu":
        import torch

        if not torch.npu.is_available():
            visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
            which = f" among ASCEND_RT_VISIBLE_DEVICES={visible}" if visible else ""
            raise _Missing(f"an NPU: torch_npu sees none{which}")


def _load(request: dict[str, Any], emit: Emit) -> ModuleType:
    """Execute the file as a module, up to the first launch: a file without a main guard may have more than kernels.

    The parser of TileLang asks ``inspect`` for the source of functions and of their module. It may not be what the file
    on disk holds, so it is entered where ``inspect`` looks first; entries without a time are never looked up on disk.
    """
    path = Path(request["path"]).resolve()
    module = ModuleType(request["name"])
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    sys.argv = [str(path), *request["argv"]]
    sys.path.insert(0, str(path.parent))
    whole = "".join(text for _, text in request["pieces"])
    for name, text in ((str(path), whole), *request["pieces"]):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        for name, text in request["pieces"]:
            exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        if not all(hasattr(module, told["factory"]) for told in request["launches"]):
            raise
        if not isinstance(error, _Launched):
            emit({"event": "stopped", "message": _said(error)})
    return module


class _Launched(Exception):
    """The file launches a kernel while it is loaded."""


def _keep_programs() -> Any:
    """Put in the place of ``tilelang.compile``, which ``tilelang.jit`` calls too, what keeps the program; give it back.

    So nothing is compiled or launched that was not asked for.
    """
    import tilelang

    def keep(func: Any = None, *args: Any, **named: Any) -> _Program:
        return _Program(func, dict(zip(("out_idx", "workspace_idx"), args, strict=False)) | named)

    compile_ = tilelang.compile
    sys.modules["tilelang.jit"].compile = keep  # type: ignore[attr-defined]
    tilelang.compile = keep
    return compile_


class _Program:
    """A program with the arguments of ``tilelang.compile``."""

    def __init__(self, func: Any, named: dict[str, Any]) -> None:
        self.func, self.named = func, named

    def compiled(self, compile_: Any, request: dict[str, Any]) -> Any:
        """The kernel; for the target and the platform of the request, if it has some."""
        chosen = {key: request[key] for key in ("target", "platform") if request[key] is not None}
        return compile_(self.func, **{**self.named, **chosen})

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise _Launched("the file launches a kernel during import, before all factories are defined")


def _instrument(emit: Emit) -> None:
    """Add the options of msSanitizer to what the library generator runs; without them where they are not taken."""
    libgen: Any = importlib.import_module("tilelang.jit.adapter.libgen")
    run = libgen.subprocess.run

    class Subprocess:
        """The module that the generator knows, with another ``run``."""

        def __getattr__(self, name: str) -> Any:
            return getattr(sys.modules["subprocess"], name)

        def run(self, command: Any, *args: Any, **named: Any) -> Any:
            """Compile for the sanitizer."""
            done = run([*command, *_SANITIZER], *args, **named)
            if done.returncode != 0:
                emit({"event": "uninstrumented"})
                done = run(command, *args, **named)
            return done

    libgen.subprocess = Subprocess()


def _value(told: Any) -> Any:
    """A value of a request: see ``device/launches.py``."""
    if isinstance(told, list):
        return [_value(item) for item in told]
    if not isinstance(told, dict):
        return told
    kind, inner = next(iter(told.items()))
    if kind == "dict":
        return {_value(k): _value(v) for k, v in inner}
    if kind == "tuple":
        return tuple(_value(item) for item in inner)
    if kind == "dtype":
        import torch

        return getattr(torch, inner)
    return float(inner)  # "float": one that JSON does not have


def _build(module: ModuleType, told: dict[str, Any]) -> _Program:
    """The kernel that the factory gives for the arguments."""
    function = getattr(module, told["factory"], None)
    if function is None:
        raise AttributeError(f"the file has no factory {told['factory']!r}")
    arguments = dict(_value(told["arguments"]))
    parameters = inspect.signature(function).parameters
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = parameters.get(name)
        if str(name).isdigit():
            args.append(value)
        elif parameter is not None and parameter.kind is parameter.VAR_KEYWORD and isinstance(value, dict):
            kwargs |= value
        else:
            kwargs[name] = value
    result = function(*args, **kwargs)
    if isinstance(result, _Program):
        return result
    if not hasattr(result, "buffer_map"):
        raise TypeError(f"{told['factory']} returns {type(result).__name__}, not a kernel")
    # a prim_func: it is compiled as the file does it elsewhere
    return _Program(result, {key: value for key, value in told["compile"].items() if value is not None})


def _run(kernel: Any, told: dict[str, Any], request: dict[str, Any], emit: Emit, stage: Stage) -> None:
    """Run one launch as often as asked, each time on fresh inputs; keep the first outputs, tell of others."""
    with np.load(told["inputs"], allow_pickle=False) as file:
        arrays = {name: file[f"t.{name}"] for name in told["tensors"]}
    launch = _simulated if isinstance(kernel, _Simulated) else _on_device
    first: dict[str, np.ndarray] = {}
    for run in range(request["repeat"]):
        outputs = launch(kernel, told, arrays, stage)
        if run == 0:
            first = outputs
            kept: dict[str, Any] = {f"t.{name}": array for name, array in outputs.items()}
            np.savez(told["outputs"], **kept)
            emit({"event": "ran", "number": told["number"]})
        for name, array in outputs.items():
            if array.tobytes() != first[name].tobytes():
                where = _first(first[name], array)
                emit({"event": "differs", "number": told["number"], "tensor": name, "run": run + 1, **where})
                return


def _first(left: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Where two arrays have other bits."""
    kind = np.dtype(f"u{left.dtype.itemsize}")
    wrong = np.argwhere(left.view(kind) != right.view(kind))
    return {"count": len(wrong), "size": left.size, "index": [int(i) for i in wrong[0]]}


def _on_device(kernel: Any, told: dict[str, Any], arrays: Arrays, stage: Stage) -> Arrays:
    """All tensors of a launch after it, by name."""
    import torch

    tensors: dict[str, Any] = {}
    for name, dtype in told["tensors"].items():
        first = told["shared"].get(name, name)
        if name in told["given"]:
            tensors[name] = tensors[first] if first in tensors else _tensor(arrays[name], dtype).npu()
    stage("run", told["number"])
    found = kernel(*(tensors[n] if n in tensors else told["scalars"][n] for n in told["given"]))
    torch.npu.synchronize()
    results = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    if len(results) != len(told["returned"]):
        raise ValueError(f"the kernel returns {len(results)} tensors, expected {', '.join(told['returned']) or 0}")
    tensors |= dict(zip(told["returned"], results, strict=True))
    return {name: _array(tensor) for name, tensor in tensors.items()}


def _tensor(array: np.ndarray, dtype: str) -> Any:
    """A tensor of bits that NumPy holds in an unsigned integer where it lacks the type."""
    import torch

    if not hasattr(torch, dtype):
        raise TypeError(f"this torch has no element type {dtype}")
    same = _BITS.get(dtype) or _UNSIGNED.get(dtype)
    if same is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(same)).view(getattr(torch, dtype))


def _array(tensor: Any) -> np.ndarray:
    """The bits of a tensor, as the request holds them."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    same = _BITS.get(dtype) or _UNSIGNED.get(dtype)
    if same is None:
        return np.asarray(tensor.numpy())
    return np.asarray(tensor.view(getattr(torch, same)).numpy()).view(f"u{same}")


class _Simulated:
    """A program compiled for CANN's simulator, and the runtime library that executes it."""

    def __init__(self, program: _Program, request: dict[str, Any]) -> None:
        import tilelang
        from tilelang import tvm
        from tilelang.jit.adapter.libgen import LibraryGenerator

        self.func = program.func
        platform = request["platform"]
        asked = program.named.get("target")
        target = request["target"] or (asked if asked in ("ascendc", "pto") else None)
        target = target or ("pto" if platform == "A5" else "ascendc")
        with tvm.transform.PassContext(opt_level=3, config=program.named.get("pass_configs") or {}):
            artifact = tilelang.lower(self.func, target=target, platform=platform)
        self.params = artifact.params
        self.own = _added(artifact.device_mod)
        generator = LibraryGenerator(target=target, platform=platform)
        generator.update_lib_code(artifact.kernel_source)
        generator.compile_lib()
        self.path = generator.get_lib_path()
        self.folder = Path(request["library"])
        self.runtime: Any = None

    def start(self) -> None:
        """Load the runtime library and the program."""
        if self.runtime is None:
            sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_GLOBAL)
            self.runtime = ctypes.CDLL(str(self.folder / "libruntime_camodel.so"))
            self.check(self.runtime.rtSetDevice(ctypes.c_int32(0)), "rtSetDevice")
            self.library = ctypes.CDLL(self.path)

    def check(self, code: int, what: str) -> None:
        """Raise what the runtime reports."""
        if code != 0:
            raise RuntimeError(f"{what} failed with error {code}")

    def memory(self, array: np.ndarray) -> ctypes.c_void_p:
        """A copy in the memory of the simulated device."""
        pointer = ctypes.c_void_p()
        size = ctypes.c_uint64(max(array.nbytes, 32))
        self.check(self.runtime.rtMalloc(ctypes.byref(pointer), size, 2, ctypes.c_uint16(0)), "rtMalloc")
        self._copy(pointer, ctypes.c_void_p(array.ctypes.data), array.nbytes, 1)
        return pointer

    def read(self, array: np.ndarray, pointer: ctypes.c_void_p) -> None:
        """Copy back into an array."""
        self._copy(ctypes.c_void_p(array.ctypes.data), pointer, array.nbytes, 2)

    def _copy(self, to: ctypes.c_void_p, of: ctypes.c_void_p, size: int, kind: int) -> None:
        if size:
            count = ctypes.c_uint64(size)
            self.check(self.runtime.rtMemcpy(to, count, of, count, ctypes.c_int(kind)), "rtMemcpy")

    def symbols(self, made: set[int], arrays: dict[int, np.ndarray]) -> list[int]:
        """The extents that the program takes as arguments, in the order of ``dynamic_symbolic_map``."""
        from tilelang import tvm

        found: dict[Any, int] = {}
        params = list(self.func.params)
        for number, param in enumerate(params):
            if number in made or param not in self.func.buffer_map:
                continue
            for axis, extent in enumerate(self.func.buffer_map[param].shape):
                if isinstance(extent, tvm.tir.Var) and extent not in params:
                    found.setdefault(extent, arrays[number].shape[axis])
        return list(found.values())


def _added(device_mod: Any) -> list[int]:
    """The numbers of the tensors in global memory that the compiler has added for itself."""
    for _, func in device_mod.functions_items() if device_mod is not None else ():
        if func.attrs is not None and "auto_gm_indices" in func.attrs:
            return [int(item) for item in func.attrs["auto_gm_indices"]]
    return []


def _simulated(kernel: _Simulated, told: dict[str, Any], arrays: Arrays, stage: Stage) -> Arrays:
    """All tensors of a launch after it, by name."""
    kernel.start()
    waiting = list(told["order"])
    pointers: dict[str, Any] = {}
    args: list[Any] = []
    by_number: dict[int, np.ndarray] = {}
    made: set[int] = set()
    for number, param in enumerate(kernel.params):
        if number in kernel.own:
            args.append(kernel.memory(np.zeros([int(d) for d in param.shape], f"u{param.dtype.itemsize}")))
            continue
        name = waiting.pop(0)
        if name not in arrays:
            value = told["scalars"][name]
            args.append(ctypes.c_float(value) if isinstance(value, float) else value)
            continue
        first = told["shared"].get(name, name)
        pointers.setdefault(first, None)
        pointers[first] = pointers[first] or kernel.memory(np.ascontiguousarray(arrays[first]))
        args.append(pointers[first])
        by_number[number] = arrays[name]
        made |= {number} if name not in told["given"] else set()
    args += [ctypes.c_int64(value) for value in kernel.symbols(made, by_number)]
    stream = ctypes.c_void_p()
    kernel.check(kernel.runtime.rtStreamCreate(ctypes.byref(stream), ctypes.c_int32(0)), "rtStreamCreate")
    stage("run", told["number"])
    kernel.library.call(*args, stream)
    kernel.check(kernel.runtime.rtStreamSynchronize(stream), "rtStreamSynchronize")
    results = {}
    for name in arrays:
        results[name] = np.empty_like(np.ascontiguousarray(arrays[name]))
        kernel.read(results[name], pointers[told["shared"].get(name, name)])
    for pointer in pointers.values():
        kernel.runtime.rtFree(pointer)
    kernel.check(kernel.runtime.rtStreamDestroy(stream), "rtStreamDestroy")
    return results
