"""TL443: floats become integers by rounding in a vectorised loop of AscendNPU IR, and by cutting off here."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_integer
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Loop, Operand, Stmt, Store, children, walk
from tl2npu.kernel.npuir_loops import scalar_reason
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import number_type
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import walk as nodes

_INTEGERS = ("int", "uint")


def say(job: Job) -> None:
    """Write out the rounding of every cast in a vectorised loop."""
    edits = Edits(job.file.index)
    for loop in _nests(job.kernel.body):
        if scalar_reason(loop, job.late, job.file.names):
            continue
        for stmt in walk([loop]):
            if isinstance(stmt, Store):
                _one(job, edits, stmt)
    job.apply(edits)


def _nests(body: list[Stmt]) -> Iterator[Loop]:
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            yield stmt
            continue
        for inner in children(stmt):
            yield from _nests(inner)


def _one(job: Job, edits: Edits, stmt: Store) -> None:
    casts = [node for node in nodes(stmt.value.node) if _is_cast(job, node)]
    floats = [load for load in stmt.value.loads if number_type(job, load.buffer) == "float"]
    if not floats:
        return
    for cast in casts:
        assert isinstance(cast, cst.Call)
        value, dtype = _parts(job, cast)
        if not any(_inside(load, value) for load in floats) or not _may_be_integer(job, dtype):
            continue
        if not is_integer(dtype):
            text = f"`{dtype}` may be an integer type, and this loop rounds to the nearest integer"
            raise Blocked("TL442", stmt.node, text)
        if len(casts) > 1:
            raise Blocked(
                "TL442",
                stmt.node,
                f"`{code(cast)}` rounds to the nearest integer, but the expression has other casts too",
            )
        edits.replace(value, expression(job, f"T.round({code(value)})", stmt.node))
        job.change("TL443", cast, "wrote the rounding to the nearest integer of a vectorised loop")
    if not casts and number_type(job, stmt.target.buffer) == "int":
        text = f"the loop rounds the float stored in `{code(stmt.target.node)}` to the nearest integer; write a cast"
        raise Blocked("TL442", stmt.node, text)


def _is_cast(job: Job, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call) or not node.args:
        return False
    name = job.file.names.operator(node.func)
    astype = isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype"
    return astype or name in ("cast", "Cast") or name.startswith(_INTEGERS)


def _parts(job: Job, cast: cst.Call) -> tuple[cst.BaseExpression, str]:
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


def _may_be_integer(job: Job, dtype: str) -> bool:
    """An integer, or a parameter that some call of the file gives as one; others are taken for floats."""
    given = [caller.words.get(dtype, "") for caller in callers_of(job.file, job.located)]
    return is_integer(dtype) or any(is_integer(word) for word in given)


def _inside(load: Operand, value: cst.BaseExpression) -> bool:
    return any(node is load.node for node in nodes(value))
