"""What a tile holds before a reduction is added to it."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Buffer,
    Copy,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Scalar,
    Stmt,
    Store,
    children,
    walk_with_parents,
)
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import literal
from tl2npu.source.tree import mentioned


@dataclass(frozen=True)
class Before:
    """What is known of the old content.

    ``fresh``: it does not count (the neutral element of the reduction). ``known``: text of a number or of a tile that
    it is equal to. ``dead``: statements that are not needed any more.
    """

    fresh: bool = False
    known: str | None = None
    dead: tuple[cst.CSTNode, ...] = ()


def before(job: Job, stmt: Stmt, out: Operand, kind: str) -> Before:
    """Look back from a reduction into ``out`` for the last statement of the same block that wrote it."""
    if _is_first(job, stmt, out.buffer):
        text = f"`clear=False` joins a value that `{out.buffer.name}` never got: the reduction starts without one"
        job.note("TL601", stmt.node, text)
        job.change("TL601", stmt.node, f"reduced into `{out.buffer.name}` from nothing")
        return Before(fresh=True)
    body = _around(job.kernel.body, stmt)
    if body is None or not out.is_whole:
        return Before()
    read = False
    between: list[Stmt] = []
    for earlier in reversed(body[: body.index(stmt)]):
        if any(operand.buffer is out.buffer for operand in writes(earlier, deep=True)):
            return _filled(job, earlier, out.buffer, kind, read)
        if isinstance(earlier, Copy) and _kept(earlier, out.buffer, between):
            return Before(known=code(earlier.dst.node))
        read = read or any(operand.buffer is out.buffer for operand in reads(earlier, deep=True))
        between.append(earlier)
    return Before()


def joined_after(job: Job, stmt: Stmt, out: Operand, kind: str, known: str | None) -> bool:
    """Right behind a maximum or minimum the author takes it with the same tile: ``m[i] = T.max(m[i], old[i])``."""
    body = _around(job.kernel.body, stmt)
    loop = body[body.index(stmt) + 1] if body is not None and stmt is not body[-1] else None
    if kind == "sum" or not isinstance(loop, Loop) or loop.kind != "parallel" or not loop.body:
        return False
    store = loop.body[0]
    call = store.value.node if isinstance(store, Store) and not store.augmented else None
    if not isinstance(store, Store) or not isinstance(call, cst.Call):
        return False
    variables = [item.var for item in loop.ranges]
    places = [[dim.lo for dim in operand.dims or ()] for operand in (store.target, *store.value.loads)]
    covered = [item.extent for item in loop.ranges] == list(out.buffer.shape)
    covered = covered and all(item.start.is_zero for item in loop.ranges) and all(p == variables for p in places)
    names = sorted(code(arg.value.value) for arg in call.args if isinstance(arg.value, cst.Subscript))
    both = len(call.args) == len(store.value.loads) == 2 and names == sorted((out.buffer.name, known or ""))
    is_joined = job.file.names.resolve(call.func) == f"tilelang.language.{kind}"
    return covered and both and is_joined and store.target.buffer is out.buffer


def _is_first(job: Job, stmt: Stmt, buffer: Buffer) -> bool:
    """Whether a statement outside of loops is the first one that writes a tile of the kernel.

    What is in the tile then is not defined on a GPU either, so any value of it will do.
    """
    for earlier, parents in walk_with_parents(job.kernel.body):
        if earlier is stmt:
            return not any(isinstance(parent, Loop) for parent in parents)
        if any(operand.buffer is buffer for operand in writes(earlier)):
            return False
        if isinstance(earlier, Opaque) and buffer.name in mentioned(earlier.node):
            return False
    return False


def _around(body: list[Stmt], stmt: Stmt) -> list[Stmt] | None:
    if any(item is stmt for item in body):
        return body
    for item in body:
        for inner in children(item):
            found = _around(inner, stmt)
            if found is not None:
                return found
    return None


def _filled(job: Job, stmt: Stmt, buffer: Buffer, kind: str, read: bool) -> Before:
    target = stmt.args.get("buffer") if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL else None
    if not isinstance(stmt, Op) or not isinstance(target, Operand) or not target.is_whole:
        return Before()
    value = stmt.args.get("value")
    node = value.node if isinstance(value, Scalar) else cst.Integer("0")
    if value is not None and not isinstance(value, Scalar):
        return Before()
    text = literal(job, buffer, node)
    dead = () if read else (stmt.node,)
    if _neutral(job, text, node, kind):
        return Before(fresh=True, dead=dead)
    if isinstance(node, (cst.Integer, cst.Float, cst.UnaryOperation)) and not (value and value.loads):
        return Before(known=text, dead=dead)
    return Before()


def _neutral(job: Job, text: str, node: cst.BaseExpression, kind: str) -> bool:
    if kind == "sum":
        return text in ("0", "0.0", "-0.0")
    negative = False
    while isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        negative, node = not negative, node.expression
    name = job.file.names.resolve(node.func) if isinstance(node, cst.Call) else None
    limit = {"max": "min_value", "min": "max_value"}[kind]
    if name == "tilelang.language.infinity" or "T.infinity(" in text:
        return (negative or text.startswith("-")) == (kind == "max")
    return name == f"tilelang.language.{limit}" and not negative


def _kept(copy: Copy, buffer: Buffer, since: list[Stmt]) -> bool:
    """True if the copy put the whole buffer into another tile that nothing has written since."""
    src, dst = copy.src, copy.dst
    if src.buffer is not buffer or not src.is_whole or not dst.is_whole or dst.buffer.memory is not Memory.UB:
        return False
    if dst.buffer.shape != buffer.shape or dst.buffer.dtype != buffer.dtype:
        return False
    return not any(operand.buffer is dst.buffer for stmt in since for operand in writes(stmt, deep=True))
