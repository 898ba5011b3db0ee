"""TL205, TL206: ``if vid == 0`` in its two meanings.

Both branches doing the same to their half of a tile is the row split written out: they become one statement with a vid
offset, which :mod:`tl2npu.passes.halves` then makes whole. A guard without an else, in a kernel that uses vid for nothing
else, means that one vector core did all the work: the guard goes and the compiler splits the rows.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Kernel, Stmt
from tl2npu.kernel.read import body_of
from tl2npu.kernel.symbolic import Opaque, Sym, Var, const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import child_fields, names_in


def tested_core(stmt: Stmt, vid: str) -> int | None:
    """0 or 1 if the statement is ``if vid == 0`` / ``if vid == 1`` (or ``0 == vid``), else None."""
    if not isinstance(stmt, Branch) or not isinstance(stmt.node, cst.If):
        return None
    terms = stmt.cond.sym.terms
    atom = terms[0][0][0] if len(terms) == 1 and len(terms[0][0]) == 1 else None
    if not isinstance(atom, Opaque) or atom.head != "Equal" or len(atom.args) != 2:
        return None
    left, right = atom.args
    if _is_vid(right, vid):
        left, right = right, left
    value = right.constant
    return value if _is_vid(left, vid) and value in (0, 1) else None


def _is_vid(sym: Sym, vid: str) -> bool:
    return sym.terms == (((Var(vid),), 1),)


def normalise(job: Job) -> None:
    """Rewrite the guards of a kernel; raises :class:`Blocked` for one that means something else."""
    kernel = job.kernel
    if kernel.vid is None:
        return
    found = [(stmt, tested_core(stmt, kernel.vid)) for stmt in kernel.walk()]
    guards = [(stmt, core) for stmt, core in found if core is not None and isinstance(stmt, Branch)]
    if not guards:
        return
    two_sided = [(stmt, core) for stmt, core in guards if isinstance(stmt.node, cst.If) and stmt.node.orelse]
    if len(two_sided) == len(guards):
        _join_halves(job, two_sided)
        return
    if two_sided or not _only_guards(kernel, [stmt for stmt, _ in guards]):
        raise Blocked("TL220", guards[0][0].node, "one vector core works alone here while vid is used elsewhere")
    edits = Edits(job.file.index)
    for stmt, _ in guards:
        assert isinstance(stmt.node, cst.If)
        body = list(body_of(stmt.node))
        body[0] = body[0].with_changes(leading_lines=[*stmt.node.leading_lines, *body[0].leading_lines])
        edits.replace_many(stmt.node, body)
        job.change("TL206", stmt.node, "one vector core did this alone; threads=2 splits the rows")
    job.apply(edits)


def _only_guards(kernel: Kernel, guards: list[Branch]) -> bool:
    """vid occurs in the conditions of these guards and nowhere else."""
    assert kernel.launch is not None
    name = kernel.launch.names[1]
    uses = sum(1 for node in names_in(kernel.launch.node.body) if node.value == name)
    return uses == len(guards)


def _join_halves(job: Job, guards: list[tuple[Branch, int]]) -> None:
    edits = Edits(job.file.index)
    vid = job.kernel.launch.names[1] if job.kernel.launch else "vid"
    for stmt, core in guards:
        assert isinstance(stmt.node, cst.If)
        if not isinstance(stmt.node.orelse, cst.Else):
            raise Blocked("TL220", stmt.node, "the two vector cores do different things")
        first, second = list(body_of(stmt.node)), list(body_of(stmt.node.orelse))
        if core == 1:
            first, second = second, first
        if len(first) != len(second):
            raise Blocked("TL220", stmt.node, "the two vector cores do different things")
        env = stmt.env
        assert env is not None

        def value(node: cst.BaseExpression) -> Sym:
            assert env is not None
            return job.file.evaluator.sym(node, env)

        joined = [_join(a, b, vid, value, stmt) for a, b in zip(first, second)]
        joined[0] = joined[0].with_changes(leading_lines=[*stmt.node.leading_lines, *joined[0].leading_lines])
        edits.replace_many(stmt.node, joined)
        job.change("TL205", stmt.node, "both halves of the tile written out: one statement")
    job.apply(edits)


def _join(left, right, vid, value, stmt):  # type: ignore[no-untyped-def]
    """One statement for both: where the two differ, ``low + vid * step`` with the same step as the rows need."""
    if isinstance(left, cst.BaseExpression) and isinstance(right, cst.BaseExpression):
        if code(left) == code(right):
            return left
        if isinstance(left, (cst.BinaryOperation, cst.Name, cst.Integer)):
            step = value(right) - value(left)
            if step == const(0):
                return left
            return cst.parse_expression(f"{code(left)} + {vid} * ({_difference(left, right, value)})")
    if type(left) is not type(right):
        raise Blocked("TL220", stmt.node, "the two vector cores do different things")
    changes = {}
    for name in child_fields(type(left)):
        mine, theirs = getattr(left, name), getattr(right, name)
        if isinstance(mine, cst.CSTNode) and isinstance(theirs, cst.CSTNode):
            changes[name] = _join(mine, theirs, vid, value, stmt)
        elif isinstance(mine, (tuple, list)) and isinstance(theirs, (tuple, list)) and len(mine) == len(theirs):
            changes[name] = [_join(a, b, vid, value, stmt) for a, b in zip(mine, theirs)]
        elif mine is not theirs and not (mine is None and theirs is None):
            if mine != theirs and not isinstance(mine, cst.MaybeSentinel):
                raise Blocked("TL220", stmt.node, "the two vector cores do different things")
    if isinstance(left, cst.Name) and left.value != right.value:
        raise Blocked("TL220", stmt.node, "the two vector cores use different buffers")
    return left.with_changes(**changes) if changes else left


def _difference(left, right, value) -> str:  # type: ignore[no-untyped-def]
    from tl2npu.passes.render import Unrenderable, render

    try:
        return render(value(right) - value(left))
    except Unrenderable:
        return f"{code(right)} - ({code(left)})"
