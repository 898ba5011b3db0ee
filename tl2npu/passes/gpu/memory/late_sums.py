"""Where memory is short: a product is added to its sum behind the statements that do not need the sum.

The product of a gemm lands in a tile as large as the sum. What stands between the gemm and the next use of the sum, as
the row sums of an online softmax, often reads other tiles for the last time: their memory is free then.
"""

from __future__ import annotations

from collections.abc import Sequence

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Buffer, Copy, Loop, Memory, Op, Operand, Stmt, Store, children, walk
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def put_off(job: Job) -> None:
    """Move every pair of a landing copy and the loop that adds what landed as far down as it may go."""
    edits = Edits(job.file.index)
    _block(job.kernel.body, edits)
    job.apply(edits)


def _block(body: Sequence[Stmt], edits: Edits) -> None:
    for number, stmt in enumerate(body):
        for inner in children(stmt):
            _block(inner, edits)
        pair = body[number : number + 2]
        if not _is_sum(pair):
            continue
        own = _buffers(pair)
        rest = body[number + 2 :]
        free = next((n for n, other in enumerate(rest) if not _is_plain(other) or own & _buffers([other])), len(rest))
        if free:
            last = rest[free - 1].node
            for part in pair:
                edits.move(part.node)
            edits.replace_many(last, [last, *(part.node for part in pair)])


def _is_sum(pair: Sequence[Stmt]) -> bool:
    """``T.copy(c_l0c, part)`` and a ``T.Parallel`` that adds ``part`` to a tile, and nothing else."""
    if len(pair) != 2:
        return False
    copy, loop = pair
    if not isinstance(copy, Copy) or not isinstance(loop, Loop) or loop.kind != "parallel" or len(loop.body) != 1:
        return False
    (store,) = loop.body
    landed = (copy.src.buffer.memory, copy.dst.buffer.memory) == (Memory.L0C, Memory.UB)
    adds = isinstance(store, Store) and any(load.buffer is copy.dst.buffer for load in store.value.loads)
    return landed and adds and copy.src.is_whole and copy.dst.is_whole


def _is_plain(stmt: Stmt) -> bool:
    """Work of the vector cores on tiles, whose effects are all known."""
    return all(
        isinstance(inner, Store)
        or (isinstance(inner, Loop) and inner.kind == "parallel")
        or (isinstance(inner, (Op, Copy)) and all(o.buffer.memory is Memory.UB for o in _operands(inner)))
        for inner in walk([stmt])
    )


def _operands(stmt: Stmt) -> list[Operand]:
    return [access.operand for access in accesses(stmt)]


def _buffers(stmts: Sequence[Stmt]) -> set[Buffer]:
    return {operand.buffer for stmt in walk(stmts) for operand in _operands(stmt)}
