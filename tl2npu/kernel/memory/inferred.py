"""Which memory ``alloc_shared`` means: the rules of ``src/transform/ascend_infer_buffer_scope.cc``.

A shared buffer is L1 if a gemm uses it, UB if a vector operator uses it (and no gemm), UB if it only appears in
copies (unless one of them goes to L0A or L0B), and L1 if nothing but element loads and stores touch it. A fragment is
the gemm operand or accumulator that its position says, else L0C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Branch, Buffer, Copy, Inlined, Kernel, Let, Loop, Memory, Op, ScopeBlock, Stmt
from tl2npu.kernel.runtime import Late
from tl2npu.source.tree import mentioned

_GEMM = (Kind.GEMM, Kind.MMA)
_Arms = frozenset[tuple[int, int]]


@dataclass
class Use:
    """How the compiler sees a buffer used: by cube operators, vector operators, copies."""

    cube: bool = False
    vector: bool = False
    copied: bool = False
    to_l0: bool = False

    def add(self, other: Use) -> None:
        """Count the uses of another one, too."""
        self.cube, self.vector = self.cube or other.cube, self.vector or other.vector
        self.copied, self.to_l0 = self.copied or other.copied, self.to_l0 or other.to_l0


def uses(kernel: Kernel) -> dict[Buffer, Use]:
    """The uses of every on-chip buffer that counts for the inference (element accesses do not)."""
    found: dict[Buffer, Use] = {buffer: Use() for buffer in kernel.buffers.values()}
    for stmt in kernel.walk():
        for buffer, use in _uses(stmt) if type(stmt) is Copy or type(stmt) is Op else ():
            found.setdefault(buffer, Use()).add(use)
    return found


def is_vector(found: Mapping[Buffer, Use], tile: Buffer) -> bool:
    """In UB, also where only element-wise loops touch it so far, which says nothing to the compiler (TL130)."""
    return tile.memory is Memory.UB or (found.get(tile, Use()) == Use() and tile.alloc == "alloc_shared")


def _uses(stmt: Stmt) -> Iterator[tuple[Buffer, Use]]:
    if isinstance(stmt, Copy):
        yield stmt.src.buffer, Use(copied=True, to_l0=stmt.dst.buffer.memory in (Memory.L0A, Memory.L0B))
        yield stmt.dst.buffer, Use(copied=True)
    elif isinstance(stmt, Op) and stmt.op.kind not in (Kind.ANNOTATION, Kind.ATOMIC):
        is_cube = stmt.op.kind in _GEMM
        yield from ((operand.buffer, Use(cube=is_cube, vector=not is_cube)) for _, operand in stmt.operands)


def certain_uses(kernel: Kernel, late: Late) -> dict[Buffer, Use]:
    """The uses that are there whenever a buffer is touched, for any arguments of the factory.

    The compiler drops an arm of an ``if`` that is decided for the sizes of a call: by arguments of the factory, but
    also by ``x % 1``, by the block of a grid of one block, or by a loop of one turn. So a use counts for what stands
    under the same conditions, unless data decide them; one under an option of the factory does not.
    That a gemm, or a copy to L0, uses a buffer counts in any case.
    """
    found = uses(kernel)
    touched: dict[Buffer, list[_Arms]] = {}
    marked: dict[Buffer, list[_Arms]] = {}
    sure = {id(stmt) for stmt in without_options(kernel, late).walk()}
    for stmt, arms in _with_arms(kernel.body, frozenset(), _names_of_data(kernel)):
        for access in accesses(stmt):
            touched.setdefault(access.operand.buffer, []).append(arms)
        for buffer, _ in _uses(stmt) if id(stmt) in sure else ():
            marked.setdefault(buffer, []).append(arms)
    for buffer, use in found.items():
        marks = marked.get(buffer, [])
        if not all(any(mark <= arms for mark in marks) for arms in touched.get(buffer, marks)):
            found[buffer] = Use(cube=use.cube, to_l0=use.to_l0)
    return found


def _names_of_data(kernel: Kernel) -> frozenset[str]:
    """Names for what is loaded, and for what is worked out from it."""
    found: set[str] = set()
    for stmt in kernel.walk():
        if isinstance(stmt, Let) and (stmt.value.loads or found & mentioned(stmt.value.node)):
            found.add(stmt.name)
    return frozenset(found)


def _with_arms(body: Sequence[Stmt], arms: _Arms, data: frozenset[str]) -> Iterator[tuple[Stmt, _Arms]]:
    """Statements with the arms of conditions around them that other sizes may decide, other than ``data``."""
    for stmt in body:
        yield stmt, arms
        if isinstance(stmt, Branch):
            decided = not stmt.cond.loads and data.isdisjoint(mentioned(stmt.cond.node))
            for arm, inner in enumerate((stmt.then, stmt.orelse)):
                yield from _with_arms(inner, arms | {(id(stmt), arm)} if decided else arms, data)
        elif isinstance(stmt, (Loop, Inlined, ScopeBlock)):
            yield from _with_arms(stmt.body, arms, data)


def without_options(kernel: Kernel, late: Late) -> Kernel:
    """The kernel without statements under an ``if`` on arguments of the factory."""
    return replace(kernel, body=list(_without(kernel.body, late.python_decides)))


def _without(body: Sequence[Stmt], left_out: Callable[[Branch], bool]) -> Iterator[Stmt]:
    for stmt in body:
        if isinstance(stmt, Branch):
            if not left_out(stmt):
                then, orelse = (list(_without(arm, left_out)) for arm in (stmt.then, stmt.orelse))
                yield replace(stmt, then=then, orelse=orelse)
        elif isinstance(stmt, (Loop, Inlined, ScopeBlock)):
            yield replace(stmt, body=list(_without(stmt.body, left_out)))
        else:
            yield stmt


def inferred(use: Use) -> Memory:
    """The memory that ``alloc_shared`` gets for a use."""
    if use.cube or use.to_l0:
        return Memory.L1
    return Memory.UB if use.vector or use.copied else Memory.L1


def infer_memory(kernel: Kernel) -> None:
    """Set ``Buffer.memory`` of every ``alloc_shared`` and ``alloc_fragment`` of the kernel from its uses."""
    for buffer, use in uses(kernel).items():
        if buffer.alloc == "alloc_shared":
            buffer.memory = inferred(use)
