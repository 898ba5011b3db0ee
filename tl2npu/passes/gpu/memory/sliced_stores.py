"""TL618: a loop that stores a tile slice by slice, over a smaller tile, is one store of the whole tile.

On a GPU that saves shared memory. The NPU stores from where the tile is, and a slice of a product cannot leave L0C for
the vector cores by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Copy, Loop, Memory, Operand, Range, Stmt
from tl2npu.kernel.symbolic import Sym, ceildiv
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits


def join(job: Job) -> None:
    """Write one copy for each such loop."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Loop) or stmt.via or stmt.kind not in ("serial", "unroll", "pipelined"):
            continue
        chains = _chains(stmt.body)
        texts = {_whole(job, stmt.ranges[0], chain, chains) for chain in chains} if len(stmt.ranges) == 1 else set()
        if len(texts) != 1 or (text := texts.pop()) is None:
            continue
        edits.replace_many(stmt.node, parse(job, text, stmt.node))
        job.change("TL618", stmt.node, f"stored the whole of `{chains[0][0].src.buffer.name}` at once")
    job.apply(edits)


def _chains(body: Sequence[Stmt]) -> list[list[Copy]]:
    """The copies of a turn, for each arm of an ``if`` at its end; none if there is anything else."""
    if not body:
        return []  # nothing but what the front end forgets, as an assignment in a macro
    *first, last = body
    arms = [last.then, last.orelse] if isinstance(last, Branch) else [[last]]
    chains = [[stmt for stmt in (*first, *arm) if isinstance(stmt, Copy)] for arm in arms]
    alike = all(len(chain) == len(first) + len(arm) for chain, arm in zip(chains, arms, strict=True))
    return chains if alike and all(len(chain) > 1 for chain in chains) else []


def _whole(job: Job, item: Range, copies: Sequence[Copy], all_: Sequence[Sequence[Copy]]) -> str | None:
    """The copy of the whole tile that a chain of copies in a loop comes to; None if it does not."""
    start = _start(copies[-1].dst, item)
    own = [copy for chain in all_ for copy in chain]
    if start is None or not _is_slice(copies[0].src, item, start[1]) or not _only_passes(job, copies, own):
        return None
    return f"T.copy({copies[0].src.buffer.name}, {start[0]})"


def _start(target: Operand, item: Range) -> tuple[str, Sym] | None:
    """Where the first slice is stored, and by how much each turn moves the last index."""
    if target.buffer.memory is not Memory.GM or not target.dims or not all(dim.is_point for dim in target.dims):
        return None
    last = target.dims[-1]
    (name,) = item.var.names
    places = [last.lo.substitute({name: turn}) for turn in range(3)]
    step = places[1] - places[0]
    if places[2] - places[1] != step or any(name in dim.lo.names for dim in target.dims[:-1]):
        return None
    rest = _without(last.node, item.name)
    if rest is None:
        return None
    *others, _ = [code(dim.node) for dim in target.dims]
    return f"{target.buffer.name}[{', '.join([*others, rest])}]", step


def _without(node: cst.BaseExpression | cst.Slice, name: str) -> str | None:
    """``start + i * step`` without its second part."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return "0" if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply) else None
    return code(node.left) if name not in code(node.left) else None


def _is_slice(source: Operand, item: Range, step: Sym) -> bool:
    """Whether a turn takes the next columns of a tile, and all turns together take all of them."""
    buffer = source.buffer
    if buffer.memory is Memory.GM or source.dims is None or len(source.dims) != len(buffer.shape) != 2:
        return False
    *rows, columns = source.dims
    whole = all(d.covers(s) for d, s in zip(rows, buffer.shape, strict=False))
    turns = item.start.is_zero and item.extent in (buffer.shape[-1] // step, ceildiv(buffer.shape[-1], step))
    return whole and turns and not columns.is_point and columns.extent == step and columns.lo == item.var * step


def _only_passes(job: Job, copies: Sequence[Copy], every: Sequence[Copy]) -> bool:
    """Whether each copy goes on where the one before ended, over tiles that nothing else uses."""
    between: list[Buffer] = []
    for one, other in itertools.pairwise(copies):
        if one.dst.buffer is not other.src.buffer or not one.dst.is_whole or not other.src.is_whole:
            return False
        between.append(one.dst.buffer)
    own = {id(copy) for copy in every}
    others = [stmt for stmt in job.kernel.walk() if id(stmt) not in own and not isinstance(stmt, Alloc)]
    used = {access.operand.buffer for stmt in others for access in accesses(stmt)}
    return not used & set(between) and all(buffer.memory is not Memory.GM for buffer in between)
