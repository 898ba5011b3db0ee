"""TL438: elements behind the end of a tensor are neither loaded nor stored.

A GPU loads zeros there and stores nothing; the code generator of AscendNPU IR takes the address as it is. Copies and
vector operations end elsewhere (``edges.py``): these are the statements that run element by element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Operand, Store
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import flat
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import parse
from tl2npu.source.tree import replaced


def guard(job: Job, behind: Iterable[tuple[Store, Mapping[Operand, Collection[int]]]]) -> None:
    """Write a branch around each of these statements; with it, the axes along which its operands may leave."""
    plan = Plan(job)
    for stmt, found in behind:
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
        plan.replace(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        job.change("TL438", stmt.node, "wrote a branch: nothing behind the end of the tensor is loaded or stored")
    plan.apply()


def _tests(operand: Operand, axes: Collection[int]) -> Iterator[str]:
    """The conditions under which an element lies in front of the end of its tensor along some axes."""
    for axis in axes:
        yield f"{flat((operand.dims or ())[axis].node)} < {code(operand.buffer.shape_nodes[axis])}"
