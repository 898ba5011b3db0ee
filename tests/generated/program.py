"""Programs of the generator: what a kernel computes, as a value that can be printed, executed and reduced.

A program is independent of the language that it is printed in, and of tl2npu. Sizes are names (``M``, ``BM``) with
values in :attr:`Program.sizes`, so that a program can be made smaller without a change of its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Const:
    """A Python number: its element type is that of what it meets."""

    value: int | float


@dataclass(frozen=True)
class Name:
    """A size, a variable of a loop or block, or a value that a :class:`Let` gave."""

    name: str


@dataclass(frozen=True)
class Ref:
    """An element of a tile or of a tensor."""

    buffer: str
    index: tuple[Expr, ...]


@dataclass(frozen=True)
class Bin:
    """``+ - * / // % & | ^ << >>``, ``min``, ``max``; ``< <= > >= == !=``; ``and``, ``or``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Un:
    """``neg``, ``not``, or a function of one number: ``exp``, ``abs``, ``sqrt``, ..."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Select:
    """The one or the other; only what is chosen is evaluated."""

    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Cast:
    """A conversion to another element type."""

    dtype: str
    operand: Expr


Expr: TypeAlias = "Const | Name | Ref | Bin | Un | Select | Cast"


@dataclass(frozen=True)
class Region:
    """A box of a tile or tensor: for each axis where it begins and how long it is; ``None`` for one index."""

    buffer: str
    starts: tuple[Expr, ...]
    lengths: tuple[Expr | None, ...]


@dataclass(frozen=True)
class Copy:
    """Converts to the type of ``target``. What is read behind the end of a tensor is 0; nothing is written there."""

    source: Region
    target: Region


@dataclass(frozen=True)
class Fill:
    """``value`` everywhere in a tile, or in a part of it."""

    target: Region
    value: int | float


@dataclass(frozen=True)
class Reduce:
    """``sum``, ``max``, ``min``, ``absmax``, ``abssum`` over an axis. Without ``clear`` the target's value counts."""

    kind: str
    source: str
    target: str
    axis: int
    clear: bool = True


@dataclass(frozen=True)
class Gemm:
    """``c += a @ b``, each of them transposed where it says so; ``clear``: ``c = a @ b``."""

    a: str
    b: str
    c: str
    transpose_a: bool = False
    transpose_b: bool = False
    clear: bool = False


@dataclass(frozen=True)
class Assign:
    """``target = value`` of an element, or ``target op= value``."""

    target: Ref
    value: Expr
    op: str = ""


@dataclass(frozen=True)
class Let:
    """A name for a value, of each iteration where it stands in a loop."""

    name: str
    value: Expr


@dataclass(frozen=True)
class If:
    """Within :class:`Parallel` for each element, elsewhere for the whole block."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class For:
    """``kind``: ``serial``, ``range``, ``unroll``, ``Pipelined``; ``extent`` turns."""

    var: str
    extent: Expr
    kind: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Parallel:
    """All iterations at once: each statement reads in all of them before it writes in any."""

    vars: tuple[str, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Macro:
    """Statements that are printed as a macro of this name, and called here with what they use."""

    name: str
    body: tuple[Stmt, ...]


Stmt: TypeAlias = "Copy | Fill | Reduce | Gemm | Assign | Let | If | For | Parallel | Macro"


@dataclass(frozen=True)
class Buffer:
    """A tensor (``kind``: ``in``, ``out``, ``inout``), or a tile of a block (``kind``: its memory, by style)."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    kind: str


@dataclass(frozen=True)
class Launch:
    """One grid of blocks; the first variable changes fastest."""

    blocks: tuple[tuple[str, Expr], ...]
    tiles: tuple[Buffer, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Program:
    """``style`` is free for printers: choices of spelling by name."""

    sizes: tuple[tuple[str, Any], ...]
    tensors: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    style: tuple[tuple[str, Any], ...] = ()

    def size(self, name: str) -> int:
        """The value of a size."""
        return dict(self.sizes)[name]

    def spelled(self, choice: str, default: Any = None) -> Any:
        """A choice of spelling."""
        return dict(self.style).get(choice, default)


def nodes(node: Any) -> Iterator[Any]:
    """A node and all that it holds, from the outside to the inside."""
    if is_dataclass(node):
        yield node
        for field in fields(node):
            yield from nodes(getattr(node, field.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from nodes(part)


def names(node: Any) -> set[str]:
    """Every name and buffer that a node mentions."""
    found = set()
    for part in nodes(node):
        if isinstance(part, Name):
            found.add(part.name)
        elif isinstance(part, (Ref, Region)):
            found.add(part.buffer)
        elif isinstance(part, Reduce):
            found |= {part.source, part.target}
        elif isinstance(part, Gemm):
            found |= {part.a, part.b, part.c}
    return found


def bound(node: Any) -> set[str]:
    """Every name that a node gives a value."""
    found: set[str] = set()
    for part in nodes(node):
        if isinstance(part, Let):
            found.add(part.name)
        elif isinstance(part, For):
            found.add(part.var)
        elif isinstance(part, Parallel):
            found |= set(part.vars)
    return found
