"""Modules of GPU TileLang, beside ``tilelang`` itself, that scripts import names from."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.dialects.gpu import profiling
from tl2npu.simulator.frontend import language
from tl2npu.simulator.frontend.types import DType, dtype_name
from tl2npu.simulator.ir import expr

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


def extend(found: dict[str, ModuleType], module: Any) -> None:
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
