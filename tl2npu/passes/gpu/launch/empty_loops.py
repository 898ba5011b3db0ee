"""TL127: a loop that is empty in the first block, and has cross-core transfers, is left out of a grid of one block.

Measured with the compiler: where it knows that such a loop is empty, it drops the loop and keeps its flags, and the
cores wait for each other forever (pto), or it finds no memory for the loop's tiles (ascendc).
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tl2npu.kernel.access import side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Loop, Side, walk
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in

_CEILDIV = ("tilelang.language.ceildiv", "tilelang.cdiv")


def leave_out(job: Job) -> None:
    """Put ``if grid > 1:`` around the outermost such loops; before the grid is folded."""
    launch = job.kernel.launch
    if launch is None or len(launch.names) != len(launch.grid):
        return
    extents = [arg.value for arg in launch.call.args if arg.keyword is None]
    blocks = {
        name: node
        for name, node, value in zip(launch.names, extents, launch.grid, strict=False)
        if value.constant is None and not job.late.is_late(value) and is_outside(job, node)
    }
    edits = Edits(job.file.index)
    done: set[int] = set()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Loop) or id(stmt) in done or not isinstance(stmt.node, cst.For):
            continue
        inside = list(walk(stmt.body))
        name = _empty_at(stmt, blocks) if any(isinstance(s, Copy) and side_of(s) is Side.BOTH for s in inside) else ""
        if not name:
            continue
        done |= {id(inner) for inner in inside}
        test = _is_several(job, blocks[name])
        loop = stmt.node.with_changes(leading_lines=())
        guarded = cst.If(cst.parse_expression(test), cst.IndentedBlock([loop]), leading_lines=stmt.node.leading_lines)
        edits.replace(stmt.node, guarded)
        job.change("TL127", stmt.node, f"the loop is empty where `{name}` is 0: wrote `if {test}:`")
    job.apply(edits)


def _empty_at(loop: Loop, blocks: Mapping[str, cst.BaseExpression]) -> str:
    """The block index that makes the loop empty where it is 0."""
    if len(loop.ranges) != 1:
        return ""
    extent = loop.ranges[0].extent
    for name in blocks:
        variables = [found for found in extent.variables() if found.split("@")[0] == name]
        if variables and Bounds({}).is_not_negative(-extent.substitute(dict.fromkeys(variables, 0))):
            return name
    return ""


def _is_several(job: Job, extent: cst.BaseExpression) -> str:
    """The condition that a grid axis has more than one block; Python decides it."""
    divides = isinstance(extent, cst.Call) and job.file.names.resolve(extent.func) in _CEILDIV
    if isinstance(extent, cst.Call) and divides and len(extent.args) == 2:
        num, den = (arg.value for arg in extent.args)
        return f"{_operand(num)} > {_operand(den)}"
    return f"{_operand(extent)} > 1"


def _operand(node: cst.BaseExpression) -> str:
    """As a number of Python: of ``T.min(a, b) > 1`` the front end makes an expression, which has no truth."""
    if calls_in(node):
        return f"int({code(node)})"
    loose = isinstance(node, (cst.Comparison, cst.BooleanOperation, cst.IfExp)) and not node.lpar
    return f"({code(node)})" if loose else code(node)
