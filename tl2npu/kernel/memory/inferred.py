"""Which memory ``alloc_shared`` means: the rules of ``src/transform/ascend_infer_buffer_scope.cc``.

A shared buffer is L1 if a gemm uses it, UB if a vector operator uses it (and no gemm), UB if it only appears in
copies (unless one of them goes to L0A or L0B), and L1 if nothing but element loads and stores touch it. A fragment is
the gemm operand or accumulator that its position says, else L0C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Branch, Buffer, Copy, Inlined, Kernel, Loop, Memory, Op, ScopeBlock, Stmt
from tl2npu.kernel.runtime import Late

_GEMM = (Kind.GEMM, Kind.MMA)


@dataclass
class Use:
    """How the compiler sees a buffer used: by cube operators, vector operators, copies."""

    cube: bool = False
    vector: bool = False
    copied: bool = False
    to_l0: bool = False


def uses(kernel: Kernel) -> dict[Buffer, Use]:
    """The uses of every on-chip buffer that counts for the inference (element accesses do not)."""
    found: dict[Buffer, Use] = {buffer: Use() for buffer in kernel.buffers.values()}
    for stmt in kernel.walk():
        if isinstance(stmt, Copy):
            for operand in (stmt.src, stmt.dst):
                found.setdefault(operand.buffer, Use()).copied = True
            if stmt.dst.buffer.memory in (Memory.L0A, Memory.L0B):
                found[stmt.src.buffer].to_l0 = True
        elif isinstance(stmt, Op) and stmt.op.kind not in (Kind.ANNOTATION, Kind.ATOMIC):
            for _, operand in stmt.operands:
                use = found.setdefault(operand.buffer, Use())
                if stmt.op.kind in _GEMM:
                    use.cube = True
                else:
                    use.vector = True
    return found


def certain_uses(kernel: Kernel, late: Late) -> dict[Buffer, Use]:
    """The uses that are there for any arguments of the factory; an ``if`` on one of them may leave its statements out.

    So may an ``if`` on remainders (``Late.may_be_absent``), which counts for buffers that other statements touch, too.
    That a gemm, or a copy to L0, uses a buffer counts in any case.
    """
    found = uses(without_options(kernel, late))
    least = replace(kernel, body=list(_without(kernel.body, late.may_be_absent)))
    sure = uses(least)
    for buffer in {access.operand.buffer for stmt in least.walk() for access in accesses(stmt)}:
        found[buffer] = sure.get(buffer, Use())
    for buffer, use in uses(kernel).items():
        found[buffer].cube, found[buffer].to_l0 = use.cube, use.to_l0
    return found


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
