"""TL436: the older spelling of AscendNPU IR kernels, which today's compiler rejects or takes for something else.

Copies once had their size in third place, where today ``coalesced_width`` stands; ``T.exp`` and others were operators
on tiles, and are functions of one number today (``T.vexp`` is the operator); reductions had ``clear`` in fourth place.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.npuir import OLDER_FUNCTIONS
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Copy, Op, Opaque, Scalar, Stmt
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in


def refuse_older(job: Job) -> None:
    """Raise :class:`Blocked` for a statement that meant something else once."""
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy):
            size = stmt.options.get("coalesced_width")
            if size is not None and isinstance(size.node, (cst.List, cst.Tuple)):
                raise Blocked("TL436", stmt.node, "the third argument of a copy is no size any more: write `size=`")
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE:
            given = stmt.args.get("size")
            if isinstance(given, Scalar) and isinstance(given.node, cst.Name) and given.node.value in ("True", "False"):
                raise Blocked("TL436", stmt.node, "the fourth argument of a reduction is its size: write `clear=`")
        if isinstance(stmt, (Op, Opaque)):
            _refuse_function(job, stmt)


def _refuse_function(job: Job, stmt: Stmt) -> None:
    """``T.exp(C, D)`` on tiles."""
    call = next(iter(calls_in(stmt.node)), None)
    name = job.file.names.operator(call.func) if call is not None else ""
    if call is not None and name in OLDER_FUNCTIONS:
        tiles = [job.file.evaluator.operand(arg.value, stmt.env) for arg in call.args if arg.keyword is None]
        if len(tiles) == len(call.args) == 2 and None not in tiles:
            text = f"`T.{name}` is a function of one number: write `T.{OLDER_FUNCTIONS[name]}`"
            raise Blocked("TL436", stmt.node, text)
