"""Single elements of bfloat16 buffers that the scalar unit would have to convert, which it does not.

BiSheng stops at ``(float)W.GetValue(i)`` of a bfloat16 ("not support bf16 type cast", tilelang-ascend#1762). An element
that only goes from one bfloat16 buffer to another is no matter of arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import scalars
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Buffer, Copy, Kernel, Let, Operand, Stmt, Store, walk_with_parents
from tl2npu.source.tree import names_in, nodes_of


@dataclass(frozen=True, eq=False)
class Converted:
    """One element, the statement that uses it, and the statements around that, outermost first."""

    stmt: Stmt
    parents: tuple[Stmt, ...]
    node: cst.Subscript
    operand: Operand


def converted(kernel: Kernel, evaluator: Evaluator, is_bfloat: Callable[[Buffer], bool]) -> list[Converted]:
    """The elements of bfloat16 buffers that are converted, compared or computed with, in text order."""
    found: list[Converted] = []
    moved = _moved(kernel, is_bfloat)
    for stmt, parents in walk_with_parents(kernel.body):
        if isinstance(stmt, Let) and stmt.name in moved:
            continue
        for scalar in scalars(stmt) if not isinstance(stmt, Copy) else ():
            if isinstance(stmt, Store) and isinstance(scalar.node, cst.Subscript) and is_bfloat(stmt.target.buffer):
                continue
            for node in nodes_of(scalar.node, cst.Subscript):
                operand = evaluator.operand(node, stmt.env)
                if operand is not None and operand.is_indexed and is_bfloat(operand.buffer):
                    found.append(Converted(stmt, parents, node, operand))
    return found


def _moved(kernel: Kernel, is_bfloat: Callable[[Buffer], bool]) -> set[str]:
    """Names of elements that are stored in bfloat16 buffers as they are, and not used otherwise."""
    lets = (stmt for stmt in kernel.walk() if isinstance(stmt, Let))
    names = {stmt.name for stmt in lets if isinstance(stmt.value.node, cst.Subscript)}
    stored: set[str] = set()
    for stmt in kernel.walk():
        for scalar in scalars(stmt) if not isinstance(stmt, Copy) else ():
            if isinstance(stmt, Store) and isinstance(scalar.node, cst.Name) and is_bfloat(stmt.target.buffer):
                stored.add(scalar.node.value)
            else:
                names -= {name.value for name in names_in(scalar.node)}
    return names & stored
