"""Every statement of a kernel in the words of AscendNPU IR; the model of the kernel is not needed after that."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.npuir import OPERATORS
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Copy, Op, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.passes.npuir.from_ascend import copies, operators
from tl2npu.passes.npuir.from_ascend.row_loops import find
from tl2npu.passes.npuir.from_ascend.writer import Writer
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import parse
from tl2npu.source.tree import calls_in

_CODES = {"gemm_v0": "TL422", "tile.fill": "TL426", "tile.clear": "TL426", "tile.broadcast": "TL426"}


def statements(job: Job) -> None:
    """Rewrite what has another form; raises :class:`Blocked` for what has none."""
    kernel = job.kernel
    loops = find(kernel)
    inside = {id(stmt): loop for loop in loops.values() for stmt in loop.loop.body}
    plan = Plan(job)
    writer = Writer(job)
    for stmt in kernel.walk():
        if id(stmt) in inside:
            continue
        found = loops.get(id(stmt))
        if found is not None:
            writer.rows = found
            new = [line for inner in found.loop.body for line in _lines(writer, inner) or ()]
            writer.rows = None
            job.change("TL424", stmt.node, "wrote operators on whole tiles for the loop over rows")
        else:
            lines = _lines(writer, stmt)
            if lines is None:
                continue
            new = lines
            _record(job, stmt, new)
        if stmt.via:
            raise Blocked("TL430", stmt.node, "this statement is in a macro that other code may use")
        plan.replace(stmt.node, parse(job, "\n".join(new) + "\n", stmt.node))
    plan.apply()
    imports.complete(job, _bare_names(job), {"tile", "gemm_v0"})


def _bare_names(job: Job) -> set[str]:
    """Operators that the kernel calls by a name that is not imported yet."""
    function = job.located.node
    called = {node.func.value for node in calls_in(function) if type(node.func) is cst.Name}
    return {name for name in called if name in OPERATORS and job.file.names.resolve(cst.Name(name)) is None}


def _lines(writer: Writer, stmt: Stmt) -> list[str] | None:
    if isinstance(stmt, Op):
        return operators.lines(writer, stmt)
    return copies.lines(writer, stmt) if isinstance(stmt, Copy) else None


def _record(job: Job, stmt: Stmt, new: list[str]) -> None:
    code = _CODES.get(stmt.op.name, "TL421") if isinstance(stmt, Op) else "TL421"
    last = next((line for line in reversed(new) if "(" in line), new[-1]).strip()
    old = f"T.{stmt.op.name}" if isinstance(stmt, Op) else "T.copy"
    job.change(code, stmt.node, f"`{old}` -> `{last}`")
