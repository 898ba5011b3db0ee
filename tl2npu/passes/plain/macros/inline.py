"""TL117, TL118: macros of a GPU kernel, read in place.

A macro of the NPU's front end returns nothing and takes no references, and what a kernel does cannot be split among
memories across the border of a macro: so every macro and helper that a kernel calls is written where it is called.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Helper
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.kernel.model import Branch, Inlined, Loop, Opaque, Stmt
from tl2npu.kernel.style import launches_in
from tl2npu.passes.job import Job
from tl2npu.passes.names.leftovers import drop_leftovers
from tl2npu.passes.plain.macros import given
from tl2npu.passes.plain.macros.body import Body, Inliner, Site
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.fold import rebuild
from tl2npu.passes.writing.substitute import closed
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, nodes_of, replaced

_LANGUAGE = "tilelang.language"
_WORK: tuple[type[cst.CSTNode], ...] = (cst.Expr, cst.For, cst.While, cst.With)


def inline(job: Job) -> None:
    """Inline every ``@T.macro`` and helper that the kernel calls, also by a parameter of its factory."""
    called: list[cst.CSTNode] = []

    def step() -> bool:
        found = inline_sites(job)
        called.extend(found)
        return bool(found)

    until_settled(job, step)
    given.refuse_functions(job)
    if called:
        drop_leftovers(job, called, "TL117")


def inline_sites(job: Job, *, launching: bool = False) -> list[cst.CSTNode]:
    """Write out one call in each statement; what was called. ``launching``: only macros that hold a launch."""
    found = list(_sites(job))
    if launching:
        found = [site for site in found if launches_in(site.helper.node.body, job.file.names)]
    if found:
        _write(job, found, launching)
    return [site.call.func for site in found]


def _sites(job: Job) -> Iterator[Site]:
    """The calls to write out, one for each statement of the kernel at most."""
    seen: set[int] = set()
    for stmt in job.kernel.walk():
        if stmt.via or id(stmt.node) in seen:
            continue
        for part in _own_parts(stmt):
            site = _site(job, stmt, part)
            if site is not None:
                if _reaches_itself(site.helper):  # written in place it would be there again, several times over
                    raise Blocked("TL118", site.call, f"`{site.helper.node.name.value}` calls itself")
                seen.add(id(stmt.node))
                yield site
                break


def _reaches_itself(helper: Helper) -> bool:
    """True if a helper calls itself, or one that calls it."""
    seen: list[Helper] = []
    open_ends = [helper]
    while open_ends:
        current = open_ends.pop()
        for call in calls_in(current.node.body):
            called = current.env.lookup(call.func.value) if type(call.func) is cst.Name else None
            if isinstance(called, Helper) and called.node is helper.node:
                return True
            if isinstance(called, Helper) and all(called.node is not other.node for other in seen):
                seen.append(called)
                open_ends.append(called)
    return False


def _own_parts(stmt: Stmt) -> Iterator[cst.CSTNode]:
    """The code of a statement without the blocks in it."""
    if isinstance(stmt, Loop):
        node = stmt.node
        yield node.iter if isinstance(node, cst.For) else node.test if isinstance(node, cst.While) else node
    elif isinstance(stmt, Branch):
        yield stmt.cond.node
    elif isinstance(stmt, Opaque) and isinstance(stmt.node, cst.For):
        yield stmt.node.iter
    elif not isinstance(stmt.node, cst.BaseCompoundStatement):
        yield stmt.node


def _site(job: Job, stmt: Stmt, part: cst.CSTNode) -> Site | None:
    """The innermost call of a helper: its arguments hold no other."""
    found: Site | None = None
    for node in calls_in(part):
        if type(node.func) is cst.Name:
            helper = stmt.env.lookup(node.func.value)
            if isinstance(helper, Helper) and _is_device_code(job, helper, node, stmt):
                found = Site(node, helper, stmt.env, stmt.node)
    return found


def _is_device_code(job: Job, helper: Helper, call: cst.Call, stmt: Stmt) -> bool:
    """The function makes code for the device: it is no plain arithmetic of the host."""
    names = job.file.names
    if is_prim_func(helper.node, names):
        return False
    if helper.node.decorators:
        first = helper.node.decorators[0].decorator
        resolved = names.resolve(first.func if isinstance(first, cst.Call) else first)
        return len(helper.node.decorators) == 1 and resolved == f"{_LANGUAGE}.macro"
    if isinstance(stmt, Inlined) or job.file.evaluator.buffers_in(call, stmt.env):
        return True
    if isinstance(stmt, Opaque) and isinstance(stmt.node, cst.Assign) and stmt.node.value is call:
        return True  # `first, last = window(i)`
    return any(
        (names.resolve(node) or "").startswith(_LANGUAGE + ".")
        for node in nodes_of(helper.node.body, cst.Name, cst.Attribute)
    )


def _write(job: Job, sites: list[Site], launching: bool) -> None:
    inliner = Inliner(job, launching)
    edits = Edits(job.file.index)
    for site in sites:
        name = site.helper.node.name.value
        statement = site.statement
        _refuse_dropped_work(site)
        target = _target(statement, site.call)
        body = inliner.body(site, target)
        job.change("TL117", site.call, f"inlined `{name}`")
        whole = isinstance(statement, cst.Expr) and statement.value is site.call
        if not whole and body.value is None:
            raise Blocked("TL118", site.call, f"`{name}` returns nothing, but its value is used")
        if not body.statements and not whole:
            assert body.value is not None
            edits.replace(site.call, _operand(job, site.call, body.value))
        elif isinstance(statement, cst.BaseSmallStatement):
            _replace(job, edits, site, body, target)
        else:
            raise Blocked("TL118", site.call, f"`{name}` is called in the head of a compound statement")
    job.apply(edits)


def _refuse_dropped_work(site: Site) -> None:
    """Only in a macro are statements recorded: what a plain function does by the way never reaches a GPU."""
    if site.helper.node.decorators:
        return
    for part in nodes_of(site.helper.node.body, *_WORK):
        if not isinstance(part, cst.Expr) or isinstance(part.value, cst.Call):
            text = f"`{site.helper.node.name.value}` is not a macro, so the GPU compiler ignores its statements"
            raise Blocked("TL118", part, text)


def _target(statement: cst.CSTNode, call: cst.Call) -> str | None:
    """``x`` in ``x = helper(...)``."""
    if isinstance(statement, cst.Assign) and statement.value is call and len(statement.targets) == 1:
        target = statement.targets[0].target
        return target.value if isinstance(target, cst.Name) else None
    return None


def _operand(job: Job, call: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
    parent = job.file.index.parent(call)
    if isinstance(parent, cst.BinaryOperation):
        left = parent.left is call
        both = rebuild(parent, value if left else parent.left, parent.right if left else value)
        return both.left if left else both.right
    free = isinstance(parent, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Arg, cst.Index, cst.Element, cst.For))
    return value if free else closed(value)


def _replace(job: Job, edits: Edits, site: Site, body: Body, target: str | None) -> None:
    """The statements of the body, then the statement itself with the value in the place of the call."""
    statement = site.statement
    line = job.file.index.parent(statement)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Blocked("TL118", site.call, "this line has several statements")
    rest: list[cst.CSTNode] = []
    if body.value is not None and not (isinstance(statement, cst.Expr) and statement.value is site.call):
        named = target is not None and isinstance(body.value, cst.Name) and body.value.value == target
        if not named:
            last = _with_value(job, statement, site.call, body.value)
            rest = [line.with_changes(body=[last], leading_lines=())]
    new = [*body.statements, *rest]
    comment = line.trailing_whitespace.comment
    if comment is not None and new and not rest:
        first = new[0]
        lines = [cst.EmptyLine(comment=comment), *first.leading_lines]  # type: ignore[attr-defined]
        new = [first.with_changes(leading_lines=lines), *new[1:]]
    if new:
        edits.replace_many(line, new)
    else:
        edits.remove(line)


def _with_value(job: Job, statement: cst.CSTNode, call: cst.Call, value: cst.BaseExpression) -> cst.CSTNode:
    operand = _operand(job, call, value)
    if isinstance(statement, cst.Assign) and statement.value is call and isinstance(value, cst.Tuple):
        operand = value
    new = replaced(statement, {id(call): operand})
    assert isinstance(new, cst.BaseSmallStatement)
    return new
