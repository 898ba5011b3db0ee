"""The kernel model: what one prim_func means, every element with the syntax node that it came from.

Passes never match syntax; they ask the model. A statement that the reader does not understand becomes :class:`Opaque`
and must be taken to read and write every buffer that it names.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from tl2npu.dialects.catalogue import Operator
from tl2npu.kernel.environment import NOWHERE, Env, Storage
from tl2npu.kernel.symbolic import Sym

if TYPE_CHECKING:
    from tl2npu.kernel.style import Dialect


class Memory(enum.Enum):
    """Where a buffer lives. ``VAR`` is a scalar register (``T.alloc_var``)."""

    GM = "GM"
    L1 = "L1"
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"
    UB = "UB"
    VAR = "var"


CUBE_MEMORY = frozenset({Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C})


class Side(enum.Enum):
    """Which core runs a statement."""

    CUBE = "C"
    VECTOR = "V"
    BOTH = "CV"
    NONE = "-"


@dataclass(eq=False)
class Buffer(Storage):
    """A tensor parameter (``memory`` GM) or an on-chip allocation; ``shape`` in elements.

    ``outside``: allocated in front of ``T.Kernel``. With ``threads=2`` each vector core has all of such a tile.
    """

    name: str
    memory: Memory
    shape: tuple[Sym, ...]
    shape_nodes: tuple[cst.BaseExpression, ...]
    dtype: str
    node: cst.Param | cst.Call
    alloc: str = ""
    statement: cst.CSTNode | None = None
    index: int = -1
    outside: bool = False

    @property
    def is_tile(self) -> bool:
        """On the chip: no tensor, and no scalar register."""
        return self.memory not in (Memory.GM, Memory.VAR)

    def __repr__(self) -> str:
        return f"<{self.memory.value} {self.name}[{', '.join(map(str, self.shape))}]>"


@dataclass(frozen=True, eq=False)
class Dim:
    """One index of a region. ``extent`` is None for a start index, whose extent the other side of a copy gives."""

    lo: Sym
    extent: Sym | None
    node: cst.BaseExpression | cst.Slice
    loads: tuple[Operand, ...] = ()

    @property
    def is_point(self) -> bool:
        """True for a plain index, False for a slice."""
        return type(self.node) is not cst.Slice

    def covers(self, size: Sym) -> bool:
        """True for a slice that takes all of an axis of that size."""
        return not self.is_point and self.lo.is_zero and self.extent == size


@dataclass(frozen=True, eq=False)
class Operand:
    """A buffer as it appears in a statement: whole (``dims`` None) or indexed."""

    buffer: Buffer
    dims: tuple[Dim, ...] | None
    node: cst.BaseExpression

    @cached_property
    def loads(self) -> tuple[Operand, ...]:
        """Buffer elements read in order to compute the indices."""
        return tuple(load for dim in self.dims or () for load in dim.loads)

    @property
    def is_indexed(self) -> bool:
        """Plain indices only: one element, or where a part begins."""
        return self.dims is not None and all(dim.is_point for dim in self.dims)

    @property
    def is_whole(self) -> bool:
        """True if every element of the buffer is meant."""
        if self.dims is None:
            return True
        return len(self.dims) == len(self.buffer.shape) and all(
            dim.covers(size) for dim, size in zip(self.dims, self.buffer.shape, strict=False)
        )


@dataclass(frozen=True, eq=False)
class Access:
    """One buffer access; ``element`` is True for a scalar load or store, False for a tile operation."""

    operand: Operand
    reads: bool
    writes: bool
    element: bool = False


@dataclass(frozen=True, eq=False)
class Scalar:
    """An expression operand; ``loads`` are the buffer elements in it."""

    node: cst.BaseExpression
    sym: Sym
    loads: tuple[Operand, ...] = ()


@dataclass(eq=False)
class Stmt:
    """``node`` is the statement; ``via`` the macro calls that lead to it; ``env`` the names in scope before it.

    ``accessed``: what ``kernel.access.accesses`` found, which is asked more often than anything else.
    """

    node: cst.CSTNode
    via: tuple[cst.CSTNode, ...] = field(default=(), kw_only=True)
    env: Env = field(default=NOWHERE, kw_only=True, repr=False)
    accessed: tuple[Access, ...] | None = field(default=None, init=False, repr=False)


@dataclass(eq=False)
class Copy(Stmt):
    """``T.copy(src, dst)``."""

    call: cst.Call
    src: Operand
    dst: Operand
    options: dict[str, Scalar]


@dataclass(eq=False)
class Op(Stmt):
    """Any other operator of the catalogue, its arguments bound to parameter names."""

    call: cst.Call
    op: Operator
    args: dict[str, Operand | Scalar]

    @property
    def operands(self) -> Iterator[tuple[str, Operand]]:
        """Buffer arguments with their parameter names, in call order."""
        return ((name, arg) for name, arg in self.args.items() if isinstance(arg, Operand))


@dataclass(frozen=True, eq=False)
class Range:
    """Extent of one loop variable: ``start <= var < start + extent``; ``name`` is how the source spells it."""

    name: str
    var: Sym
    start: Sym
    extent: Sym
    stop_node: cst.BaseExpression | None
    start_node: cst.BaseExpression | None = None
    step: Sym | None = None


@dataclass(eq=False)
class Loop(Stmt):
    """``kind``: serial, parallel, pipelined, persistent, unroll, vectorized, while."""

    kind: str
    ranges: tuple[Range, ...]
    body: list[Stmt]
    call: cst.Call | None
    num_stages: Sym | None = None
    loads: tuple[Operand, ...] = ()


@dataclass(eq=False)
class Branch(Stmt):
    """``if cond: then else: orelse`` (an ``elif`` is a Branch in ``orelse``)."""

    cond: Scalar
    then: list[Stmt]
    orelse: list[Stmt]


@dataclass(eq=False)
class ScopeBlock(Stmt):
    """``with T.Scope("C"): ...``."""

    side: Side
    body: list[Stmt]


@dataclass(eq=False)
class Sync(Stmt):
    """A barrier or a flag; ``args`` are the literal or symbolic arguments by parameter name."""

    call: cst.Call
    op: Operator
    args: dict[str, Scalar]

    def text(self, name: str) -> str:
        """The literal text of an argument, empty when it was not given."""
        arg = self.args.get(name)
        return cst.Module(body=()).code_for_node(arg.node) if arg else ""


@dataclass(eq=False)
class Let(Stmt):
    """``name = value`` in the kernel, an integer or scalar expression; ``bound`` is what the name stands for then."""

    name: str
    value: Scalar
    bound: Sym | None = field(default=None, kw_only=True)


@dataclass(eq=False)
class Store(Stmt):
    """``buffer[i, j] = value`` (``augmented``: ``+=`` and the like)."""

    target: Operand
    value: Scalar
    augmented: bool


@dataclass(eq=False)
class Alloc(Stmt):
    """``name = T.alloc_*(shape, dtype)``."""

    buffer: Buffer


@dataclass(eq=False)
class Inlined(Stmt):
    """A call of a macro or a Python helper of the same file, read in place."""

    callee: str
    definition: cst.FunctionDef
    body: list[Stmt]


@dataclass(eq=False)
class Opaque(Stmt):
    """Not understood; ``why`` in one sentence. Touches every buffer in ``buffers``; ``harmless`` if it names none."""

    why: str
    buffers: tuple[Buffer, ...]


@dataclass(eq=False)
class Launch:
    """``with T.Kernel(...) as ...``."""

    node: cst.With
    item: cst.WithItem
    call: cst.Call
    grid: tuple[Sym, ...]
    threads: Scalar | None
    is_npu: bool
    names: tuple[str, ...]
    even: tuple[Sym, ...] = ()
    """The sizes of ``threads=1 if M % 2 else 2``: the tiles are split where all of them are even."""

    @property
    def threads_value(self) -> int | None:
        """The number given as ``threads=``, 2 if it depends on even sizes; None if there is none or it is not known."""
        return 2 if self.even else self.threads.sym.constant if self.threads else None


@dataclass(eq=False)
class Kernel:
    """One prim_func; ``cid`` and ``vid`` are the symbolic names of the launch axes (None: not named).

    ``core`` is that of ``T.get_block_binding(1)``: with ``threads=2`` the number of the vector core, 0 or 1 (the frame
    of a launch binds its block and its core, ``src/ir.cc``). ``dialect``: the language that it was read as.
    """

    name: str
    node: cst.FunctionDef
    params: list[Buffer]
    scalars: dict[str, cst.Param]
    launch: Launch | None
    body: list[Stmt]
    buffers: dict[str, Buffer]
    cid: str | None = None
    vid: str | None = None
    problems: list[tuple[cst.CSTNode, str, str]] = field(default_factory=list)
    dialect: Dialect = "ascend"
    core: str | None = None

    @property
    def launched(self) -> Launch:
        """The launch of a kernel that is known to have one."""
        assert self.launch is not None
        return self.launch

    def walk(self) -> Iterator[Stmt]:
        """Every statement, outer before inner, in text order."""
        return iter(self._statements)

    @cached_property
    def _statements(self) -> list[Stmt]:
        return list(walk(self.body))


def children(stmt: Stmt) -> tuple[list[Stmt], ...]:
    """The statement lists inside a statement."""
    if isinstance(stmt, (Loop, ScopeBlock, Inlined)):
        return (stmt.body,)
    return (stmt.then, stmt.orelse) if isinstance(stmt, Branch) else ()


_HOLDS_OTHERS: frozenset[type[Stmt]] = frozenset((Loop, ScopeBlock, Inlined, Branch))


def blocks(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    """``body`` and every statement list below it, outer before inner, in text order."""
    yield body
    for stmt in body:
        for inner in children(stmt):
            yield from blocks(inner)


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Every statement below ``body``, outer before inner, in text order."""
    for stmt in body:
        yield stmt
        for inner in children(stmt) if type(stmt) in _HOLDS_OTHERS else ():
            yield from walk(inner)


def in_parallel(around: Iterable[Stmt]) -> bool:
    """Whether one of these statements is a ``T.Parallel``."""
    return any(isinstance(stmt, Loop) and stmt.kind == "parallel" for stmt in around)


def walk_with_parents(body: Sequence[Stmt], parents: tuple[Stmt, ...] = ()) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    """Like :func:`walk`, each statement with its enclosing statements, outermost first."""
    for stmt in body:
        yield stmt, parents
        for inner in children(stmt) if type(stmt) in _HOLDS_OTHERS else ():
            yield from walk_with_parents(inner, (*parents, stmt))
