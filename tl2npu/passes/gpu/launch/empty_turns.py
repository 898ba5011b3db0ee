"""TL178: turns of a loop that add products of nothing are left out.

Blocks of blocks end in such turns: with 70 rows, in blocks of 64 of which each has two parts of 32, the last part
begins in row 96. A GPU loads zeros there and adds products of zeros. The NPU would load a full tile of other data
(:mod:`tl2npu.checks.operators.starts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Let, Loop, Memory, Op, Operand, Scalar, Stmt
from tl2npu.kernel.model import walk_with_parents as walk
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def leave_out(job: Job) -> bool:
    """Put ``if start < rows:`` around the body of such loops; False where there is none."""
    known = Known(job.kernel, job.located.evaluator)
    edits = Edits(job.file.index)
    for stmt, parents in walk(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.kind not in ("serial", "unroll") or not isinstance(stmt.node, cst.For):
            continue
        found = _start(stmt, known, parents)
        if found is None:
            continue
        start, extent = found
        body = stmt.node.body
        if not isinstance(body, cst.IndentedBlock) or {n.value for n in names_in(start)} & assigned_names(body):
            continue
        test = f"{code(start)} < {code(extent)}"
        (guarded,) = parse(job, f"if {test}:\n    pass\n", stmt.node)
        assert isinstance(guarded, cst.If)
        edits.replace(body, body.with_changes(body=[guarded.with_changes(body=body)]))
        job.change("TL178", stmt.node, f"turns that begin behind the end have nothing to do: wrote `if {test}:`")
    job.apply(edits)
    return bool(edits)


def _start(loop: Loop, known: Known, parents: Sequence[Stmt]) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Where the rows of a turn begin, and how many there are, if a turn of a loop only adds products over its rows."""
    loads: dict[int, Copy] = {}
    products: list[Op] = []
    for stmt in loop.body:
        if isinstance(stmt, Copy) and stmt.src.buffer.memory is Memory.GM and stmt.dst.buffer.memory is Memory.L1:
            loads[id(stmt.dst.buffer)] = stmt
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
            products.append(stmt)
        elif not isinstance(stmt, Let):
            return None
    found: set[tuple[Sym, Sym]] = set()
    where: Dim | None = None
    size: cst.BaseExpression | None = None
    for product in products:
        for name, flag, last in (("A", "transpose_A", True), ("B", "transpose_B", False)):
            operand = product.args.get(name)
            load = loads.get(id(operand.buffer)) if isinstance(operand, Operand) and operand.is_whole else None
            if load is None or not load.dst.is_whole or len(load.dst.buffer.shape) != 2:
                return None
            axis = -1 if last != _is_true(product.args.get(flag)) else -2
            dims = load.src.dims or ()
            if len(dims) != len(load.src.buffer.shape) or len(dims) < 2:
                return None
            where, size = dims[axis], load.src.buffer.shape_nodes[axis]
            found.add((where.lo, load.src.buffer.shape[axis]))
    if len(found) != 1 or where is None or size is None:
        return None
    ((low, extent),) = found
    bounds = known.around(loop.body[0], [*parents, loop])
    if bounds.is_not_negative(extent - 1 - low):
        return None  # no turn begins there
    if not all(_begins_inside(product, low, extent, bounds, [*parents, loop]) for product in products):
        return None
    start = where.node.lower if isinstance(where.node, cst.Slice) else where.node
    return (start, size) if start is not None else None


def _begins_inside(product: Op, low: Sym, extent: Sym, bounds: Bounds, parents: Sequence[Stmt]) -> bool:
    """Whether the turn that starts a sum is none of those that are left out."""
    init = product.args.get("init")
    if init is None or (isinstance(init, Scalar) and init.sym.is_zero):
        return True
    node = init.node if isinstance(init, Scalar) else None
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    test = node.comparisons[0]
    if not isinstance(test.operator, cst.Equal) or code(test.comparator) != "0":
        return False
    counters = {item.name: item for p in parents if isinstance(p, Loop) for item in p.ranges if item.start.is_zero}
    first = {part.strip() for part in code(node.left).strip("()").split("+")}
    if not first <= counters.keys():
        return False
    at = bounds.expanded(extent - 1 - low).substitute({str(counters[name].var): const(0) for name in first})
    return bounds.is_not_negative(at)


def _is_true(flag: object) -> bool:
    return isinstance(flag, Scalar) and flag.sym.constant == 1
