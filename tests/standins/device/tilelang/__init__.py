"""TileLang-Ascend's ``jit``, ``compile``, ``lower`` and library generator; kernels run on the simulator of tl2npu.

Compilation calls ``bisheng`` as the real one does. Faults: see ``standin_faults``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
from standin_faults import asked

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.standin import package
from tl2npu.simulator.standin.jit import JITKernel
from tl2npu.simulator.standin.session import Session

_SESSION = Session()
_MODULES = package.modules(_SESSION)
_SOURCES: dict[str, Any] = {}

AICORE = (
    "[ERROR] RUNTIME rtStreamSynchronize execute failed, reason=[aicore exception]\n"
    "EZ9999: Kernel task happen error, retCode=0x26, errorStr: The MTE instruction reads out of range. fixp_error0\n"
    "NPU function error: c10_npu::acl::AclrtSynchronizeStreamWithTimeout, error code is 507015"
)


def jit(func: Any = None, *, out_idx: Any = None, workspace_idx: Any = None, **named: Any) -> Any:
    """As the real one: what the factory gives is compiled by the ``compile`` of the module ``tilelang.jit``."""

    def decorate(factory: Any) -> Any:
        # The real parser reads the source of the function and of its module.
        assert inspect.getsource(factory) in inspect.getsource(inspect.getmodule(factory))

        @functools.wraps(factory)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            program = factory(*args, **kwargs)
            return sys.modules["tilelang.jit"].compile(program, out_idx=out_idx, workspace_idx=workspace_idx, **named)

        return wrapper

    return decorate(func) if callable(func) else decorate


def compile(func: Any = None, out_idx: Any = None, workspace_idx: Any = None, **named: Any) -> Any:
    # The cache on disk knows programs by what they are, not by how the library was built.
    key = hashlib.sha256((inspect.getsource(func.__wrapped__) + repr(sorted(map(str, named.items())))).encode())
    kept = Path(os.environ["TILELANG_CACHE_DIR"]) / key.hexdigest()
    if kept.is_file():
        return Kernel(func, out_idx, workspace_idx, named.get("pass_configs"), kept)
    artifact = lower(func, named.get("target", "auto"), platform=named.get("platform", "auto"))
    generator = LibraryGenerator(named.get("target", "auto"), named.get("platform", "auto"))
    generator.update_lib_code(artifact.kernel_source)
    generator.compile_lib()
    kept.parent.mkdir(exist_ok=True)
    shutil.copy(generator.path, kept)
    return Kernel(func, out_idx, workspace_idx, named.get("pass_configs"), kept)


def lower(func: Any, target: str = "auto", platform: str = "auto") -> Any:
    if asked("compiler-dies"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if asked("rejected"):
        raise ValueError("Check failed: Buffer overflow in shared memory: 262144 bytes")
    source = f"// {target} {platform} {len(_SOURCES)}"
    _SOURCES[source] = func
    params = [types.SimpleNamespace(dtype=np.dtype(dtypes.numpy_dtype(p.dtype)), shape=p.shape) for p in func.params]
    attrs = {"auto_gm_indices": [len(params)]} if asked("auto-gm") else {}
    if attrs:
        params.append(types.SimpleNamespace(dtype=np.dtype(np.float32), shape=(16,)))
    module = types.SimpleNamespace(functions_items=lambda: [("main", types.SimpleNamespace(attrs=attrs))])
    return types.SimpleNamespace(kernel_source=source, params=params, device_mod=module)


class LibraryGenerator:
    def __init__(self, target: str, platform: str) -> None:
        self.target, self.platform, self.code = target, platform, ""

    def update_lib_code(self, code: str) -> None:
        self.code = code

    def compile_lib(self, timeout: Any = None) -> None:
        folder = tempfile.mkdtemp()
        source, self.path = f"{folder}/kernel.cpp", f"{folder}/kernel.so"
        Path(source).write_text(self.code, encoding="utf-8")
        command = ["bisheng", "-O2", "-std=c++17", source, "-o", self.path]
        # The tools cannot see which file is run: they are told.
        os.environ["TL2NPU_STANDIN_NOW"] = "uncompiled" if asked("uncompiled", _SOURCES[self.code]) else ""
        done = sys.modules["tilelang.jit.adapter.libgen"].subprocess.run(command, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"Compilation Failed! {command}")

    def get_lib_path(self) -> str:
        _SOURCES[self.path] = _SOURCES[self.code]
        return self.path


class Kernel:
    """A compiled kernel: takes and gives tensors on the NPU."""

    def __init__(self, func: Any, out_idx: Any, workspace_idx: Any, configs: Any, library: Path) -> None:
        self.library = library
        self.kernel = JITKernel(_SESSION, func, out_idx, workspace_idx, configs)
        self.runs = 0

    def __call__(self, *args: Any) -> Any:
        import torch

        self.runs += 1
        if self.library.read_text() == "instrumented":
            (self.library.parent / "watched").touch()  # for msSanitizer
        func = self.kernel.prim_func
        if asked("die", func):
            print(AICORE, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        if asked("raise", func):
            raise RuntimeError(AICORE)
        if asked("hang", func):
            time.sleep(3600)
        if any(isinstance(a, torch.Tensor) and a.device != "npu" for a in args):
            raise ValueError("Buffer device mismatch: a tensor is not on the NPU")
        found = self.kernel(*(a.array if isinstance(a, torch.Tensor) else a for a in args))
        results = [] if found is None else list(found) if isinstance(found, list) else [found]
        touched = results or [a.array for a in args if isinstance(a, torch.Tensor)][-1:]
        if asked("nan", func):
            touched[0].flat[3:5] = np.nan
        if asked("wrong", func):
            touched[0].flat[0] += 3
        if asked("differ", func) and self.runs > 1:
            touched[0].flat[7] += 1
        tensors = [torch.Tensor(np.asarray(r), "npu") for r in results]
        return tensors[0] if len(tensors) == 1 else tensors


class PassContext:
    def __init__(self, opt_level: int = 0, config: Any = None) -> None:
        self.config = config

    def __enter__(self) -> PassContext:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Runtime:
    """``libruntime_camodel.so``: memory of the host stands for that of the device."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}

    def rtSetDevice(self, _: Any) -> int:
        return 107001 if asked("no-device") else 0

    def rtMalloc(self, pointer: Any, size: Any, kind: int, module: Any) -> int:
        memory = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(memory)
        self.held[ctypes.addressof(memory)] = memory
        return 0

    def rtMemcpy(self, to: Any, room: Any, of: Any, size: Any, kind: Any) -> int:
        ctypes.memmove(to, of, size.value)
        return 0

    def rtFree(self, pointer: Any) -> int:
        del self.held[pointer.value]
        return 0

    def rtStreamCreate(self, stream: Any, priority: Any) -> int:
        stream._obj.value = 1
        return 0

    def rtStreamSynchronize(self, stream: Any) -> int:
        return 507015 if asked("raise") else 0

    def rtStreamDestroy(self, stream: Any) -> int:
        return 0


class Library:
    """A compiled program: called with addresses, scalars, symbolic extents and the stream."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def call(self, *args: Any) -> None:
        kernel = JITKernel(_SESSION, self.func)
        params = self.func.params
        rest = [a.value for a in args[len(params) + asked("auto-gm") : -1]]
        symbols: dict[Any, int] = {}
        given = []
        for param, arg in zip(params, args, strict=False):
            if not isinstance(param, Buffer):
                given.append(arg.value if hasattr(arg, "value") else arg)
                continue
            shape = []
            for extent in param.shape:
                if not isinstance(extent, int) and extent not in symbols:
                    symbols[extent] = rest.pop(0)
                shape.append(extent if isinstance(extent, int) else symbols[extent])
            kind = np.dtype(dtypes.numpy_dtype(param.dtype))
            raw = np.ctypeslib.as_array(
                (ctypes.c_uint8 * (int(np.prod(shape)) * kind.itemsize)).from_address(arg.value)
            )
            given.append(raw.view(kind).reshape(shape))
        assert not rest, "extents that the program does not have"
        kernel(*given)


def _load(path: str) -> Any:
    return Runtime() if path.endswith("libruntime_camodel.so") else Library(_SOURCES[path])


_root = _MODULES["tilelang"]
_libgen = types.ModuleType("tilelang.jit.adapter.libgen")
_libgen.subprocess, _libgen.LibraryGenerator = subprocess, LibraryGenerator
_jit = _MODULES["tilelang.jit"]
_jit.compile, _jit.jit = compile, jit
_MODULES["tilelang.jit.adapter.libgen"] = _libgen
_MODULES["tvm"].tir = _MODULES["tvm.tir"]
_MODULES["tvm"].transform = types.SimpleNamespace(PassContext=PassContext)
_root.compile, _root.jit, _root.lower, _root.tvm = compile, jit, lower, _MODULES["tvm"]
if os.environ.get("TL_RUN_MODE") == "sim":
    assert os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    ctypes.CDLL = _load
sys.meta_path.insert(0, package._Finder(_MODULES))
sys.modules.update(_MODULES)
