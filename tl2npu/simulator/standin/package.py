"""Puts the stand-in modules where ``import`` finds them."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tl2npu.devices import A2, A3, A5
from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.dialects.gpu import profiling
from tl2npu.dialects.pass_configs import STRING_OF
from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.frontend import language, types
from tl2npu.simulator.frontend.types import DType, dtype_name
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.standin import jit, profiler, testing, tuning
from tl2npu.simulator.standin.inert import Inert
from tl2npu.simulator.standin.latency import UNMEASURED
from tl2npu.simulator.standin.session import Session

FALLBACK = "A3"


def determine_platform(platform: str = "auto", *_: Any) -> str:
    """The platform as given, of the environment's ``TL_PLATFORM``, or of the part that ``torch.npu`` names; else A3."""
    if platform != "auto":
        return platform
    if os.environ.get("TL_PLATFORM"):
        return os.environ["TL_PLATFORM"]
    npu = getattr(sys.modules.get("torch"), "npu", None)
    if npu is None or not npu.is_available():
        return FALLBACK
    name = str(npu.get_device_properties(npu.current_device()).name).upper()
    found = [(len(chip), device.name) for device in (A2, A3, A5) for chip in device.chips if chip.upper() in name]
    return max(found)[1] if found else FALLBACK


class NPUUtils:
    """``tilelang.utils.NPUUtils`` of the npuir branch: what scripts ask of the device, a 910B."""

    @classmethod
    def get(cls) -> NPUUtils:
        """The one there is."""
        return cls()

    def get_aicore_num(self) -> int:
        """Cube cores."""
        return A2.cube_cores or 1

    get_aicube_core_num = get_aicore_num

    def get_aivector_core_num(self) -> int:
        """Vector cores."""
        return self.get_aicore_num() * A2.vector_cores_per_cube

    def get_arch(self) -> str:
        """The name of the part."""
        return "Ascend910B"


class _Meta(type):
    def __getattr__(cls, name: str) -> _Key:
        if name.startswith("__"):
            raise AttributeError(name)
        plain = name.lower()
        dotted = plain.replace("npuir_", "npuir.", 1) if plain.startswith("npuir_") else plain.replace("tl_", "tl.", 1)
        return _Key(STRING_OF.get(name, dotted))

    def __getitem__(cls, name: str) -> _Key:
        return cls.__getattr__(name)


class _Key(str):
    """A key; ``.value`` is the string, as in an enumeration."""

    value = property(str)


class PassConfigKey(metaclass=_Meta):
    """See the module."""


ROOTS = ("tilelang", "tvm")
"""Packages that are replaced; ``torch_npu`` is added by the torch redirection."""


class _Anything(ModuleType):
    """A module of which every name exists; names that mean something are set, the rest are inert."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Inert(f"{self.__name__}.{name}")


class _Inert(Inert):
    """A name of the real package that means nothing here: it may be imported, called and asked for more names.

    Raises:
        UnsupportedOperator: a call of it is given a buffer of a kernel. What it does to the buffer is not known, and to
            do nothing would give wrong numbers. Layouts may be made of buffers: they say where elements lie, not what
            they are.
    """

    def __call__(self, *args: Any, **named: Any) -> Any:
        if "layout" not in self.__name__.rpartition(".")[2] and any(map(_of_a_kernel, (*args, *named.values()))):
            raise UnsupportedOperator(f"{self.__name__} is called with a buffer: it has no meaning in the simulator")
        return super().__call__(*args, **named)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self.__name__} is nothing in the simulator, and cannot be gone through")

    def __repr__(self) -> str:
        return f"<{self.__name__}: nothing in the simulator>"


def _of_a_kernel(value: Any) -> bool:
    """Whether a value is a buffer of a kernel, a part of one or an element of one."""
    return isinstance(value, (Buffer, Region, expr.Load))


class _Language(ModuleType):
    """``tilelang.language``."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        return language.lookup(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module under the replaced packages."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".")[0] in ROOTS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        if spec.name not in self.modules:
            self.modules[spec.name] = _Anything(spec.name)
        return self.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def modules(session: Session) -> dict[str, ModuleType]:
    """The modules that have contents."""
    root = _Anything("tilelang")
    root.jit = jit.make_jit(session)  # type: ignore[attr-defined]
    root.lazy_jit = root.jit  # type: ignore[attr-defined]
    root.compile = jit.compile_(session)  # type: ignore[attr-defined]
    root.JITKernel = jit.kernel_class(session)  # type: ignore[attr-defined]
    root.cached = jit.compile_(session, "cached")  # type: ignore[attr-defined]
    root.DataType = root.dtype = types.DType  # type: ignore[attr-defined]
    root.PassConfigKey = PassConfigKey  # type: ignore[attr-defined]
    root.cdiv = lambda a, b: expr.call("ceildiv", a, b)  # type: ignore[attr-defined]
    root.DataType = types.DType  # type: ignore[attr-defined]
    root.next_power_of_2 = lambda n: 1 << (int(n) - 1).bit_length()  # type: ignore[attr-defined]
    root.disable_cache = root.enable_cache = root.set_log_level = lambda *_, **__: None  # type: ignore[attr-defined]
    root.__version__ = "0.0+tl2npu.simulator"  # type: ignore[attr-defined]
    root.language = _Language("tilelang.language")  # type: ignore[attr-defined]
    found = {"tilelang": root, "tilelang.language": root.language}
    found["tilelang.jit"] = _callable_module(
        "tilelang.jit", root.jit, {"jit": root.jit, "compile": root.compile, "JITKernel": root.JITKernel}
    )
    found["tilelang.cache"] = _module("tilelang.cache", {"cached": root.cached, "cached_npu": root.cached})
    tuners = {"autotune": tuning.autotune, "AutoTuner": tuning.AutoTuner}
    found["tilelang.autotuner"] = _module("tilelang.autotuner", tuners)
    root.autotune = tuning.autotune  # type: ignore[attr-defined]
    templates = ("Matmul", "GEMV", "Elementwise", "GeneralReduction", "Flashattention", "FlashAttention", "Convolution")
    found["tilelang.carver"] = _module("tilelang.carver", {f"{n}Template": tuning.Template for n in templates})
    found["tilelang.engine"] = _module("tilelang.engine", {"lower": root.compile})
    root.lower = root.compile  # type: ignore[attr-defined]
    found["tilelang.utils.target"] = _module("tilelang.utils.target", {"determine_platform": determine_platform})
    marks = ("requires_cuda", "requires_npu", "requires_rocm", "requires_package", "requires_llvm")
    found["tilelang.testing"] = _module(
        "tilelang.testing",
        {
            **dict.fromkeys(marks, testing.same),
            **{f"requires_cuda_compute_version{n}": testing.same for n in ("", "_ge", "_gt", "_le", "_lt", "_eq")},
            **{n: getattr(testing, n) for n in ("main", "set_random_seed", "torch_assert_close")},
        },
    )
    close = {"torch_assert_close": testing.torch_assert_close}
    found["tilelang.utils.tensor"] = _module("tilelang.utils.tensor", close)
    found["tilelang.profiler"] = _module(
        "tilelang.profiler",
        {"do_bench": lambda function, *_, **__: (function(), UNMEASURED)[1], "Profiler": profiler.Profiler},
    )
    utilities = {"determine_platform": determine_platform, "NPUUtils": NPUUtils}
    found["tilelang.utils"] = _module("tilelang.utils", utilities)
    found["tilelang.utils.npu_utils"] = _module("tilelang.utils.npu_utils", {"NPUUtils": NPUUtils})
    found["tilelang.math"] = _module("tilelang.math", {"next_power_of_2": root.next_power_of_2, "cdiv": root.cdiv})
    found["tvm"] = _module("tvm", {"DataType": types.DType})
    found["tvm.tir"] = _module(
        "tvm.tir",
        {
            **{n: language.lookup(n) for n in ("if_then_else", "max", "min", "ceildiv", "floordiv", "floormod")},
            "Var": expr.Var,
            "PrimExpr": expr.Expr,
            "any": _any,
            "all": _all,
        },
    )
    _extend(found, _module)
    for name, module in found.items():
        outer, _, inner = name.rpartition(".")
        if outer:
            setattr(found[outer], inner, module)
    return found


def _any(*values: Any) -> Any:
    result: Any = False
    for value in values:
        result = expr.binary("or", result, value)
    return result


def _all(*values: Any) -> Any:
    result: Any = True
    for value in values:
        result = expr.binary("and", result, value)
    return result


def _module(name: str, contents: dict[str, Any]) -> ModuleType:
    module = _Anything(name)
    for key, value in contents.items():
        setattr(module, key, value)
    return module


def _callable_module(name: str, call: Any, contents: dict[str, Any]) -> ModuleType:
    """``tilelang.jit`` is a module and a decorator."""

    class Callable(_Anything):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

    module = Callable(name)
    for key, value in contents.items():
        setattr(module, key, value)
    return module


@contextmanager
def installed(session: Session) -> Iterator[None]:
    """``import tilelang`` gives the stand-in inside of the context."""
    from tl2npu.simulator.standin.torch_redirect import redirected

    hidden = {n: sys.modules[n] for n in _installed_now()}
    for name in hidden:
        del sys.modules[name]
    finder = _Finder(modules(session))
    sys.meta_path.insert(0, finder)
    try:
        with redirected():
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in _installed_now():
            del sys.modules[name]
        sys.modules.update(hidden)


def _installed_now() -> list[str]:
    return [n for n in sys.modules if n.startswith(ROOTS) and n.split(".")[0] in ROOTS]


# Modules of GPU TileLang, beside ``tilelang`` itself, that scripts import names from.

_SCALARS = (
    *FUNCTIONS,
    *("if_then_else", "max", "min", "ceildiv", "floordiv", "floormod", "truncdiv", "truncmod", "reinterpret", "likely"),
    *("Select", "Cast", "pow", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "popcount"),
    *("infinity", "max_value", "min_value", "isnan", "isinf"),
)


def scalars() -> dict[str, Any]:
    """Names of ``tvm.tir`` (``tvm.tirx``) that build expressions."""
    found = {name: language.NAMES[name] for name in _SCALARS if name in language.NAMES}
    found |= {"const": const, "IntImm": _immediate, "FloatImm": _immediate, "Var": expr.Var, "PrimExpr": expr.Expr}
    return found


def const(value: Any, dtype: Any = None, span: Any = None) -> Any:
    """``tir.const(value, dtype)``."""
    return value if dtype is None else expr.cast(dtype_name(dtype), value)


def _immediate(dtype: Any, value: Any, span: Any = None) -> Any:
    return const(value, dtype)


def determine_fp8_type(fp8_format: str = "e4m3") -> DType:
    """The 8-bit float of an NVIDIA GPU."""
    return DType("float8_e4m3fn" if fp8_format == "e4m3" else "float8_e5m2")


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The same as a type of torch."""
    return determine_fp8_type(fp8_format).as_torch()


def _nothing(*_: Any, **__: Any) -> None:
    """An event of a profiler."""


def _output_path(name: str, *, directory: str | None = None) -> Path:
    """A path in the folder for traces, which exists from then on."""
    folder = Path(directory or ".")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


class _Capability:
    """What a script asks of the device: an H100."""

    sm_version = 90
    major = 9
    minor = 0
    compute_max_core = 132
    smem_cap = 233472
    reg_cap = 65536
    multi_processor_count = 132
    platform = "CUDA"
    name = "sm_90"

    def __init__(self, *_: Any, **__: Any) -> None: ...


def _extend(found: dict[str, ModuleType], module: Any) -> None:
    """Adds the modules; ``module(name, contents)`` makes one."""
    found["tilelang"].__file__ = "<tl2npu simulator>"
    tir = found["tvm.tir"]
    for name, value in scalars().items():
        setattr(tir, name, value)
    found["tvm.tirx"] = tir
    found["tilelang.tvm"] = found["tvm"]
    found |= {name: module(name, {}) for name in ("tilelang.tools", "tilelang.tools.cuda")}
    found[profiling.MODULE] = module(
        profiling.MODULE,
        {
            **dict.fromkeys(("mark", "payload", *(n.rpartition(".")[2] for n in profiling.EVENTS)), _nothing),
            "output_path": _output_path,
            "trace_files": lambda **_: [],
        },
    )
    found["tilelang.language.fp8"] = module(
        "tilelang.language.fp8",
        {"determine_fp8_type": determine_fp8_type, "determine_torch_fp8_type": determine_torch_fp8_type},
    )
    driver = module(
        "tilelang.carver.arch.driver",
        {
            "get_num_sms": lambda *_: _Capability.compute_max_core,
            "get_cuda_device_properties": lambda *_: _Capability(),
        },
    )
    found["tilelang.carver.arch.driver"] = driver
    arch = {"CUDA": _Capability, "CDNA": type("CDNA", (), {}), "driver": driver}
    found["tilelang.carver.arch"] = module("tilelang.carver.arch", arch)
