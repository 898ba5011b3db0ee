"""Who reads and writes what, and on which core a statement runs.

Sources: legacy-style scopes are literal; without them the rules of ``src/transform/ascend_combinecv.cc`` (CombineCV)
decide by the memory of the operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tl2npu.dialects.catalogue import Core, Kind, Role
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Access,
    Branch,
    Buffer,
    Copy,
    Kernel,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Scalar,
    ScopeBlock,
    Side,
    Stmt,
    Store,
    Sync,
    children,
    walk,
)


def scalars(stmt: Stmt) -> list[Scalar]:
    """The numbers of one statement itself: arguments, options of a copy, a value, a condition."""
    if isinstance(stmt, (Op, Sync)):
        return [arg for arg in stmt.args.values() if isinstance(arg, Scalar)]
    if isinstance(stmt, Copy):
        return list(stmt.options.values())
    if isinstance(stmt, (Let, Store)):
        return [stmt.value]
    return [stmt.cond] if isinstance(stmt, Branch) else []


def accesses_of(kernel: Kernel, buffer: Buffer) -> Iterator[tuple[Stmt, Access]]:
    """Every access of a buffer in the kernel, in text order."""
    for stmt in kernel.walk():
        yield from ((stmt, access) for access in accesses(stmt) if access.operand.buffer is buffer)


def uses_of(kernel: Kernel, buffer: Buffer) -> list[tuple[Stmt, Operand]]:
    """Every place where the kernel names a buffer for an access, once."""
    found: dict[int, tuple[Stmt, Operand]] = {}
    for stmt, access in accesses_of(kernel, buffer):
        found.setdefault(id(access.operand.node), (stmt, access.operand))
    return list(found.values())


def accesses(stmt: Stmt) -> tuple[Access, ...]:
    """Accesses of one statement itself (not of the statements inside it)."""
    if stmt.accessed is None:
        stmt.accessed = tuple(_accesses(stmt))
    return stmt.accessed


def _accesses(stmt: Stmt) -> Iterator[Access]:
    if isinstance(stmt, Copy):
        yield Access(stmt.src, True, False)
        yield Access(stmt.dst, False, True)
        yield from _elements((*stmt.src.loads, *stmt.dst.loads))
    elif isinstance(stmt, Op):
        for name, arg in stmt.args.items():
            if isinstance(arg, Operand):
                yield from _op_access(stmt, name, arg)
            yield from _elements(arg.loads)
        return
    elif isinstance(stmt, Store):
        yield Access(stmt.target, stmt.augmented, True, True)
        yield from _elements((*stmt.value.loads, *stmt.target.loads))
        return
    elif isinstance(stmt, Loop):
        yield from _elements(stmt.loads)
    elif isinstance(stmt, Opaque):
        for buffer in stmt.buffers:
            operand = Operand(buffer, None, buffer.node)  # type: ignore[arg-type]
            yield Access(operand, True, True)
    for scalar in scalars(stmt):
        yield from _elements(scalar.loads)


def _elements(loads: tuple[Operand, ...]) -> Iterator[Access]:
    for load in loads:
        yield Access(load, True, False, True)


def _op_access(stmt: Op, name: str, operand: Operand) -> Iterator[Access]:
    param = stmt.op.param(name)
    role = param.role if param else Role.READ_WRITE
    if param and param.scalar and operand.is_indexed:
        yield Access(operand, True, False, True)
        return
    if role is Role.SCALAR and operand.dims is not None:
        yield Access(operand, True, False, True)
        return
    if role is Role.READ or role is Role.SCALAR:
        yield Access(operand, True, False)
    elif role is Role.WRITE:
        clear = stmt.args.get("clear")
        keeps = isinstance(clear, Scalar) and clear.sym.constant != 1
        yield Access(operand, keeps, True)
    elif role is Role.ACCUMULATE:
        init = stmt.args.get("init", stmt.args.get("initC"))
        fresh = isinstance(init, Scalar) and init.sym.constant == 1
        yield Access(operand, not fresh, True)
    else:
        yield Access(operand, True, True)


def is_on_chip(copy: Copy) -> bool:
    """True for a copy between the cores that the compiler routes through a workspace."""
    return copy_side(copy.src.buffer.memory, copy.dst.buffer.memory) is Side.BOTH


def reads(stmt: Stmt, *, deep: bool = False) -> list[Operand]:
    """Operands that a statement (with ``deep``: and everything inside it) reads."""
    return [a.operand for s in _self_and(stmt, deep) for a in accesses(s) if a.reads]


def writes(stmt: Stmt, *, deep: bool = False) -> list[Operand]:
    """Operands that a statement (with ``deep``: and everything inside it) writes."""
    return [a.operand for s in _self_and(stmt, deep) for a in accesses(s) if a.writes]


def written(stmts: Iterable[Stmt]) -> set[Buffer]:
    """The buffers that statements, and everything in them, write."""
    return {operand.buffer for stmt in stmts for operand in writes(stmt, deep=True)}


def _self_and(stmt: Stmt, deep: bool) -> Iterable[Stmt]:
    return walk([stmt]) if deep else (stmt,)


def touches(stmt: Stmt, *buffers: Buffer) -> bool:
    """Whether a statement, or one in it, reads or writes one of the buffers."""
    return any(access.operand.buffer in buffers for inner in walk([stmt]) for access in accesses(inner))


def changes(stmt: Stmt, *buffers: Buffer) -> bool:
    """Whether a statement, or one in it, writes one of the buffers."""
    return any(operand.buffer in buffers for operand in writes(stmt, deep=True))


def copy_side(src: Memory, dst: Memory) -> Side:
    """The core of a copy between two memories; BOTH for an on-chip hand-over between the cores."""
    if (src, dst) in ((Memory.L0C, Memory.UB), (Memory.UB, Memory.L1)):
        return Side.BOTH
    if src in CUBE_MEMORY or dst in CUBE_MEMORY:
        return Side.CUBE
    if Memory.UB in (src, dst):
        return Side.VECTOR
    return Side.NONE


def side_of(stmt: Stmt) -> Side:
    """The core that runs a simple statement when there is no Scope around it; BOTH for what both cores evaluate."""
    if isinstance(stmt, Copy):
        return copy_side(stmt.src.buffer.memory, stmt.dst.buffer.memory)
    if isinstance(stmt, Op):
        if stmt.op.kind in (Kind.GEMM, Kind.MMA) or stmt.op.core is Core.CUBE:
            return Side.CUBE
        if stmt.op.kind is Kind.DEBUG:
            return Side.BOTH
        memories = [operand.buffer.memory for _, operand in stmt.operands]
        first = next((m for m in memories if m is not Memory.GM), None)
        if first is not None:
            return Side.CUBE if first in CUBE_MEMORY else Side.VECTOR
        return Side.VECTOR if stmt.op.core is Core.VECTOR else Side.NONE
    if isinstance(stmt, Store):
        return Side.VECTOR if stmt.target.buffer.memory is Memory.UB else Side.CUBE
    if isinstance(stmt, ScopeBlock):
        return stmt.side
    if isinstance(stmt, Sync):
        return Side.NONE
    inner = {side_of(s) for body in children(stmt) for s in body} - {Side.NONE}
    if not inner:
        return Side.NONE if children(stmt) else Side.BOTH if isinstance(stmt, Let) else Side.NONE
    return inner.pop() if len(inner) == 1 else Side.BOTH


def hands_over(kernel: Kernel) -> bool:
    """Some copy goes from one core to the other."""
    return any(isinstance(stmt, Copy) and side_of(stmt) is Side.BOTH for stmt in kernel.walk())
