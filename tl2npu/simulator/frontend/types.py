"""Element types and tensor types as kernels write them: ``T.float16``, ``"float"``, ``T.Tensor((M, K), dtype)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir import dtypes, expr
from tl2npu.simulator.ir.buffer import Buffer, Region, product


def _canonical(name: str) -> str:
    try:
        return dtypes.canonical(str(name))
    except TypeError:
        return str(name)


class DType(str):
    """An element type that can be called, compared with strings, and asked for its size."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """``T.uint`` is ``T.uint32``; a name that is no element type equals only itself."""
        if not isinstance(other, str):
            return NotImplemented
        return str.__eq__(_canonical(self), _canonical(other))

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __hash__(self) -> int:
        return str.__hash__(_canonical(self))

    def __call__(self, value: Any = 0, *_: Any) -> Any:
        """A value of this type."""
        return expr.cast(self, value)

    @property
    def name(self) -> str:
        """The canonical name."""
        return dtypes.canonical(str(self))

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return dtypes.bits(self.name)

    @property
    def bytes(self) -> int:
        """Bytes of one element, at least 1."""
        return max(self.bits // 8, 1)

    itemsize = bytes

    @property
    def type_code(self) -> int:
        """TVM's class of a type: 0 int, 1 uint, 2 float."""
        return 2 if dtypes.is_float(self.name) else 1 if self.name.startswith("uint") else 0

    @property
    def lanes(self) -> int:
        """Always 1: no vector types."""
        return 1

    def as_torch(self) -> Any:
        """The type in torch."""
        import torch

        return getattr(torch, self.name)


def dtype_name(value: Any) -> str:
    """The canonical name of anything that names an element type: a string, ``T.float16``, a torch or NumPy type."""
    if isinstance(value, str):
        return dtypes.canonical(str(value))
    if isinstance(value, type) and value in (int, float, bool):
        return {int: "int32", float: "float32", bool: "bool"}[value]
    if type(value).__name__ == "OperatorName":  # a name of the language that is no type here: T.ptr, T.float16x2
        raise TypeError(f"T.{value.__name__} is not an element type that the simulator has")
    text = str(getattr(value, "name", None) or value)
    return dtypes.canonical(text)


@dataclass(frozen=True)
class TensorSpec:
    """The annotation of a tensor parameter."""

    shape: tuple[Any, ...]
    dtype: str
    memory: str = "global"
    strides: tuple[Any, ...] | None = None


def view(buffer: Any, shape: Any = None, dtype: Any = None) -> Buffer:
    """``T.view`` and ``T.reshape``: the same memory with another shape or element type."""
    dims = buffer.shape if shape is None else tuple(expr.plain(d) for d in shape)
    name = buffer.dtype if dtype is None else dtype_name(dtype)
    source = buffer.buffer if isinstance(buffer, Region) else buffer
    total, new = expr.plain(product(source.shape)), expr.plain(product(dims))
    known = isinstance(total, int) and isinstance(new, int)
    if known and total * dtypes.bits(source.dtype) != new * dtypes.bits(name):
        raise TraceError(f"a view of {source} as {list(dims)} {name} has another size", Builder.current().here())
    return Buffer("?", dims, name, source.memory, alias=source)


class _Spec:
    """``T.Tensor(shape, dtype)`` and ``T.Tensor[shape, dtype]``."""

    def __init__(self, memory: str, strided: bool = False) -> None:
        self.memory = memory
        self.strided = strided

    def __call__(
        self, shape: Any = (), *args: Any, dtype: Any = None, data: Any = None, strides: Any = None, **_: Any
    ) -> Any:
        rest = list(args)
        if self.strided and strides is None and rest and isinstance(rest[0], (tuple, list)):
            strides = rest.pop(0)
        if dtype is None:
            dtype = rest.pop(0) if rest else "float32"
        data = rest[0] if rest else data
        if isinstance(data, Buffer):  # another shape of that tensor's memory
            return view(data, shape, dtype)
        dims = tuple(expr.plain(d) for d in shape) if isinstance(shape, (tuple, list)) else (expr.plain(shape),)
        return TensorSpec(dims, dtype_name(dtype), self.memory, strides and tuple(strides))

    def __getitem__(self, key: Any) -> Any:
        return self(*key) if isinstance(key, tuple) else self(key)


TENSOR = _Spec("global")
STRIDED = _Spec("global", strided=True)
SHARED = _Spec("shared")
FRAGMENT = _Spec("fragment")
LOCAL = _Spec("local")

NAMES = (
    *(f"{kind}{width}" for kind in ("int", "uint") for width in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "bool", "int4", "uint4"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float4_e2m1fn", "half", "float", "int", "uint", "double", "short", "long", "char", "tfloat32"),
)
"""The element types that ``tilelang.language`` has as names."""
