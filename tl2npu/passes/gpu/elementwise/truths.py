"""Tiles of truth values: the vector core has none, so they hold 1.0 and 0.0."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Kernel, Memory, Operand, in_parallel, walk, walk_with_parents
from tl2npu.passes.gpu.elementwise.tree import Expr, joined, number
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument

DTYPE = "float32"
_CONSTANTS = {"True": True, "bool(True)": True, "False": False, "bool(False)": False}


def truth_tiles(kernel: Kernel) -> frozenset[Buffer]:
    """The tiles of booleans that nothing but the elements of ``T.Parallel`` bodies touches, and conditions around
    other statements, as around the copy of a row that is chosen."""
    found = {
        stmt.buffer
        for stmt in walk(kernel.body)
        if isinstance(stmt, Alloc) and stmt.buffer.memory is not Memory.VAR and _is_bool(stmt.buffer)
    }
    for stmt, parents in walk_with_parents(kernel.body):
        inside = in_parallel(parents)
        for access in accesses(stmt):
            asked = isinstance(stmt, Branch) and not access.writes and _is_asked(stmt, access.operand)
            if not (access.element and (inside or asked)):
                found.discard(access.operand.buffer)
    return frozenset(found)


def _is_asked(branch: Branch, operand: Operand) -> bool:
    """The element itself is the condition, or an operand of its ``and``, ``or`` and ``not``."""
    stack: list[cst.CSTNode] = [branch.cond.node]
    while stack:
        node = stack.pop()
        if node is operand.node:
            return True
        if isinstance(node, cst.BooleanOperation):
            stack += [node.left, node.right]
        elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            stack.append(node.expression)
    return False


def _is_bool(buffer: Buffer) -> bool:
    return element_types.plain(buffer.dtype) == "bool"


def as_numbers(value: Expr, dtype: str = DTYPE) -> Expr:
    """A truth value as 1.0 or 0.0, a constant only for a tile of that type; other values as they are."""
    told = _constant(value)
    if told is not None and dtype == DTYPE:
        return number("1.0" if told else "0.0")
    if value.kind not in ("compare", "logic"):
        return value
    return Expr("select", "", (value, number("1.0"), number("0.0")), DTYPE, axes=value.axes)


def as_truth(value: Expr) -> Expr:
    """An element of a tile as a condition."""
    if value.kind not in ("load", "cast", "binary"):
        return value
    return Expr("compare", "!=", (value, number("0.0" if value.dtype == DTYPE else "0")), "bool", axes=value.axes)


def choice(condition: Expr, yes: Expr, no: Expr) -> Expr | None:
    """``yes if condition else no`` of conditions; ``and`` keeps that an arm is read only where it is chosen."""
    arms = _constant(yes), _constant(no)
    if not any(arm.kind in ("compare", "logic") for arm in (yes, no)) and None in arms:
        return None
    yes, no = as_truth(yes), as_truth(no)
    first = condition if arms[0] is True else None if arms[0] is False else _logic("and", condition, yes)
    other = _logic("not", condition)
    second = other if arms[1] is True else None if arms[1] is False else _logic("and", other, no)
    if first is None or second is None:
        return first or second or no
    return _logic("or", first, second)


def _constant(value: Expr) -> bool | None:
    """What ``True`` and ``T.bool(False)`` say; None for anything else."""
    return _CONSTANTS.get(value.text.rpartition(".")[2]) if value.is_number else None


def _logic(sign: str, *parts: Expr) -> Expr:
    dynamic = any(part.dynamic for part in parts)
    return Expr("logic", sign, parts, "bool", axes=joined(*parts), dynamic=dynamic)


def retype(job: Job) -> None:
    """Allocate the tiles with the type of numbers."""
    edits, found = Edits(job.file.index), set[Buffer]()
    for buffer in truth_tiles(job.kernel):
        node = argument(buffer.node, "dtype", 1) if isinstance(buffer.node, cst.Call) else None
        if node is not None:
            edits.replace(node, cst.SimpleString(f'"{DTYPE}"'))
            job.change("TL145", buffer.statement or buffer.node, "stored the boolean mask as 1.0 and 0.0")
            found.add(buffer)
    for stmt, parents in walk_with_parents(job.kernel.body):
        inside = in_parallel(parents)
        for load in stmt.cond.loads if isinstance(stmt, Branch) and not inside else ():
            if load.buffer in found:
                text = f"{code(load.node)} != 0.0"
                alone = isinstance(stmt, Branch) and load.node is stmt.cond.node
                edits.replace(load.node, cst.parse_expression(text if alone else f"({text})"))
    job.apply(edits)
