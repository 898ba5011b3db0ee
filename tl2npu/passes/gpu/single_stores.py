"""TL606: ``Y[bx] = s[0]``, one element that is stored to global memory by itself, goes there by a copy.

Nothing in such a store tells the compiler that it belongs to the vector core: it runs on the cube core, which cannot
read UB (TL861, TL895). The value is put into a row of 32 bytes, of which a copy takes one element.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Memory, Operand, Scalar, Store, walk_with_parents
from tl2npu.passes.gpu.element_copies.strided import lanes_of
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import allocate_above, dtype_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def to_copies(job: Job) -> None:
    """Write a copy for every store of a single element whose value is made of what UB holds."""
    names = Names(job)
    until_settled(job, lambda: _write(job, names))


def _write(job: Job, names: Names) -> bool:
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Store) or stmt.via or stmt.target.buffer.memory is not Memory.GM:
            continue
        if any(isinstance(above, Loop) and above.kind in ("parallel", "vectorized") for above in parents):
            continue
        line, place = job.file.index.parent(stmt.node), _place(stmt.target)
        plain = isinstance(stmt.node, cst.Assign) and len(stmt.node.targets) == 1
        if not plain or place is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            continue
        if next(_loads_of_ub(job, stmt.value, frozenset()), None) is None:
            continue
        tensor = stmt.target.buffer
        row = names.fresh(f"{tensor.name.lower()}_row")
        text = f"{row}[0, 0] = {code(stmt.value.node)}\nT.copy({row}[0, 0:1], {place})\n"
        job.change("TL606", stmt.node, f"stored `{code(stmt.target.node)}` by a copy of one element")
        made = f"{row} = T.alloc_shared([1, {lanes_of(job, tensor)}], {dtype_text(tensor)})\n"
        edits = Edits(job.file.index)
        allocate_above(job, edits, parents[0] if parents else stmt, made, line)
        job.apply(edits)  # the statement may be the first one
        edits, new = Edits(job.file.index), parse(job, text, line)
        edits.replace_many(line, [new[0].with_changes(leading_lines=line.leading_lines), *new[1:]])
        job.apply(edits)
        return True
    return False


def _place(target: Operand) -> str | None:
    """The element as a region of one element; None for anything else."""
    dims = target.dims or ()
    if len(dims) != len(target.buffer.shape) or not all(dim.is_point for dim in dims) or not dims:
        return None
    *outer, last = (code(dim.node) for dim in dims)
    end = str(int(last) + 1) if last.isdigit() else f"{last} + 1"
    part = f"{last}:{end}" if last.isdigit() else f"{last} : {end}"
    return f"{target.buffer.name}[{', '.join([*outer, part])}]"


def _loads_of_ub(job: Job, value: Scalar, seen: frozenset[str]) -> Iterator[Operand]:
    """What a value reads in UB, by itself or through names that stand for elements."""
    yield from (load for load in value.loads if load.buffer.memory in (Memory.UB, Memory.L1))
    used = frozenset(name.value for name in names_in(value.node)) - seen
    for stmt in job.kernel.walk() if used else ():
        if isinstance(stmt, Let) and stmt.name in used:
            assert isinstance(stmt, Let)
            yield from _loads_of_ub(job, stmt.value, seen | used)
