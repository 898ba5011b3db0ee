"""TL119: names that get another value in a parallel loop, ``r = T.max(x, lo)`` and then ``r = T.min(r, hi)``.

Each value gets a name of its own. So what a name stands for does not depend on the place, and operands in global memory
can be moved in front of the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Alloc, Loop, Memory, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.passes.writing.substitute import bound_names, substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of


def separate(job: Job) -> None:
    """Rename the second and later values of names that are bound line by line in one block."""
    edits, names = Edits(job.file.index), Names(job)
    variables = {stmt.buffer.name for stmt in job.kernel.walk() if isinstance(stmt, Alloc)}
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via:
            continue
        if not any(access.operand.buffer.memory is Memory.GM for stmt in walk(loop.body) for access in accesses(stmt)):
            continue
        for block in nodes_of(loop.node, cst.IndentedBlock):
            for name in _rebound(job, block):
                if name not in variables:
                    _rename(edits, names, block, name)
                    job.change("TL119", block, f"a name for each value of `{name}`")
    job.apply(edits)


def _rebound(job: Job, block: cst.IndentedBlock) -> Iterator[str]:
    """Names that lines of the block bind more than once, and nothing else in the kernel binds or reads."""
    times = Counter(name for line in block.body if isinstance(line, cst.SimpleStatementLine) for name in _bound(line))
    for name, count in times.items():
        everywhere = [found for found in names_in(job.located.node.body) if found.value == name]
        here = [found for found in names_in(block) if found.value == name]
        nested = [line for line in block.body if isinstance(line, cst.BaseCompoundStatement)]
        if count > 1 and len(everywhere) == len(here) and not any(name in bound_names(line) for line in nested):
            yield name


def _bound(line: cst.SimpleStatementLine) -> Iterator[str]:
    """The name of a line that is nothing but ``name = value``."""
    statement = line.body[0] if len(line.body) == 1 else None
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        if isinstance(target, cst.Name):
            yield target.value


def _rename(edits: Edits, names: Names, block: cst.IndentedBlock, name: str) -> None:
    """The first value keeps the name."""
    now: str | None = None
    for line in block.body:
        binds = isinstance(line, cst.SimpleStatementLine) and name in _bound(line)
        new = name if now is None else now
        if binds:
            statement = cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assign)
            value = substituted(statement.value, {name: cst.Name(new)})
            now = name if now is None else names.fresh(name)
            target = statement.targets[0].with_changes(target=cst.Name(now))
            edits.replace(statement, cst.Assign([target], cst.ensure_type(value, type(value))))  # type: ignore[arg-type]
        elif new != name and any(found.value == name for found in names_in(line)):
            edits.replace(line, substituted(line, {name: cst.Name(new)}))
