"""Types: tensors as parameters, and the data types, which convert when called."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import BOTH_MODES, NO_MODE, mode, operator, plain, read, scalar, shape
from tl2npu.dialects.catalogue import Core, Kind, Operator

_PROXY = "tilelang/language/proxy.py"
_BUILDER = "tvm:script/ir_builder/tir/ir.py"


def _tensor(name: str, modes: frozenset[str], note: str, scope: str = "None") -> Operator:
    default = "None" if scope == "None" else "0"
    return operator(
        name,
        Kind.TYPE,
        shape("shape"),
        mode("dtype", "'float32'"),
        read("data", "None"),
        shape("strides", "None"),
        scalar("elem_offset", "None"),
        mode("scope", scope),
        scalar("align", default),
        scalar("offset_factor", default),
        mode("buffer_type", "''"),
        shape("axis_separators", "None"),
        core=Core.NONE,
        modes=modes,
        defined=f"{_PROXY}:{name}",
        note=note,
    )


def _dtype(name: str) -> Operator:
    return operator(
        name,
        Kind.SCALAR,
        *plain("expr=None * is_size_var=False"),
        core=Core.NONE,
        modes=BOTH_MODES if "x" not in name else NO_MODE,
        defined=f"{_BUILDER}:{name}",
        note="a data type; called, it converts an expression",
    )


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float16", "float32", "float64", "e4m3_float8", "e5m2_float8")
_LANES = ("", "x4", "x8", "x16", "x32", "x64")

OPERATORS = (
    _tensor("Tensor", BOTH_MODES, "a tensor in global memory, as a parameter's annotation"),
    _tensor("Buffer", BOTH_MODES, "the old name of Tensor; in this version hidden by TVM's own class", "'global'"),
    _tensor("FragmentBuffer", NO_MODE, "GPU only: scope local.fragment"),
    _tensor("SharedBuffer", NO_MODE, "GPU only: scope shared.dyn"),
    _tensor("LocalBuffer", NO_MODE, "GPU only: scope local"),
    operator(
        "make_tensor",
        Kind.SYSTEM,
        scalar("ptr"),
        shape("shape"),
        mode("dtype", "'float32'"),
        core=Core.NONE,
        defined=f"{_PROXY}:make_tensor",
        note="a tensor at an address",
    ),
    *(_dtype(f"{name}{lanes}") for lanes in _LANES for name in (*_INTEGERS, *_FLOATS)),
)
