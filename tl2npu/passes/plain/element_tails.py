"""TL178, TL438: single elements behind the end of a tensor are neither loaded nor stored.

A GPU loads zeros there and stores nothing (``LegalizeSafeMemoryAccess``); the code generators of the NPU take the
address as it is. Copies and vector operations end elsewhere: these are the statements that run element by element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, Operand, Stmt, Store
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import expression, flat, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import children, names_in, replaced


def guard(job: Job, behind: Iterable[tuple[Stmt, Mapping[Operand, Collection[int]]]]) -> None:
    """Write a branch around each store; with it, the axes along which its operands may leave.

    A name that one store alone reads goes with it into the branch. Other statements take the last element instead:
    nothing is computed with it that is stored, or the check of every run sees that it is not 0.
    """
    plan, told = Plan(job), "TL438" if job.options.target == "npuir" else "TL178"
    others: list[tuple[Stmt, Operand, Collection[int]]] = []
    for stmt, found in behind:
        store = stmt if isinstance(stmt, Store) else _reader(job, stmt)
        if store is None:
            others += [(stmt, operand, axes) for operand, axes in found.items()]
            continue
        lines = _branches(store, found) if store is stmt else _with_name(stmt, store, found)
        plan.replace(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        if store is not stmt:
            plan.remove(store.node, absorbed=True)
        text = "wrote a branch: nothing behind the end of the tensor is loaded or stored"
        job.change(told, stmt.node, text)
    plan.apply()
    edits, job.has_kept_inside = Edits(job.file.index), job.has_kept_inside or bool(others)
    for stmt, operand, axes in others:
        edits.replace(operand.node, _kept_inside(job, operand, axes))
        job.change(told, stmt.node, f"kept the index of `{operand.buffer.name}` inside of it")
    job.apply(edits)


def _reader(job: Job, stmt: Stmt) -> Store | None:
    """The store in the line behind a name, if nothing else reads that."""
    if not isinstance(stmt, Let):
        return None
    index = job.file.index
    above = index.parent(index.parent(stmt.node) or stmt.node)
    lines = children(above) if above is not None else []
    behind = [node for line, node in pairwise(lines) if stmt.node in children(line)]
    store = next((one for one in job.kernel.walk() if behind and one.node in children(behind[0])), None)
    if not isinstance(store, Store) or store.target.buffer.memory is Memory.GM:
        return None
    uses = [name for name in names_in(job.located.node) if name.value == stmt.name]
    inside = {id(name) for name in names_in(store.value.node)}
    return store if sum(id(name) not in inside for name in uses) == 1 else None


def _branches(stmt: Store, found: Mapping[Operand, Collection[int]]) -> list[str]:
    inside = list(_tests(stmt.target, found.get(stmt.target, ())))
    loads = [load for load in stmt.value.loads if load in found]
    tests = dict.fromkeys(test for load in loads for test in _tests(load, found[load]) if test not in inside)
    lines = [flat(stmt.node)]
    if tests:
        zeros: dict[int, cst.CSTNode] = {id(load.node): cst.Integer("0") for load in loads}
        elsewhere = flat(replaced(stmt.node, zeros))
        lines = [f"if {' and '.join(tests)}:", f"    {lines[0]}", "else:", f"    {elsewhere}"]
    if inside:
        lines = [f"if {' and '.join(inside)}:", *(f"    {line}" for line in lines)]
    return lines


def _with_name(name: Stmt, store: Store, found: Mapping[Operand, Collection[int]]) -> list[str]:
    """``x = X[i]`` and ``total[0] += x`` where ``i`` is inside; elsewhere the store of what a 0 gives."""
    assert isinstance(name, Let)
    tests = dict.fromkeys(test for load, axes in found.items() for test in _tests(load, axes))
    lines = [f"if {' and '.join(tests)}:", f"    {flat(name.node)}", f"    {flat(store.node)}"]
    node, sums = store.node, (cst.AddAssign, cst.SubtractAssign)
    if isinstance(node, cst.AugAssign) and isinstance(node.operator, sums) and code(node.value) == name.name:
        return lines
    value = replaced(name.value.node, {id(load.node): cst.Integer("0") for load in found})
    elsewhere = {id(use): value for use in names_in(store.value.node) if use.value == name.name}
    return [*lines, "else:", f"    {flat(replaced(node, elsewhere))}"]


def _kept_inside(job: Job, load: Operand, axes: Collection[int]) -> cst.BaseExpression:
    """The element with indices that end with the tensor along some axes."""
    indices = [flat(dim.node) for dim in load.dims or ()]
    for axis in axes:
        indices[axis] = f"T.min({indices[axis]}, {code(load.buffer.shape_nodes[axis])} - 1)"
    return expression(job, f"{load.buffer.name}[{', '.join(indices)}]", load.node)


def _tests(operand: Operand, axes: Collection[int]) -> Iterator[str]:
    """The conditions under which an element lies in front of the end of its tensor along some axes."""
    for axis in axes:
        yield f"{flat((operand.dims or ())[axis].node)} < {code(operand.buffer.shape_nodes[axis])}"
