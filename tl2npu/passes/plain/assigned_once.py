"""TL174: a ``T.alloc_var`` that is given one value, or a choice of values, is a name for that value.

The Ascend compiler stores a variable on the cube core only, and vector cores keep reading what it held before (TL860);
a name for a value is computed on each core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Let, Loop, Memory, Opaque, Scalar, Stmt, Store, children, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import expression, parse
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of
from tl2npu.source.tree import walk as walk_nodes


def name_values(job: Job) -> None:
    """Write ``x = value`` for ``x = T.alloc_var("int32")`` and one ``x = value`` behind it in the same block.

    ``x = T.alloc_local([1], "int32")`` with ``x[0] = value`` is the same, and so is one value in each arm of an ``if``
    that Python decides. Where the kernel decides, ``if c: x = other`` is ``x = T.if_then_else(c, other, x)``.
    An element of a tile takes the place of the variable that holds it, as long as nothing writes the tile.
    """
    if any(isinstance(stmt, Opaque) for stmt in job.kernel.walk()):
        return  # it may assign
    found = dict(_given(job, job.kernel.body))
    named = {name: given for name, given in found.items() if not given.in_place}
    for name in _unsettled(job, {name: given.scalars for name, given in named.items()}):
        del found[name]
    edits = Edits(job.file.index)
    for name, given in found.items():
        dtype = element_type(job, given.alloc.buffer)
        for node, value in given.values if not given.in_place else ():
            if any(operand.buffer.dtype != dtype for operand in value.loads) and not given.choices:
                # the variable had this type, whatever the tensor's is
                edits.replace(node.value, expression(job, f"T.cast({code(value.node)}, {dtype!r})", node))
        if given.choices:
            *gone, last = given.statements
            for statement in gone:
                edits.remove(statement)
            edits.replace_many(last, parse(job, _choice(given), last))
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


Value: TypeAlias = tuple[cst.Assign, Scalar]


@dataclass(frozen=True)
class _Given:
    """A variable, and the assignments of which Python takes one, each with its value.

    ``in_place``: an element of a tile, which can be read wherever the variable is. ``choices``: the branches that the
    kernel decides, whose values ``values`` has too.
    """

    alloc: Alloc
    values: list[Value]
    in_place: bool
    choices: list[Branch]

    @property
    def statements(self) -> list[cst.CSTNode]:
        """Of a choice: the assignment before the branches, if there is one, and the branches."""
        inside = {id(node) for choice in self.choices for node in nodes_of(choice.node, cst.Assign)}
        return [*(node for node, _ in self.values if id(node) not in inside), *(choice.node for choice in self.choices)]

    @property
    def scalars(self) -> list[Scalar]:
        """All that the value depends on."""
        return [*(value for _, value in self.values), *(choice.cond for choice in self.choices)]


def _given(job: Job, body: Sequence[Stmt]) -> Iterator[tuple[str, _Given]]:
    """Variables that are allocated and then assigned in one block, and mentioned nowhere else before that."""
    every = Counter(name.value for name in names_in(job.located.node.body))
    for position, alloc in enumerate(body):
        for inner in children(alloc):
            yield from _given(job, inner)
        if not isinstance(alloc, Alloc) or alloc.via or not is_scalar(alloc.buffer):
            continue
        name = alloc.buffer.name
        scope = _scope(body[position + 1 :], name)
        first = next((stmt for stmt in scope if name in mentioned(stmt.node)), None)
        values = _arms(job, first, alloc.buffer) if first is not None else None
        within = sum(Counter(n.value for n in names_in(stmt.node))[name] for stmt in body)
        stored = sum(_stores(stmt, alloc.buffer) for stmt in job.kernel.walk())
        whole = element_type(job, alloc.buffer).startswith("int")
        choices: list[Branch] = []
        if stored > len(values or ()) and whole and alloc.buffer.memory is Memory.VAR:
            values, choices = _chosen(job, scope, alloc.buffer)
        in_place = first is not None and values is not None and _stays(job, alloc, scope[scope.index(first) :], values)
        if values is None or not (whole or in_place) or stored != len(values) or within != every[name]:
            continue
        if alloc.buffer.memory is not Memory.VAR and len(_elements(job, name)) != every[name] - 1:
            continue  # an operator has it as a whole
        if _is_statement(job, alloc, *(stmt for stmt in walk([first] if first else []) if _stores(stmt, alloc.buffer))):
            yield name, _Given(alloc, values, in_place, choices)


def _scope(body: Sequence[Stmt], name: str) -> Sequence[Stmt]:
    """The block with all statements about a variable: that of the allocation, or of a loop of which every turn starts
    anew."""
    about = [stmt for stmt in body if name in mentioned(stmt.node)]
    loop = about[0] if len(about) == 1 else None
    if not isinstance(loop, Loop) or loop.kind == "parallel" or loop.via or not isinstance(loop.node, cst.For):
        return body
    return body if name in mentioned(loop.node.iter) else _scope(loop.body, name)


def _chosen(job: Job, scope: Sequence[Stmt], buffer: Buffer) -> tuple[list[Value] | None, list[Branch]]:
    """The values of a variable that a block gives it at one place, and the branches there by which the kernel decides:
    each with one value, and one more before them or in the ``else`` of the first."""
    places = [place for place, stmt in enumerate(scope) if any(_stores(inner, buffer) for inner in walk([stmt]))]
    if places != [*range(places[0], places[-1] + 1)] if places else True:
        return None, []
    first, *rest = (scope[place] for place in places)
    begun = None if isinstance(first, Branch) else _arms(job, first, buffer)
    choices = rest if begun else [first, *rest]
    values = list(begun or ())
    for stmt in choices:
        arms = [stmt.then, *([stmt.orelse] if stmt.orelse else [])] if isinstance(stmt, Branch) else []
        found = [_arms(job, arm[0], buffer, again=bool(values)) if len(arm) == 1 else None for arm in arms]
        reads = isinstance(stmt, Branch) and buffer.name in mentioned(stmt.cond.node)
        if (
            len(arms) < (1 if values else 2)
            or (reads and not values)
            or any(arm is None or len(arm) != 1 for arm in found)
        ):
            return None, []
        values += [value for arm in found for value in arm or ()]
    branches = [stmt for stmt in choices if isinstance(stmt, Branch) and isinstance(stmt.node, cst.If) and not stmt.via]
    same = all(operand.buffer.dtype == buffer.dtype for _, value in values for operand in value.loads)
    return (values, branches) if same and len(branches) == len(choices) else (None, [])


def _choice(given: _Given) -> str:
    """One assignment for all of them."""
    name, values = given.alloc.buffer.name, [value.node for _, value in given.values]
    begun = len(values) - sum(2 if choice.orelse else 1 for choice in given.choices)
    before = {name: values.pop(0)} if begun else {}
    for choice in given.choices:
        then, cond = (code(substituted(node, before)) for node in (values.pop(0), choice.cond.node))
        other = code(substituted(values.pop(0), before)) if choice.orelse else code(before[name])
        before = {name: cst.parse_expression(f"T.if_then_else({cond}, {then}, {other})")}
    return f"{name} = {code(before[name])}\n"


def _stays(job: Job, alloc: Alloc, body: Sequence[Stmt], values: list[Value]) -> bool:
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


def _arms(job: Job, stmt: Stmt, buffer: Buffer, *, again: bool = False) -> list[Value] | None:
    """The assignments of a statement that gives the variable a value; None for any other, and for one that reads it
    where it has none yet (unless ``again``)."""
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
    if not isinstance(stmt.node, cst.Assign) or len(stmt.node.targets) != 1:
        return None
    if name in mentioned(stmt.node.value) and not again:
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
