"""TL174: a ``T.alloc_var`` that is given one value is a name for that value.

The Ascend compiler stores a variable on the cube core only, and vector cores keep reading what it held before (TL860);
a name for a value is computed on each core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Let, Memory, Opaque, Scalar, Stmt, children
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in


def name_values(job: Job) -> None:
    """Write ``x = value`` for ``x = T.alloc_var("int32")`` and one ``x = value`` behind it in the same block."""
    if any(isinstance(stmt, Opaque) for stmt in job.kernel.walk()):
        return  # it may assign
    found = {alloc.buffer.name: (alloc, let) for alloc, let in _pairs(job, job.kernel.body)}
    for name in _unsettled(job, {name: let.value for name, (_, let) in found.items()}):
        del found[name]
    edits = Edits(job.file.index)
    for name, (alloc, let) in found.items():
        assert isinstance(let.node, cst.Assign)
        dtype, value = element_type(job, alloc.buffer), let.value
        if any(operand.buffer.dtype != dtype for operand in value.loads):
            # the variable had this type, whatever the tensor's is
            edits.replace(let.node.value, expression(job, f"T.cast({code(value.node)}, {dtype!r})", let.node))
        edits.remove(alloc.node)
        job.change("TL174", alloc.node, f"`{name}` is given one value: made it a name for that value")
    job.apply(edits)


def _pairs(job: Job, body: Sequence[Stmt]) -> Iterator[tuple[Alloc, Let]]:
    """Integers that are allocated and then assigned in one block, and mentioned nowhere else before that."""
    every = [name.value for name in names_in(job.located.node.body)]
    for position, alloc in enumerate(body):
        for inner in children(alloc):
            yield from _pairs(job, inner)
        if not isinstance(alloc, Alloc) or alloc.via or alloc.buffer.memory is not Memory.VAR:
            continue
        name = alloc.buffer.name
        behind = body[position + 1 :]
        first = next((n for n, stmt in enumerate(behind) if name in mentioned(stmt.node)), None)
        let = behind[first] if first is not None else None
        if not isinstance(let, Let) or let.via or let.name != name or not isinstance(let.node, cst.Assign):
            continue
        targets = [target.target for target in let.node.targets]
        alone = len(targets) == 1 and isinstance(targets[0], cst.Name) and name not in mentioned(let.node.value)
        within = sum(names.count(name) for names in ([n.value for n in names_in(stmt.node)] for stmt in body))
        stored = sum(isinstance(stmt, Let) and stmt.name == name for stmt in job.kernel.walk())
        whole = element_type(job, alloc.buffer).startswith("int")
        if alone and whole and stored == 1 and within == every.count(name) and _is_statement(job, alloc, let):
            yield alloc, let


def _is_statement(job: Job, *stmts: Stmt) -> bool:
    """Whether each is written as one line of its own: ``x, y = a, b`` is two statements."""
    nodes = [id(stmt.node) for stmt in job.kernel.walk()]
    return all(nodes.count(id(stmt.node)) == 1 for stmt in stmts)


def _unsettled(job: Job, values: dict[str, Scalar]) -> set[str]:
    """Names whose value may be another one later: it reads what the kernel writes, or a variable that changes."""
    written = {operand.buffer for stmt in job.kernel.walk() for operand in writes(stmt)}
    variables = {buffer.name for buffer in job.kernel.buffers.values() if buffer.memory is Memory.VAR}
    found = {
        name
        for name, value in values.items()
        if any(operand.buffer in written or operand.buffer.memory is not Memory.GM for operand in value.loads)
    }
    while True:
        changing = (variables - values.keys()) | found
        more = {name for name, value in values.items() if mentioned(value.node) & changing} - found
        if not more:
            return found
        found |= more
