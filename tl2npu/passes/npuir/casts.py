"""Conversions of values and the loops that they stand in, as both directions between AscendNPU IR and others ask."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Operand, Stmt, children
from tl2npu.passes.job import Job
from tl2npu.source.tree import walk as nodes

_INTEGERS = ("int", "uint")


def parallel_nests(body: list[Stmt]) -> Iterator[Loop]:
    """Every ``T.Parallel`` that stands in no other."""
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            yield stmt
            continue
        for inner in children(stmt):
            yield from parallel_nests(inner)


def is_cast(job: Job, node: cst.CSTNode) -> bool:
    """True for a call that converts a value."""
    if not isinstance(node, cst.Call) or not node.args:
        return False
    name = job.file.names.operator(node.func)
    astype = isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype"
    return astype or name in ("cast", "Cast") or name.startswith(_INTEGERS)


def cast_parts(job: Job, cast: cst.Call) -> tuple[cst.BaseExpression, str]:
    """What is cast, and the type that it gets."""
    name = job.file.names.operator(cast.func)
    given = [arg.value for arg in cast.args]
    if isinstance(cast.func, cst.Attribute) and cast.func.attr.value == "astype":
        return cast.func.value, _type(job, given[0])
    if name.startswith(_INTEGERS):
        return given[0], name
    if len(given) != 2:
        raise Blocked("TL442", cast, f"cannot read the cast `{code(cast)}`")
    value, dtype = given if name == "cast" else (given[1], given[0])
    return value, _type(job, dtype)


def _type(job: Job, node: cst.BaseExpression) -> str:
    return job.file.evaluator.dtype(node, job.located.env)


def is_inside(load: Operand, value: cst.BaseExpression) -> bool:
    """Whether an element is read in an expression."""
    return any(node is load.node for node in nodes(value))
