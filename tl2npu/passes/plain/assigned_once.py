"""TL174: a ``T.alloc_var`` that is given one value is a name for that value.

The Ascend compiler stores a variable on the cube core only, and vector cores keep reading what it held before (TL860);
a name for a value is computed on each core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Let, Loop, Memory, Opaque, Scalar, Stmt, Store, children, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of
from tl2npu.source.tree import walk as walk_nodes


def name_values(job: Job) -> None:
    """Write ``x = value`` for ``x = T.alloc_var("int32")`` and one ``x = value`` behind it in the same block.

    ``x = T.alloc_local([1], "int32")`` with ``x[0] = value`` is the same, and so is one value in each arm of an ``if``
    that Python decides. An element of a tile takes the place of the variable that holds it, as long as nothing writes
    the tile.
    """
    if any(isinstance(stmt, Opaque) for stmt in job.kernel.walk()):
        return  # it may assign
    found = dict(_given(job, job.kernel.body))
    named = {name: given for name, given in found.items() if not given.in_place}
    for name in _unsettled(job, {name: [value for _, value in given.values] for name, given in named.items()}):
        del found[name]
    edits = Edits(job.file.index)
    for name, given in found.items():
        dtype = element_type(job, given.alloc.buffer)
        for node, value in given.values if not given.in_place else ():
            if any(operand.buffer.dtype != dtype for operand in value.loads):
                # the variable had this type, whatever the tensor's is
                edits.replace(node.value, expression(job, f"T.cast({code(value.node)}, {dtype!r})", node))
        if given.in_place:
            (assigned, value), *_ = given.values
            target = assigned.targets[0].target
            for use in _uses(job, given.alloc):
                if use is not target:
                    edits.replace(use, value.node)
            edits.remove(assigned)
        elif given.alloc.buffer.memory is not Memory.VAR:
            for use in _elements(job, name):
                edits.replace(use, use.value)
        edits.remove(given.alloc.node)
        job.change("TL174", given.alloc.node, f"`{name}` is given one value: made it a name for that value")
    job.apply(edits)


@dataclass(frozen=True)
class _Given:
    """A variable, and the assignments of which Python takes one, each with its value.

    ``in_place``: an element of a tile, which can be read wherever the variable is.
    """

    alloc: Alloc
    values: list[tuple[cst.Assign, Scalar]]
    in_place: bool


def _given(job: Job, body: Sequence[Stmt]) -> Iterator[tuple[str, _Given]]:
    """Variables that are allocated and then assigned in one block, and mentioned nowhere else before that."""
    every = Counter(name.value for name in names_in(job.located.node.body))
    for position, alloc in enumerate(body):
        for inner in children(alloc):
            yield from _given(job, inner)
        if not isinstance(alloc, Alloc) or alloc.via or not is_scalar(alloc.buffer):
            continue
        name = alloc.buffer.name
        first = next((stmt for stmt in body[position + 1 :] if name in mentioned(stmt.node)), None)
        values = _arms(job, first, alloc.buffer) if first is not None else None
        within = sum(Counter(n.value for n in names_in(stmt.node))[name] for stmt in body)
        stored = sum(_stores(stmt, alloc.buffer) for stmt in job.kernel.walk())
        whole = element_type(job, alloc.buffer).startswith("int")
        in_place = first is not None and values is not None and _stays(job, alloc, body[body.index(first) :], values)
        if values is None or not (whole or in_place) or stored != len(values) or within != every[name]:
            continue
        if alloc.buffer.memory is not Memory.VAR and len(_elements(job, name)) != every[name] - 1:
            continue  # an operator has it as a whole
        if _is_statement(job, alloc, *(stmt for stmt in walk([first] if first else []) if _stores(stmt, alloc.buffer))):
            yield name, _Given(alloc, values, in_place)


def _stays(job: Job, alloc: Alloc, body: Sequence[Stmt], values: list[tuple[cst.Assign, Scalar]]) -> bool:
    """Whether the value is an element of a tile, of the variable's type, that stays until the variable's last use."""
    name, (_, value), *others = alloc.buffer.name, *values
    if others or len(value.loads) != 1 or value.loads[0].node is not value.node:
        return False
    (load,) = value.loads
    dtypes = {element_type(job, buffer) for buffer in (alloc.buffer, load.buffer)}
    if load.buffer.memory is Memory.GM or len(dtypes) > 1 or any(dim.loads for dim in load.dims or ()):
        return False
    last = max(place for place, stmt in enumerate(body) if name in mentioned(stmt.node))
    return not any(
        any(operand.buffer is load.buffer for operand in writes(stmt))
        or (isinstance(stmt, Loop) and mentioned(value.node) & {axis.name for axis in stmt.ranges})
        for stmt in walk(body[: last + 1])
    )


def _uses(job: Job, alloc: Alloc) -> list[cst.Name] | list[cst.Subscript]:
    name, made = alloc.buffer.name, names_in(alloc.node)
    if alloc.buffer.memory is not Memory.VAR:
        return _elements(job, name)
    return [use for use in names_in(job.located.node.body) if use.value == name and all(use is not n for n in made)]


def _elements(job: Job, name: str) -> list[cst.Subscript]:
    found = nodes_of(job.located.node.body, cst.Subscript)
    return [use for use in found if isinstance(use.value, cst.Name) and use.value.value == name]


def is_scalar(buffer: Buffer) -> bool:
    """``T.alloc_var``, or ``T.alloc_local`` of one element."""
    if buffer.memory is Memory.VAR:
        return True
    return buffer.alloc == "alloc_local" and len(buffer.shape) == 1 and buffer.shape[0].constant == 1


def _stores(stmt: Stmt, buffer: Buffer) -> bool:
    if isinstance(stmt, Store):
        return stmt.target.buffer is buffer
    return isinstance(stmt, Let) and stmt.name == buffer.name


def _arms(job: Job, stmt: Stmt, buffer: Buffer) -> list[tuple[cst.Assign, Scalar]] | None:
    """The assignments of a statement that gives the variable a value and does not read it; None for any other."""
    name = buffer.name
    if isinstance(stmt, Branch):
        decided = not stmt.cond.loads and not job.late.is_late(stmt.cond.sym)
        if not decided or stmt.via or name in mentioned(stmt.cond.node):
            return None
        found = []
        for arm in (stmt.then, stmt.orelse):
            about = [inner for inner in arm if name in mentioned(inner.node)]
            values = _arms(job, about[0], buffer) if len(about) == 1 else None
            if values is None:
                return None
            found += values
        return found
    if not _stores(stmt, buffer) or not isinstance(stmt, (Let, Store)) or stmt.via:
        return None
    if not isinstance(stmt.node, cst.Assign) or len(stmt.node.targets) != 1 or name in mentioned(stmt.node.value):
        return None
    target = stmt.node.targets[0].target
    is_own = isinstance(target, cst.Name) if isinstance(stmt, Let) else isinstance(target, cst.Subscript)
    fraction = any(isinstance(node, (cst.Float, cst.Divide)) for node in walk_nodes(stmt.node.value))
    return [(stmt.node, stmt.value)] if is_own and not fraction else None


def _is_statement(job: Job, *stmts: Stmt) -> bool:
    """Whether each is written as one line of its own: ``x, y = a, b`` is two statements."""
    nodes = [id(stmt.node) for stmt in job.kernel.walk()]
    return all(nodes.count(id(stmt.node)) == 1 for stmt in stmts)


def _unsettled(job: Job, values: dict[str, list[Scalar]]) -> set[str]:
    """Names whose value may be another one later: it reads what the kernel writes, or a variable that changes."""
    written = {operand.buffer for stmt in job.kernel.walk() for operand in writes(stmt)}
    variables = {buffer.name for buffer in job.kernel.buffers.values() if is_scalar(buffer)}
    found = {
        name
        for name, every in values.items()
        if any(
            operand.buffer in written or operand.buffer.memory is not Memory.GM
            for value in every
            for operand in value.loads
            if operand.buffer.name not in values
        )
    }
    while True:
        changing = (variables - values.keys()) | found
        more = {name for name, every in values.items() if any(mentioned(v.node) & changing for v in every)} - found
        if not more:
            return found
        found |= more
