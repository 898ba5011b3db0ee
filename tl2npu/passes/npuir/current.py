"""TL434, TL435: the older spelling of AscendNPU IR kernels.

Copies once had their size in third place, where today ``coalesced_width`` stands; ``T.exp`` and others were operators
on tiles, and are functions of one number today (``T.vexp`` is the operator); reductions had ``clear`` in fourth place.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.npuir import OLDER_FUNCTIONS
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Op, Opaque, Operand, Scalar, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import parse
from tl2npu.source.tree import calls_in

_LANGUAGE = "tilelang.language."


def bring_up_to_date(job: Job) -> None:
    """Rewrite what today's compiler would reject or take for something else."""
    plan = Plan(job)
    for stmt in job.kernel.walk():
        text = _copy(stmt) if isinstance(stmt, Copy) else _reduction(stmt) if isinstance(stmt, Op) else None
        if isinstance(stmt, Copy) and text is not None:
            job.change("TL434", stmt.node, f"wrote the size as slices: `{text}`")
        elif text is not None:
            job.change("TL435", stmt.node, f"passed `clear` by name: `{text}`")
        if isinstance(stmt, Opaque) or (isinstance(stmt, Op) and stmt.op.name in OLDER_FUNCTIONS):
            text = _operator(job, stmt)
        if text is None:
            continue
        if stmt.via:
            raise Blocked("TL436", stmt.node, "this statement is in a macro, which cannot be changed")
        plan.replace(stmt.node, parse(job, text + "\n", stmt.node))
    plan.apply()


def _copy(stmt: Copy) -> str | None:
    size = stmt.options.get("coalesced_width")
    if size is None or not isinstance(size.node, (cst.List, cst.Tuple)):
        return None
    extents = [code(element.value) for element in size.node.elements]
    return f"T.copy({_region(stmt, stmt.src, extents)}, {_region(stmt, stmt.dst, extents)})"


def _region(stmt: Copy, side: Operand, extents: list[str]) -> str:
    """The side of a copy with the last extents that it has axes for."""
    rank = len(side.buffer.shape)
    starts = ["0"] * rank if side.dims is None else [code(dim.node) for dim in side.dims]
    if side.dims is not None and (len(starts) != rank or not all(dim.is_point for dim in side.dims)):
        text = f"`{code(side.node)}` gives a size, and the third argument gives another"
        raise Blocked("TL436", stmt.node, text)
    sizes = ["1"] * (rank - len(extents)) + extents[-rank:]
    parts = [_slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    return f"{side.buffer.name}[{', '.join(parts)}]"


def _slice(start: str, size: str) -> str:
    if size == "1":
        return start
    stop = size if start == "0" else f"{start} + {size}"
    return f"{start} : {stop}" if start != "0" or not size.isidentifier() else f"{start}:{stop}"


def _reduction(stmt: Op) -> str | None:
    """``T.reduce_max(x, m, 1, True)``: the fourth argument is ``size`` today."""
    size = stmt.args.get("size")
    given = stmt.call.args
    if stmt.op.kind is not Kind.REDUCE or not isinstance(size, Scalar) or any(arg.keyword for arg in given[:4]):
        return None
    if not isinstance(size.node, cst.Name) or size.node.value not in ("True", "False"):
        return None
    texts = [code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in given]
    texts[3] = f"clear={code(size.node)}"
    return f"T.{stmt.op.name}({', '.join(texts)})"


def _operator(job: Job, stmt: Stmt) -> str | None:
    """``T.exp(C, D)`` on tiles; raises :class:`Blocked` for anything else that is not understood."""
    call = next(iter(calls_in(stmt.node)), None)
    name = (job.file.names.resolve(call.func) or "").removeprefix(_LANGUAGE) if call is not None else ""
    if call is None or name not in OLDER_FUNCTIONS or not _are_tiles(job, stmt, call):
        if isinstance(stmt, Opaque) and stmt.buffers:
            raise Blocked("TL436", stmt.node, stmt.why)
        return None
    args = ", ".join(code(arg.value) for arg in call.args)
    job.change("TL435", stmt.node, f"wrote `T.{OLDER_FUNCTIONS[name]}` for `T.{name}` on tiles")
    return f"T.{OLDER_FUNCTIONS[name]}({args})"


def _are_tiles(job: Job, stmt: Stmt, call: cst.Call) -> bool:
    """Two tiles and nothing else."""
    env = stmt.env
    operands = [job.file.evaluator.operand(arg.value, env) for arg in call.args if arg.keyword is None]
    return len(operands) == len(call.args) == 2 and all(operand is not None for operand in operands)
