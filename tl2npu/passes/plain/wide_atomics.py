"""TL172: groups of two or four elements that are added atomically become elements.

``for i, g in T.Parallel(M, N // 4): T.atomic_addx4(C[i, 4 * g], tile[i, 4 * g])`` adds what a loop over ``N`` elements
adds: how many of them a thread of a GPU takes at once is no part of the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Let, Loop, Op, Operand, Range
from tl2npu.kernel.model import walk as walk_statements
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.passes.writing.statements import expression, factor
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of, replaced

_WIDE = re.compile(r"atomic_addx([24])")


def to_elements(job: Job) -> None:
    """Rewrite the loops in which every statement adds groups of one width; others stay, and are refused later."""
    for loop in [stmt for stmt in job.kernel.walk() if isinstance(stmt, Loop) and stmt.kind == "parallel"]:
        found = _groups(loop)
        if found is not None and not loop.via and loop.call is not None:
            _rewrite(job, loop, *found)


def _groups(loop: Loop) -> tuple[Range, int, list[Op]] | None:
    """The loop variable that counts groups, how wide they are, and the additions."""
    inside = list(walk_statements(loop.body))
    adds = [stmt for stmt in inside if isinstance(stmt, Op)]
    asked = [
        stmt.cond if isinstance(stmt, Branch) else stmt.value for stmt in inside if isinstance(stmt, (Branch, Let))
    ]
    widths = {int(found.group(1)) if (found := _WIDE.fullmatch(stmt.op.name)) else 0 for stmt in adds}
    if len(adds) + len(asked) != len(inside) or len(widths) != 1 or 0 in widths:
        return None
    (width,) = widths
    for item in loop.ranges:
        if item.stop_node is None or not item.start.is_zero or any(_names(value.node, item.name) for value in asked):
            continue
        if all(_counts(stmt, item, width) for stmt in adds):
            return item, width, adds
    return None


def _counts(stmt: Op, item: Range, width: int) -> bool:
    """Both sides of an addition begin at ``width * item`` along their last axis, and nowhere else depends on it."""
    name = str(item.var)
    for operand in (stmt.args.get("dst"), stmt.args.get("value")):
        if not isinstance(operand, Operand) or not operand.dims or not all(dim.is_point for dim in operand.dims):
            return False
        *others, last = operand.dims
        if last.loads or (last.lo - item.var * width).depends_on(name) or _product(last.node, item, width) is None:
            return False
        if any(_names(dim.node, item.name) for dim in others):
            return False
    return True


def _names(node: cst.CSTNode, name: str) -> int:
    return sum(inner.value == name for inner in nodes_of(node, cst.Name))


def _product(node: cst.CSTNode, item: Range, width: int) -> cst.BinaryOperation | None:
    """The one place where an index says ``item * width``."""
    if _names(node, item.name) != 1:
        return None
    for inner in nodes_of(node, cst.BinaryOperation):
        if isinstance(inner.operator, cst.Multiply):
            sides = {code(inner.left), code(inner.right)}
            if sides == {item.name, str(width)}:
                return inner
    return None


def _rewrite(job: Job, loop: Loop, item: Range, width: int, adds: Sequence[Op]) -> None:
    edits = Edits(job.file.index)
    assert item.stop_node is not None
    edits.replace(item.stop_node, cst.parse_expression(_extent(job, loop, item.stop_node, width, adds)))
    for stmt in adds:
        call = cst.ensure_type(replaced(stmt.call, _elements(stmt, item, width)), cst.Call)
        edits.replace(stmt.call, call.with_changes(func=expression(job, "T.atomic_add", stmt.node)))
        job.change("TL172", stmt.node, f"wrote `T.atomic_add` of single elements for `T.{stmt.op.name}`")
    job.apply(edits)
    if imports.spelling(job, "atomic_add", job.located.node) == "atomic_add":
        imports.complete(job, {"atomic_add"}, {f"atomic_addx{width}"})


def _elements(stmt: Op, item: Range, width: int) -> dict[int, cst.CSTNode]:
    """The indices of an addition with the loop variable as it counts elements."""
    found: dict[int, cst.CSTNode] = {}
    for operand in (stmt.args["dst"], stmt.args["value"]):
        assert isinstance(operand, Operand)
        assert operand.dims
        product = _product(operand.dims[-1].node, item, width)
        found[id(product)] = cst.Name(item.name)
    return found


def _extent(job: Job, loop: Loop, stop: cst.BaseExpression, width: int, adds: Sequence[Op]) -> str:
    """How many elements ``stop`` groups are, as text."""
    if isinstance(stop, cst.Integer):
        return str(int(stop.value) * width)
    if isinstance(stop, cst.BinaryOperation) and isinstance(stop.operator, cst.FloorDivide):
        whole = job.file.evaluator.sym(stop.left, loop.env)
        if code(stop.right) == str(width) and ((whole % width).is_zero or _aligned(whole, adds)):
            return code(stop.left.with_changes(lpar=(), rpar=()))
    return f"{factor(code(stop)) if not isinstance(stop, cst.BinaryOperation) else code(stop)} * {width}"


def _aligned(size: Sym, adds: Sequence[Op]) -> bool:
    """The original reads whole groups from every row of a tile with rows of this size: it is a multiple of the width.

    A GPU faults on a group that does not lie at a multiple of its width.
    """
    for stmt in adds:
        value = stmt.args["value"]
        assert isinstance(value, Operand)
        if (
            len(value.buffer.shape) > 1
            and value.buffer.shape[-1] == size
            and value.dims
            and value.dims[0].lo.variables()
        ):
            return True
    return False
