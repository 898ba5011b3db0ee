"""TL236: a kernel that gathers rows into L1 needs one vectorised ``T.Parallel``.

Without one the compiler computes the row offset of the gather in the layout of L1 and uses it in the row-major
workspace (R-GATHER-LAYOUT, E80); a vectorised loop makes it drop that layout. One row loop over ``T.tile`` calls, which
means the same, becomes that loop.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Kernel, Loop, Memory, Op, Operand, Scalar, in_parallel
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits

_INFIX = {"tile.add": "+", "tile.sub": "-", "tile.mul": "*", "tile.div": "/"}


def gathers(kernel: Kernel) -> bool:
    """True if a row buffer is copied into rows of L1."""
    return any(
        isinstance(stmt, Copy)
        and stmt.src.buffer.memory is Memory.UB
        and stmt.dst.buffer.memory is Memory.L1
        and stmt.dst.dims is not None
        for stmt in kernel.walk()
    )


def vectorise_beside_gather(job: Job) -> None:
    """Turn the first suitable row loop into ``T.Parallel`` if the kernel gathers rows and has no such loop."""
    kernel = job.kernel
    if not gathers(kernel) or in_parallel(kernel.walk()):
        return
    for stmt in kernel.walk():
        text = _vectorised(job, stmt) if isinstance(stmt, Loop) and not stmt.via else None
        if text is None:
            continue
        assert isinstance(stmt.node, cst.For)
        new = cst.parse_statement(text, job.module.config_for_parsing)
        edits = Edits(job.file.index)
        edits.replace(stmt.node, new.with_changes(leading_lines=stmt.node.leading_lines))
        job.change("TL236", stmt.node, "wrote a vectorised loop, which the gather into L1 needs")
        job.apply(edits)
        return


def _vectorised(job: Job, loop: object) -> str | None:
    """``for h in range(M): T.tile.sub(x[h, :], y[h, :], m[h])`` as an element-wise loop."""
    assert isinstance(loop, Loop)
    if loop.kind != "serial" or len(loop.ranges) != 1 or len(loop.body) != 1 or not loop.ranges[0].start.is_zero:
        return None
    op, item = loop.body[0], loop.ranges[0]
    if not isinstance(op, Op) or op.op.name not in _INFIX or item.stop_node is None:
        return None
    args = list(op.args.values())
    if len(args) != 3:
        return None
    tiles = args[:2]
    if not all(isinstance(t, Operand) and _is_row(t, item.var) for t in tiles):
        return None
    dst, left = tiles
    assert isinstance(dst, Operand)
    assert isinstance(left, Operand)
    (column,) = Names(job).variables(("j", "d_i", "col"), inside=[op.node])
    right = _right(args[2], item.var, column)
    if right is None or item.extent != dst.buffer.shape[0]:
        return None
    parallel = job.file.names.spell("tilelang.language.Parallel", at=op.call.func) or "T.Parallel"
    rows, cols = code(item.stop_node), code(dst.buffer.shape_nodes[1])
    symbol = _INFIX[op.op.name]
    return (
        f"for {item.name}, {column} in {parallel}({rows}, {cols}):\n"
        f"    {dst.buffer.name}[{item.name}, {column}] = "
        f"{left.buffer.name}[{item.name}, {column}] {symbol} {right}\n"
    )


def _is_row(operand: Operand, row: object) -> bool:
    dims = operand.dims
    if dims is None or len(dims) != 2 or len(operand.buffer.shape) != 2:
        return False
    whole = dims[1].covers(operand.buffer.shape[1])
    return dims[0].is_point and dims[0].lo == row and whole


def _right(arg: Operand | Scalar, row: object, column: str) -> str | None:
    """The right operand for one element: a row vector ``m[h]`` stays, a row ``y[h, :]`` gets the column."""
    if isinstance(arg, Scalar):
        return code(arg.node) if not arg.loads else None
    if arg.dims and arg.is_indexed and arg.dims[0].lo == row:
        return code(arg.node)
    if _is_row(arg, row):
        assert arg.dims is not None
        first = arg.dims[0].node
        return f"{arg.buffer.name}[{code(first)}, {column}]"
    return None
