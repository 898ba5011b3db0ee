"""A stand-in for an installed TileLang-Ascend and its torch: as much as the child of ``--backend compile`` drives.

It has the modules, names and signatures of tile-ai/tilelang-ascend (95acbd7f), reads kernels as text, and does as the
compiler does on these: a line with ``T.tile.lerp`` is rejected by the front end, ``T.exp(`` by the code generator; the
size 4096 does not fit, 65536 kills it in AscendMemoryPlanning; ``while True`` hangs it. Anything else becomes a program
of its words.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "torch/__init__.py": """
import types, sys
class device:
    def __init__(self, name): self.type = str(name)
class Tensor:
    def __init__(self, *shape, dtype=None): self.shape = shape
class _Module: pass
nn = types.SimpleNamespace(Module=_Module)
utils = types.SimpleNamespace(rename_privateuse1_backend=lambda name: None)
testing = types.SimpleNamespace()
cuda = types.SimpleNamespace()
ops = types.SimpleNamespace()
float32 = "float32"
def zeros(*shape, dtype=None, device=None): return Tensor(*shape)
ones = randn = zeros
def set_default_device(name): pass
""",
    "torch/overrides.py": """
class TorchFunctionMode:
    def __enter__(self): return self
""",
    "tvm/__init__.py": """
import types, contextlib
class PrimFunc: pass
class PrimExpr: pass
class IntImm: pass
tir = types.SimpleNamespace(PrimFunc=PrimFunc, PrimExpr=PrimExpr, IntImm=IntImm)
transform = types.SimpleNamespace(PassContext=lambda **kwargs: contextlib.nullcontext())
class IRModule:
    def __init__(self, functions): self.functions = functions
    def functions_items(self): return list(self.functions.items())
class TVMError(RuntimeError): pass
""",
    "tvm/script/__init__.py": "",
    "tvm/script/parser/__init__.py": "",
    "tvm/script/parser/core/__init__.py": "",
    "tvm/script/parser/core/parser.py": """
class Parser:
    def report_error(self, node, error): raise RuntimeError(f"diagnostics, with the text of {error}")
""",
    "tilelang/__init__.py": """
import sys
__version__ = "0.1.4"
class _Keys(type):
    def __getattr__(cls, name):
        if name.startswith("TL_ASCEND"): return name.lower()
        raise AttributeError(name)
class PassConfigKey(metaclass=_Keys): pass
from tilelang import engine, language, profiler, autotuner
from tilelang.engine.lower import lower
from tilelang.jit import jit, compile
from tilelang.autotuner import autotune
def disable_cache(): pass
""",
    "tilelang/autotuner/__init__.py": "def autotune(*args, **kwargs): raise AssertionError('it would measure')\n",
    "tilelang/profiler/__init__.py": "class Profiler: pass\n",
    "tilelang/language/__init__.py": """
from tilelang.language.tir.entry import prim_func
class Tensor:
    def __init__(self, shape, dtype="float32"): self.shape, self.dtype = shape, dtype
""",
    "tilelang/language/ascend_tile.py": "",
    "tilelang/language/tir/__init__.py": "",
    "tilelang/language/tir/entry.py": """
import inspect, types
from tvm import PrimFunc
from tvm.script.parser.core.parser import Parser
def parse(func, captured, check_well_formed=True):
    lines, start = inspect.getsourcelines(func)
    parser = Parser()
    parser.diag = types.SimpleNamespace(
        source=types.SimpleNamespace(start_line=start, source_name=inspect.getsourcefile(func))
    )
    for number, line in enumerate(lines, 1):
        if "T.tile.lerp" in line:
            error = AttributeError("module 'tilelang.language.ascend_tile' has no attribute 'lerp'")
            parser.report_error(types.SimpleNamespace(lineno=number), error)
    found = PrimFunc()
    found.text = "".join(lines)
    found.sizes = list(inspect.getclosurevars(func).nonlocals.values())
    found.params = list(func.__annotations__.values())
    found.buffer_map = {}
    found.attrs = {"global_symbol": func.__name__}
    return found
def prim_func(func):
    return parse(func, {}, check_well_formed=True)
""",
    "tilelang/engine/__init__.py": "",
    "tilelang/engine/param.py": """
class CompiledArtifact:
    def __init__(self, host_mod, device_mod, params, kernel_source):
        self.host_mod, self.device_mod, self.params, self.kernel_source = host_mod, device_mod, params, kernel_source
""",
    "tilelang/engine/lower.py": """
import re
from tvm import IRModule
from tilelang.engine.param import CompiledArtifact
from tilelang.engine.phase import OptimizeForTarget
def extrac_params(func): return func.params
def lower(func, target="auto", target_host=None, platform="auto", **kwargs):
    mod = OptimizeForTarget(IRModule({"main": func}), target, platform)
    words = re.sub(r"#.*", "", func.text).split()
    body = f"// {target} {platform}\\n" + "\\n".join(words)
    text = 'extern "C" __global__ __aicore__ void ' + func.attrs["global_symbol"] + "_kernel(" + body
    return CompiledArtifact(None, mod, func.params, text)
""",
    "tilelang/passes.py": """
import os, signal
from tvm import TVMError
def _plan(mod):
    text = mod.functions_items()[0][1].text
    if 65536 in mod.functions_items()[0][1].sizes: os.kill(os.getpid(), signal.SIGSEGV)
    if 4096 in mod.functions_items()[0][1].sizes:
        raise TVMError("Memory allocation failed for: x required: 524288, new memory available: 196352")
    while "while True" in text: pass
    if "T.exp(" in text: raise TVMError("InternalError: Check failed: Unresolved call Op(tir.exp)")
    return mod
""",
    "tilelang/engine/phase.py": """
import types
from tilelang.passes import _plan
transform = types.SimpleNamespace(AscendMemoryPlanning=lambda: _plan)
def OptimizeForTarget(mod, target, platform):
    mod = transform.AscendMemoryPlanning()(mod)
    return mod
""",
    "tilelang/jit/__init__.py": """
import functools
from tilelang.jit.kernel import JITKernel
def compile(func, out_idx=None, workspace_idx=None, target="auto", platform="auto", pass_configs=None):
    return JITKernel(func, out_idx, workspace_idx, target, platform, pass_configs)
class _JitImplementation:
    def __init__(self, **options): self.options = options
    def __call__(self, func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs): return compile(func(*args, **kwargs), **self.options)
        return wrapper
def jit(func=None, **options):
    return _JitImplementation(**options)(func) if func else _JitImplementation(**options)
""",
    "tilelang/jit/kernel.py": """
class JITKernel:
    def __init__(self, func, out_idx, workspace_idx, target, platform, pass_configs):
        self.target, self.platform = target, "A3" if platform == "auto" else platform
        self.pass_configs = pass_configs
        self.adapter = self._compile_and_create_adapter(func, out_idx, workspace_idx)
    def __call__(self, *args): return self.adapter.func(*args)
""",
    "tilelang/jit/adapter/__init__.py": """
from tilelang.jit.adapter.libgen import LibraryGenerator
from cython_wrapper import CythonKernelWrapper
class CythonKernelAdapter:
    def __init__(self, params, result_idx, workspace_idx, auto_gm_idx, target, platform, func_or_mod, host_mod,
                 device_mod, kernel_global_source, verbose, pass_configs):
        count = len(params)
        self.result_idx = [i % count for i in ([result_idx] if isinstance(result_idx, int) else result_idx or [])]
        self.workspace_idx, self.auto_gm_idx = list(workspace_idx or []), []
        self.wrapped_source = kernel_global_source
        self.lib_generator = LibraryGenerator(target, platform)
        self.lib_generator.lib_code = kernel_global_source
        self.lib_generator.compile_lib()
        self.lib_generator.load_lib()
        self.cython_wrapper = CythonKernelWrapper(self.result_idx, self.workspace_idx, [], params, None)
    def _process_dynamic_symbolic(self): return {}
""",
    "tilelang/jit/adapter/libgen.py": """
import subprocess, tempfile
class LibraryGenerator:
    def __init__(self, target, platform): self.target, self.platform = target, platform
    def load_lib(self, lib_path=None): raise OSError("no library of a device here")
    def compile_lib(self, timeout=None):
        with tempfile.NamedTemporaryFile(mode="w", suffix=".cpp", delete=False) as src: src.write(self.lib_code)
        command = ["bisheng", "--npu-arch=dav-2201", "-O2", "-xasc", src.name, "-o", src.name.replace(".cpp", ".so")]
        if subprocess.run(command).returncode != 0: raise RuntimeError(f"Compilation Failed! {command}")
""",
}


NPUIR = {
    "tilelang/tladapter/__init__.py": "raise RuntimeError('Cannot find libraries: tilelangir')\n",
    "tilelang/language/customize_npuir.py": "",
    "tilelang/engine/lower.py": """
from tvm import IRModule
from tilelang.tladapter import transforms
from tilelang.tladapter.utils import Pipeline
from tilelang.engine.phase import OptimizeForTarget
def extrac_params(func): return func.params
def device_codegen(module, target): raise AssertionError("it needs MLIR")
def lower(func, target="auto"):
    mod = OptimizeForTarget(IRModule({"main": func}), target, None)
    mod.script = lambda: "# " + func.text
    text = device_codegen(mod, target).get_source()
    pipeline = Pipeline()
    pipeline.add(transforms.mlir.canonicalize, top_down=True)
    return pipeline.run(text)
""",
    "tilelang/jit/jit_npu.py": """
from tilelang.engine.lower import lower
def _symbolic_var_promoter_pass(func): return func, {}
""",
    "tilelang/jit/kernel.py": "raise AssertionError('of the other branch')\n",
    "tilelang/jit/__init__.py": """
import functools
def cached_npu(func=None, out_idx=None, target="npuir", pass_configs=None): raise AssertionError("it would compile")
def compile(func, out_idx=None, target="npuir", pass_configs=None):
    return cached_npu(func=func, out_idx=out_idx, target=target, pass_configs=pass_configs)
class _JitImplementation:
    def __init__(self, **options): self.options = options
    def __call__(self, func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs): return compile(func(*args, **kwargs), **self.options)
        return wrapper
def jit(func=None, **options): return _JitImplementation(**options)
""",
}
"""What branch npuir has in their place: no MLIR is built, and kernels are compiled by a function of their own."""


def bisheng(folder: Path, code: int) -> str:
    """Put a ``bisheng`` that ends with ``code`` into a folder, which goes on ``PATH``; it logs its arguments there."""
    tool = folder / "bisheng"
    tool.parent.mkdir(exist_ok=True)
    said = "k.cpp:7:3: error: no member named Foo"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {folder}/log; echo "{said}"; exit {code}\n', encoding="utf-8")
    tool.chmod(0o755)
    return str(folder)


def write(folder: Path, npuir: bool = False) -> Path:
    """Write the packages below a folder, which goes on ``PYTHONPATH``."""
    files = {**FILES, **NPUIR} if npuir else FILES
    for path, text in files.items():
        if npuir and path.endswith("ascend_tile.py"):
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
