"""Types: tensors as parameters, and the data types, which convert when called."""

from __future__ import annotations

from tl2npu.dialects.tables import table

_TENSOR = (
    "shape dtype='float32' <data=None strides=None elem_offset=None scope={scope} align={zero} offset_factor={zero}"
    " buffer_type='' axis_separators=None"
)
_PARAMETER, _OLD = _TENSOR.format(scope=None, zero=None), _TENSOR.format(scope="'global'", zero=0)

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_ELEMENTS = (*_INTEGERS, "float16", "float32", "float64", "e4m3_float8", "e5m2_float8")
_VECTORS = tuple(f"{name}{lanes}" for lanes in ("x4", "x8", "x16", "x32", "x64") for name in _ELEMENTS)

OPERATORS = table(f"""
[type] tilelang/language/proxy.py
Tensor: {_PARAMETER} # a tensor in global memory, as a parameter's annotation
Buffer: {_OLD} # the old name of Tensor; in this version hidden by TVM's own class
[type nowhere] tilelang/language/proxy.py
FragmentBuffer: {_PARAMETER} # GPU only: scope local.fragment
SharedBuffer: {_PARAMETER} # GPU only: scope shared.dyn
LocalBuffer: {_PARAMETER} # GPU only: scope local
[system] tilelang/language/proxy.py
make_tensor: ptr shape dtype='float32' # a tensor at an address
[scalar] tvm:script/ir_builder/tir/ir.py # a data type; called, it converts an expression
{" ".join(_ELEMENTS)}: expr=None * is_size_var=False
[scalar nowhere] tvm:script/ir_builder/tir/ir.py # a data type; called, it converts an expression
{" ".join(_VECTORS)}: expr=None * is_size_var=False
""")
