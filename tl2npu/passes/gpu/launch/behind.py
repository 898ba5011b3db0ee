"""TL178: blocks whose rows lie behind the end of a tensor, depending on data, are left out.

A grid for groups of rows has room for one more tile of every group, so some of its blocks have no rows, and the last
of them begin behind the end. A GPU loads zeros there and stores nothing. The NPU would load a full tile of other data
to L1 (:mod:`tl2npu.checks.operators.starts`). Where all that a block stores lies behind the end too, it does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, takewhile

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Copy, Inlined, Let, Loop, Memory, Opaque, Operand, Stmt
from tl2npu.kernel.model import walk_with_parents as walk
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.loaded import is_load, is_sensible
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def leave_out(job: Job) -> None:
    """Put ``if start < rows:`` around what a block does with rows that may lie behind the end."""
    everything = list(walk(job.kernel.body))
    if any(isinstance(stmt, (Opaque, Inlined)) for stmt, _ in everything):
        return
    known = Known(job.kernel, job.located.evaluator)
    starts = [let for let in job.kernel.body if isinstance(let, Let) and let.bound is not None]
    for stmt, parents in everything:
        if not isinstance(stmt, Copy) or stmt.dst.buffer.memory is not Memory.L1:
            continue
        bounds = _bounds(known, stmt, parents)
        for axis, low, start in _starts(stmt.src, starts):
            extent = stmt.src.buffer.shape[axis]
            if not _may_lie_behind(bounds, low, extent):
                continue
            stores = [(s, p, operand) for s, p in everything for operand in writes(s) if _is_tensor(operand)]
            if all(_lies_behind(_bounds(known, s, p), operand, low, extent) for s, p, operand in stores):
                _write(job, start, stmt.src.buffer.shape_nodes[axis])
                return


def _bounds(known: Known, stmt: Stmt, parents: tuple[Stmt, ...]) -> Bounds:
    around = [*parents, stmt]
    loops = [item for loop in parents if isinstance(loop, Loop) for item in loop.ranges]
    branches = [
        (branch, any(below is inner for inner in branch.then))
        for branch, below in pairwise(around)
        if isinstance(branch, Branch)
    ]
    return known.bounds(stmt, loops, branches)


def _starts(region: Operand, starts: list[Let]) -> Iterator[tuple[int, Sym, Let]]:
    """The axes of a region that begin at a value of the block that has a name."""
    if _is_tensor(region):
        for axis, dim in enumerate(region.dims or ()):
            for let in starts:
                if dim.lo == let.bound:
                    yield axis, dim.lo, let


def _is_tensor(operand: Operand) -> bool:
    return operand.buffer.memory is Memory.GM


def _may_lie_behind(bounds: Bounds, low: Sym, extent: Sym) -> bool:
    value = bounds.expanded(low)
    by_data = any(is_load(atom) for atom in value.atoms())
    return by_data and not (bounds.is_not_negative(extent - 1 - value) or is_sensible(bounds, value, True))


def _lies_behind(bounds: Bounds, operand: Operand, low: Sym, extent: Sym) -> bool:
    """Whether what is stored lies behind the end if the rows from ``low`` on do."""
    dims = zip(operand.dims or (), operand.buffer.shape, strict=False)
    return any(size == extent and bounds.is_not_negative(dim.lo - low) for dim, size in dims)


def _write(job: Job, start: Let, extent: cst.BaseExpression) -> None:
    """The condition around all statements behind ``start``, allocations excepted."""
    launch = job.kernel.launched
    body = launch.node.body
    assert isinstance(body, cst.IndentedBlock)
    allocated = {id(stmt.node) for stmt in job.kernel.body if isinstance(stmt, Alloc)}
    kept: list[cst.BaseStatement] = []
    moved: list[cst.BaseStatement] = []
    texts: list[cst.CSTNode] = [extent]  # what is read in front of statements that it stood behind
    begun = False
    for line in body.body:
        smalls = line.body if isinstance(line, cst.SimpleStatementLine) else ()
        own = bool(smalls) and all(id(small) in allocated for small in smalls)
        (kept if own or not begun else moved).append(line)
        texts += smalls if own and moved else ()
        begun = begun or any(small is start.node for small in smalls)
    bound = {let.name for let in job.kernel.walk() if isinstance(let, Let)}
    if not moved or any(name.value in bound for text in texts for name in names_in(text)):
        return
    test = f"{start.name} < {code(extent)}"
    (guarded,) = parse(job, f"if {test}:\n    pass\n", launch.node)
    assert isinstance(guarded, cst.If)
    assert isinstance(guarded.body, cst.IndentedBlock)
    above = list(getattr(moved[0], "leading_lines", ()))
    if above:  # the paragraph begins with the condition
        gap = list(takewhile(lambda line: line.comment is None, above))
        moved[0] = moved[0].with_changes(leading_lines=above[len(gap) :])
        guarded = guarded.with_changes(leading_lines=gap)
    inner = guarded.body.with_changes(body=moved, footer=body.footer)
    edits = Edits(job.file.index)
    edits.replace(body, body.with_changes(body=[*kept, guarded.with_changes(body=inner)], footer=()))
    job.apply(edits)
    text = f"blocks that begin behind the last row have nothing to do: wrote `if {test}:`"
    job.change("TL178", start.node, text)
