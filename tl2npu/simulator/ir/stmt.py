"""Statements of a traced kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Value, Var


@dataclass(frozen=True)
class Site:
    """A place in the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE = Site("<compiler>", 0)


@dataclass(eq=False)
class Stmt:
    """The base; ``site`` is the line in the user's source."""

    site: Site = field(default=NOWHERE, kw_only=True)


@dataclass(eq=False)
class For(Stmt):
    """A loop. ``kind``: serial, unroll, vectorized, pipelined, parallel (then ``nest`` has all variables and extents).

    ``step`` is a non-zero integer. ``notes`` are the annotations, ``num_stages`` among them.
    """

    var: Var
    start: Value
    extent: Value
    body: list[Stmt]
    kind: str = "serial"
    step: int = 1
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Parallel(Stmt):
    """``T.Parallel``: the body for all index combinations, in no order."""

    vars: tuple[Var, ...]
    extents: tuple[Value, ...]
    body: list[Stmt]


@dataclass(eq=False)
class While(Stmt):
    """A loop with a condition that is evaluated before each turn."""

    condition: Value
    body: list[Stmt]


@dataclass(eq=False)
class If(Stmt):
    """A branch on a value that is known when the kernel runs."""

    condition: Value
    then: list[Stmt]
    orelse: list[Stmt]


@dataclass(eq=False)
class Let(Stmt):
    """A name for a value, read once, at this point."""

    var: Var
    value: Value


@dataclass(eq=False)
class Store(Stmt):
    """One element written; inside a ``Parallel`` one for each index combination."""

    buffer: Buffer
    indices: tuple[Value, ...]
    value: Value


@dataclass(eq=False)
class Op(Stmt):
    """A call of an operator of a catalogue. ``args``: parameter name -> Region, Load (start index), value, constant."""

    name: str
    args: dict[str, Any]
    core: str = ""
    """``C``, ``V``, or empty where it is not yet decided or runs on both."""


@dataclass(eq=False)
class Alloc(Stmt):
    """A buffer comes into being (its memory is not cleared)."""

    buffer: Buffer


@dataclass(eq=False)
class Scope(Stmt):
    """``T.Scope("C")``: the body runs on one kind of core only."""

    core: str
    body: list[Stmt]


@dataclass(eq=False)
class Break(Stmt):
    """Leaves the innermost loop."""


@dataclass(eq=False)
class Continue(Stmt):
    """Starts the next turn of the innermost loop."""


@dataclass(eq=False)
class Return(Stmt):
    """Ends the block."""


@dataclass(eq=False)
class Launch:
    """``T.Kernel``: the grid and what is in it. ``threads`` as written; ``is_npu`` separates the two machines."""

    extents: tuple[Value, ...]
    blocks: tuple[Var, ...]
    threads: Any
    is_npu: bool
    vid: Var | None
    body: list[Stmt]
    site: Site = NOWHERE
    npuir: bool = False
    """The npuir language (an Ascend launch with its own operators, grid and lowering)."""
    outside: frozenset[int] = frozenset()
    """Numbers of the tiles that were allocated in front of ``T.Kernel``: ``threads=2`` does not halve them."""


@dataclass(eq=False)
class Kernel:
    """A prim_func: parameters in order, scalar parameters among them, and one or more launches in order."""

    name: str
    params: list[Buffer | Var]
    launches: list[Launch] = field(default_factory=list)
    configs: dict[str, Any] = field(default_factory=dict)
    outputs: list[Buffer] = field(default_factory=list)
    """Tensors that the function itself makes and returns (eager style)."""
    attrs: dict[str, Any] = field(default_factory=dict)
    npuir: bool = False
    """Read as the npuir language."""


def walk(body: list[Stmt]) -> Iterator[Stmt]:
    """All statements, in text order, parents first."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from walk(inner)


def bodies(stmt: Stmt) -> tuple[list[Stmt], ...]:
    """The statement lists in a statement."""
    if isinstance(stmt, (For, Parallel, While, Scope)):
        return (stmt.body,)
    if isinstance(stmt, If):
        return (stmt.then, stmt.orelse)
    return ()
