"""TL178: blocks whose rows lie behind the end of a tensor, depending on data, are left out.

A grid for groups of rows has room for one more tile of every group, so some of its blocks have no rows, and the last
of them begin behind the end. A GPU loads zeros there and stores nothing. The NPU would load a full tile of other data
to L1 (:mod:`tl2npu.checks.operators.starts`). Where all that a block stores lies behind the end too, it does nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Copy, Inlined, Let, Loop, Memory, Opaque, Operand, Range
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
    for stmt, parents in everything:
        if not isinstance(stmt, Copy) or stmt.dst.buffer.memory is not Memory.L1 or not _is_tensor(stmt.src):
            continue
        bounds = known.around(stmt, parents)
        for dim, extent, size in zip(
            stmt.src.dims or (), stmt.src.buffer.shape, stmt.src.buffer.shape_nodes, strict=False
        ):
            start = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
            if start is None or not _may_lie_behind(bounds, dim.lo, extent):
                continue
            stores = [(s, p, operand) for s, p in everything for operand in writes(s) if _is_tensor(operand)]
            if all(_lies_behind(known.around(s, p), operand, dim.lo, extent) for s, p, operand in stores):
                _write(job, start, size)
                return


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


def _write(job: Job, start: cst.BaseExpression, extent: cst.BaseExpression) -> None:
    """The condition around all statements behind those that ``start`` needs, allocations excepted."""
    launch = job.kernel.launched
    body = cst.ensure_type(launch.node.body, cst.IndentedBlock)
    lets = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Let)]
    bound = Counter(let.name for let in lets) + Counter(range_.name for range_ in _ranges(job))
    needed = {name.value for name in names_in(start)}
    given = {id(let.node) for let in lets if let.name in needed}
    allocated = {id(stmt.node) for stmt in job.kernel.body if isinstance(stmt, Alloc)}
    lines = [line.body if isinstance(line, cst.SimpleStatementLine) else () for line in body.body]
    first = 1 + max((n for n, smalls in enumerate(lines) if any(id(small) in given for small in smalls)), default=-1)
    scalars = {*allocated, *(id(let.node) for let in lets)}
    while first < len(lines) and lines[first] and all(id(small) in scalars for small in lines[first]):
        first += 1
    kept, moved = list(body.body[:first]), list[cst.BaseStatement]()
    texts: list[cst.CSTNode] = [extent]  # what is read in front of statements that it stood behind
    for line, smalls in zip(body.body[first:], lines[first:], strict=True):
        own = bool(smalls) and all(id(small) in allocated for small in smalls)
        (kept if own else moved).append(line)
        texts += smalls if own and moved else ()
    outside = sum(any(id(small) in given for small in smalls) for smalls in lines)
    if not moved or any(bound[name] > 1 for name in needed) or sum(bound[name] for name in needed) != outside:
        return
    if any(bound[name.value] for text in texts for name in names_in(text)):
        return
    test = f"{code(start)} < {code(extent)}"
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
    text = f"blocks that begin behind the last row have nothing to do: wrote `if {test}:`"
    job.change("TL178", start, text)
    job.apply(edits)


def _ranges(job: Job) -> Iterator[Range]:
    return (item for loop in job.kernel.walk() if isinstance(loop, Loop) for item in loop.ranges)
