"""The values that the reader computes with, beside Python's own numbers, strings, None and tuples."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tl2npu.kernel.symbolic import Sym, const
from tl2npu.tile.expr import Const, Expr, Index

Shape = tuple[Sym, ...]


@dataclass(frozen=True)
class Tile:
    """A tile, or a scalar, whose shape is empty: the value of each element, by the axis variables."""

    shape: Shape
    expr: Expr

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.expr.dtype

    @property
    def integer(self) -> Sym | None:
        """The integer that the element's place decides, if it is one."""
        if isinstance(self.expr, Index):
            return self.expr.value
        if isinstance(self.expr, Const) and isinstance(self.expr.value, int) and not isinstance(self.expr.value, bool):
            return const(self.expr.value)
        return None


@dataclass(frozen=True)
class Pointer:
    """Pointers into the memory of a parameter: ``offset`` elements behind its start."""

    param: str
    offset: Sym
    shape: Shape


@dataclass(frozen=True)
class BlockPointer:
    """``tl.make_block_ptr``: a block at ``offsets`` of a tensor at ``base`` with ``shape`` and ``strides``.

    ``described``: a tensor descriptor. Its loads and stores say where the block is, and keep to the shape.
    """

    base: Pointer
    shape: Shape
    strides: Shape
    offsets: Shape
    block: Shape
    described: bool = False


@dataclass(frozen=True)
class Local:
    """Memory on the chip that the kernel allocates: a tile of the IR, or the part of it from ``start`` on.

    ``shape``: its extents; ``order``: its axes in the order in which they lie in memory; ``site``: the allocation.
    """

    name: str
    shape: Shape
    dtype: str
    start: Shape
    order: tuple[int, ...]
    site: tuple[int, int]


@dataclass(frozen=True)
class LocalPointer:
    """Pointers to elements of memory on the chip: for each pointer, its place along each axis of the memory."""

    local: Local
    index: Shape
    shape: Shape


@dataclass(frozen=True)
class DType:
    """An element type, by its name in TileLang. ``exact``: False for an index, of which the bits are not known."""

    name: str
    exact: bool = field(default=True, compare=False)

    def asked(self, question: str) -> bool | int | None:
        """What a method or property of ``tl.dtype`` says; None if that is not known.

        Source: triton-lang/triton 3.8, ``python/triton/language/core.py``; a bool is unsigned there.
        """
        own = _OWN_NAMES.get(self.name, "")
        floating, bits = own.startswith(("fp", "bf")), own.lstrip("fpbuint")
        found: dict[str, bool | int] = dict.fromkeys(("is_floating", "is_standard_floating"), floating)
        found["is_int"] = not floating
        if self.exact:
            signed = own.startswith("int") and own != "int1"
            found |= {f"is_{name}": name == own for name in _OWN_NAMES.values()}
            found |= {"is_int_signed": signed, "is_int_unsigned": not signed and not floating}
            found |= {"primitive_bitwidth": int(bits or 0)} if own != "int1" else {"is_bool": True}
        return found.get(question) if own else None


_OWN_NAMES = {f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)} | {"bfloat16": "bf16", "bool": "int1"}
_OWN_NAMES |= {name: name for bits in (8, 16, 32, 64) for name in (f"int{bits}", f"uint{bits}")}
"""Element types by their names in TileLang -> ``tl.dtype.name``."""


@dataclass(frozen=True)
class Function:
    """A device function of the file; of the module ``source`` (:class:`tl2npu.triton.read.spec.Source`), if that is
    another one."""

    node: ast.FunctionDef
    source: object = None


@dataclass(frozen=True)
class Name:
    """A name of Triton, such as ``triton.language.load``."""

    path: str


@dataclass(frozen=True)
class Method:
    """A method of a value that was not called yet."""

    owner: Value
    name: str


@dataclass(frozen=True)
class Unusable:
    """A name whose value depends on the way that was taken: behind the ``if`` at ``place``, if that is why."""

    why: str
    place: tuple[int, int] | None = None


class Extension:
    """A value that only an extension of Triton has, such as a buffer on the chip."""


Value = (
    Tile
    | Pointer
    | BlockPointer
    | Local
    | LocalPointer
    | DType
    | Function
    | Name
    | Method
    | Unusable
    | Extension
    | int
    | float
    | bool
    | str
    | None
    | tuple["Value", ...]
)


def integer(value: object) -> Sym | None:
    """The scalar integer that a value is; None for anything else."""
    if isinstance(value, bool):
        return const(int(value))
    if isinstance(value, int):
        return const(value)
    if isinstance(value, Tile) and not value.shape:
        return value.integer
    return None
