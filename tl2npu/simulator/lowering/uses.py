"""What single statements read and write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Expr, Load, Var
from tl2npu.simulator.ir.parts import free, walk
from tl2npu.simulator.ir.stmt import For, If, Let, Op, Parallel, Stmt, Store, While


def values(stmt: Stmt) -> Iterator[Any]:
    """The expressions in a statement itself, not in its body."""
    if isinstance(stmt, For):
        yield from (stmt.start, stmt.extent)
    elif isinstance(stmt, Parallel):
        yield from stmt.extents
    elif isinstance(stmt, (While, If)):
        yield stmt.condition
    elif isinstance(stmt, Let):
        yield stmt.value
    elif isinstance(stmt, Store):
        yield from (*stmt.indices, stmt.value)
    elif isinstance(stmt, Op):
        for value in stmt.args.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Region):
                    yield from (*item.starts, *item.extents)
                elif isinstance(item, (Load, Expr)):
                    yield item


def loads(value: Any) -> Iterator[Load]:
    """The elements that an expression reads."""
    for part in walk(value):
        if isinstance(part, Load):
            yield part


def buffers(stmt: Stmt) -> Iterator[Buffer]:
    """All buffers that a statement itself names."""
    if isinstance(stmt, Store):
        yield stmt.buffer
    if isinstance(stmt, Op):
        for value in stmt.args.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Region):
                    yield item.buffer
    for value in values(stmt):
        for load in loads(value):
            yield load.buffer
        for part in walk(value):
            for argument in getattr(part, "args", ()):
                if isinstance(argument, Region):
                    yield argument.buffer


def variables(stmt: Stmt) -> set[Var]:
    """The variables that a statement itself uses."""
    found: set[Var] = set()
    for value in values(stmt):
        found |= free(value)
    return found
