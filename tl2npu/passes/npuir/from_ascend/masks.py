"""TL427: bit masks. ``T.tile.compare`` and ``T.tile.select`` become one choice for every element.

AscendNPU IR has no masks of one bit per element. Where the operands of the comparison are still what they were, the
comparison is made where its result is used: ``x[i, j] = T.if_then_else(a[i, j] >= b[i, j], y[i, j], z[i, j])``.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.model import Alloc, Buffer, Kernel, Loop, Op, Operand, Scalar, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.from_ascend.copies import moved_extents
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse

_SIGNS = {"EQ": "==", "NE": "!=", "GT": ">", "GE": ">=", "LT": "<", "LE": "<="}
_MODES = ("VSEL_TENSOR_TENSOR_MODE", "VSEL_TENSOR_SCALAR_MODE")


@dataclass(frozen=True, eq=False)
class _Mask:
    """A mask with the comparison that makes it and the choices that use it."""

    tile: Buffer
    compare: Op
    selects: tuple[Op, ...]


def to_choices(job: Job) -> None:
    """Rewrite every mask; raises :class:`Blocked` for one that is used in another way."""
    kernel = job.kernel
    masks = _masks(kernel)
    if not masks:
        return
    liveness = Liveness(kernel)
    loops = {id(s): loop for loop in kernel.walk() if isinstance(loop, Loop) for s in loop.body}
    plan, names = Plan(job), Names(job)
    variables = names.fresh("i", "row"), names.fresh("j", "col")
    gone: set[Buffer] = set()
    for mask in masks:
        _refuse_changed(mask, liveness)
        plan.remove(mask.compare.node)
        gone.add(mask.tile)
        for select in mask.selects:
            loop = loops.get(id(select))
            rows = loop if loop is not None and loop.body == [select] and _is_row_loop(loop, select) else None
            text = _choice(job, mask.compare, select, rows, variables)
            node = select.node if rows is None else rows.node
            plan.replace(node, parse(job, text, node))
            job.change("TL427", select.node, f"moved the comparison `{mask.tile.name}` to its use")
    for stmt in kernel.walk():
        if isinstance(stmt, Alloc) and stmt.buffer in gone:
            plan.remove(stmt.node)
    plan.apply()


def _masks(kernel: Kernel) -> list[_Mask]:
    users: dict[Buffer, list[Stmt]] = {}
    for stmt in kernel.walk():
        for access in accesses(stmt):
            known = users.setdefault(access.operand.buffer, [])
            if stmt not in known:
                known.append(stmt)
    found: list[_Mask] = []
    for stmt in kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name not in ("tile.compare", "tile.select"):
            continue
        mask = stmt.args.get("dst" if stmt.op.name == "tile.compare" else "selMask")
        if not isinstance(mask, Operand) or mask.dims is not None or stmt.via:
            raise Blocked("TL428", stmt.node, "AscendNPU IR does not support parts of bit masks")
        others = [one for one in users[mask.buffer] if one is not stmt]
        if stmt.op.name == "tile.select":
            if not any(isinstance(one, Op) and one.op.name == "tile.compare" for one in others):
                text = f"no comparison computes the bit mask `{mask.buffer.name}`"
                raise Blocked("TL428", stmt.node, text)
            continue
        selects = tuple(one for one in others if isinstance(one, Op) and one.op.name == "tile.select")
        if len(selects) != len(others) or any(_selects_by(one) is not mask.buffer for one in selects):
            text = f"the bit mask `{mask.buffer.name}` has uses other than one comparison and its selects"
            raise Blocked("TL428", stmt.node, text)
        found.append(_Mask(mask.buffer, stmt, selects))
    return found


def _selects_by(select: Op) -> Buffer | None:
    mask = select.args.get("selMask")
    others = [arg for name, arg in select.operands if name != "selMask"]
    if not isinstance(mask, Operand) or any(arg.buffer is mask.buffer for arg in others):
        return None
    return mask.buffer


def _refuse_changed(mask: _Mask, liveness: Liveness) -> None:
    """The operands of the comparison must have their value as long as the mask is wanted."""
    taken = [arg for name, arg in mask.compare.operands if name != "dst"]
    loads = [load for arg in mask.compare.args.values() if isinstance(arg, Scalar) for load in arg.loads]
    for operand in (*taken, *loads):
        if liveness.written_while_wanted(operand.buffer, mask.tile):
            text = f"`{operand.buffer.name}` changes between the comparison and the select"
            raise Blocked("TL428", mask.compare.node, text)


def _is_row_loop(loop: Loop, select: Op) -> bool:
    if loop.kind not in ("serial", "unroll") or len(loop.ranges) != 1 or loop.via:
        return False
    (item,) = loop.ranges
    dst = select.args["dst"]
    return (
        isinstance(dst, Operand)
        and dst.dims is not None
        and len(dst.dims) == 2
        and item.start.is_zero
        and dst.dims[0].is_point
        and dst.dims[0].lo == item.var
        and item.extent == dst.buffer.shape[0]
    )


def _choice(job: Job, compare: Op, select: Op, rows: Loop | None, variables: tuple[str, str]) -> str:
    mode = _word(select, "selMode")
    if mode not in _MODES:
        raise Blocked("TL428", select.node, f"`T.tile.select` in the mode {mode} has no counterpart in AscendNPU IR")
    sign = _SIGNS.get(_word(compare, "mode"))
    dst = select.args["dst"]
    if sign is None or not isinstance(dst, Operand):
        raise Blocked("TL428", compare.node, "this form of comparison is not supported")
    for name, operand in compare.operands:
        if name != "dst" and operand.buffer is dst.buffer and code(operand.node) != code(dst.node):
            text = f"the select changes elements of `{dst.buffer.name}` that the comparison still needs"
            raise Blocked("TL428", select.node, text)
    extents = moved_extents(dst)
    row, column = variables
    if rows is not None:
        row = rows.ranges[0].name
    index = [row, column] if len(extents) == 2 else [column]
    left, right = (_element(compare, compare.args[key], dst, rows, index) for key in ("src0", "src1"))
    first, second = (_element(select, select.args[key], dst, rows, index) for key in ("src0", "src1"))
    target = _element(select, dst, dst, rows, index)
    if rows is not None:
        index = [row, column]
    loop = ", ".join(index)
    sizes = [code(node) for node in dst.buffer.shape_nodes][-len(index) :]
    choice = f"T.if_then_else({left} {sign} {right}, {first}, {second})"
    return f"for {loop} in T.Parallel({', '.join(sizes)}):\n    {target} = {choice}\n"


def _word(stmt: Op, key: str) -> str:
    return code(stmt.args[key].node).strip("\"'")


def _element(stmt: Op, arg: Operand | Scalar, dst: Operand, rows: Loop | None, index: list[str]) -> str:
    """One element of an operand, or the number that it is."""
    if isinstance(arg, Scalar):
        text = code(arg.node)
        simple = isinstance(arg.node, (cst.Name, cst.Integer, cst.Float, cst.Call, cst.Subscript, cst.UnaryOperation))
        return text if simple else f"({text})"
    dims, buffer = arg.dims, arg.buffer
    if dims is not None and all(dim.is_point for dim in dims):
        return code(arg.node)
    column = index[-1]
    if moved_extents(arg) != moved_extents(dst):
        text = f"cannot prove that `{code(arg.node)}` and `{code(dst.node)}` have the same shape"
        raise Blocked("TL430", stmt.node, text)
    if dims is None:
        if len(buffer.shape) == 1:
            return f"{buffer.name}[{column}]"
        return f"{buffer.name}[{', '.join(index if len(index) == 2 else ['0', column])}]"
    if len(dims) == 2 and dims[0].is_point and dims[1].lo.is_zero:
        return f"{buffer.name}[{code(dims[0].node)}, {column}]"
    if arg.is_whole:
        return f"{buffer.name}[{', '.join(index)}]"
    raise Blocked("TL430", stmt.node, f"`{code(arg.node)}` is a part of a tile")
