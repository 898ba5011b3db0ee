"""Which pipe of a core a statement runs on, and what it touches there.

GM to UB or L1: MTE2; UB to GM or L1: MTE3; L1 to L0A or L0B: MTE1; ``T.mma``: M; out of L0C: FIX; vector instructions
and UB to UB: V; single elements: S. ``gemm_v0`` moves its operands itself: it reads L1 on MTE1 and computes on M
(``tl_templates/ascend/common.h:590``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tl2npu.dialects.ascend.sync import SCALAR_BEHIND_BARRIER
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.handover import region
from tl2npu.kernel.model import CUBE_MEMORY, Buffer, Copy, Kernel, Memory, Op, Operand, Stmt, Store, Sync
from tl2npu.kernel.symbolic import Sym, const

PIPES = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX")

Part = tuple[tuple[Sym, Sym | None], ...] | None
"""Start and extent of each axis, the extent None where it is not known; None in place of it all: the whole buffer."""


@dataclass(frozen=True, eq=False)
class Touch:
    """One access: ``element`` is made by the scalar unit."""

    buffer: Buffer
    part: Part
    pipe: str
    writes: bool
    element: bool


def touches_of(stmt: Stmt, in_parallel: bool) -> Iterator[Touch]:
    """What a statement reads, then what it writes, each on its pipe; registers are left out."""
    pipe = pipe_of(stmt, in_parallel)
    found = [access for access in accesses(stmt) if access.operand.buffer.memory is not Memory.VAR]
    for access in sorted(found, key=lambda one: one.writes):
        operand = access.operand
        element = access.element and not in_parallel
        if access.reads:
            yield Touch(operand.buffer, _part(stmt, operand), _reading(stmt, operand, pipe, element), False, element)
        if access.writes:
            yield Touch(operand.buffer, _part(stmt, operand), pipe, True, element)


def _reading(stmt: Stmt, operand: Operand, pipe: str, element: bool) -> str:
    if element:
        return "S"
    is_product = isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM and operand.buffer.memory is Memory.L1
    return "MTE1" if is_product else pipe


def _part(stmt: Stmt, operand: Operand) -> Part:
    if operand.dims is None:
        return None
    if isinstance(stmt, Copy) and operand in (stmt.src, stmt.dst):
        return region(operand, stmt.dst if operand is stmt.src else stmt.src)
    points = [dim.is_point for dim in operand.dims]
    whole = isinstance(stmt, Store) or not all(points) or len(points) < len(operand.buffer.shape)
    return tuple(
        (dim.lo, (const(1) if whole or axis < len(points) - 1 else None) if dim.is_point else dim.extent)
        for axis, dim in enumerate(operand.dims)
    )


def named_pipe(flag: Sync, argument: str) -> str:
    """The pipe that an argument of a flag or barrier names, however it is spelled; empty where it is not given."""
    return flag.text(argument).strip("\"'").upper().removeprefix("PIPE_")


def pipe_of(stmt: Stmt, in_parallel: bool) -> str:
    """The pipe of a statement; in ``T.Parallel`` that of the instruction which it becomes."""
    if isinstance(stmt, Copy):
        return between(stmt.src.buffer.memory, stmt.dst.buffer.memory)
    if isinstance(stmt, Op):
        if stmt.op.kind in (Kind.GEMM, Kind.MMA):
            return "M"
        reads = [access.operand.buffer.memory for access in accesses(stmt) if not access.element and not access.writes]
        writes = [access.operand.buffer.memory for access in accesses(stmt) if not access.element and access.writes]
        if Memory.GM in writes or Memory.GM in reads or not CUBE_MEMORY.isdisjoint(writes):
            return between((reads or [Memory.UB])[0], (writes or [Memory.UB])[0])
        return "V" if reads or writes else "S"
    if isinstance(stmt, Store) and in_parallel:
        loads = {load.buffer.memory for load in stmt.value.loads}
        if stmt.target.buffer.memory is Memory.GM:
            return "MTE3" if loads == {Memory.UB} else "FIX" if loads == {Memory.L0C} else "S"
        return "MTE2" if loads == {Memory.GM} else "S" if Memory.GM in loads else "V"
    return "S"


def waits_for_all(stmt: Stmt) -> bool:
    """Whether the compiler puts a barrier of all pipes in front of the scalar operand of an operator."""
    if not isinstance(stmt, Op) or stmt.op.name not in SCALAR_BEHIND_BARRIER:
        return False
    operands = {id(arg) for arg in stmt.args.values()}
    return any(access.element and id(access.operand) in operands for access in accesses(stmt))


def between(source: Memory, target: Memory) -> str:
    """The pipe that moves data from one memory to another."""
    if source is Memory.L0C:
        return "FIX"
    if source is Memory.GM:
        return "MTE2"
    if target is Memory.GM or (source, target) == (Memory.UB, Memory.L1):
        return "MTE3"
    if target in (Memory.L0A, Memory.L0B):
        return "MTE1"
    return "M" if target is Memory.L0C else "V"


def exchanged(kernel: Kernel) -> frozenset[Buffer]:
    """Tensors that the kernel both reads and writes."""
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for stmt in kernel.walk():
        for touch in touches_of(stmt, False):
            if touch.buffer.memory is Memory.GM:
                (writes if touch.writes else reads).add(touch.buffer)
    return frozenset(reads & writes)


def ordered_touches(stmt: Stmt, in_parallel: bool, shared: Collection[Buffer]) -> Iterator[Touch]:
    """The accesses whose order matters: of tensors only those of ``shared`` ones, and nothing that is printed."""
    if not (isinstance(stmt, Op) and stmt.op.kind is Kind.DEBUG):
        for touch in touches_of(stmt, in_parallel):
            if touch.buffer.memory is not Memory.GM or touch.buffer in shared:
                yield touch
