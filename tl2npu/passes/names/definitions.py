"""The assignments that give kernel expressions their names: in the module, in the factory, in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.environment import Env
from tl2npu.kernel.model import Let
from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import bound
from tl2npu.source.tree import HOLDS_LINES, children, names_in, nodes_of, remembered


@dataclass(frozen=True, eq=False)
class Definition:
    """``name = value``, assigned once in its scope; ``scope`` is the function or module that it belongs to."""

    name: str
    value: cst.BaseExpression
    statement: cst.BaseSmallStatement
    env: Env
    in_kernel: bool
    scope: cst.CSTNode


def enclosing_functions(job: Job) -> list[cst.FunctionDef]:
    """The functions around the prim_func, outermost first."""
    found: list[cst.FunctionDef] = []
    node: cst.CSTNode | None = job.file.index.parent(job.located.node)
    while node is not None:
        if isinstance(node, cst.FunctionDef):
            found.insert(0, node)
        node = job.file.index.parent(node)
    return found


def _bound_in(statements: Sequence[cst.CSTNode]) -> Iterator[tuple[str, cst.BaseExpression, cst.BaseSmallStatement]]:
    """What the lines of a block bind, each with its value; not what stands under conditions and in loops."""
    for line in statements:
        if type(line) is cst.SimpleStatementLine:
            for small in line.body:
                yield from ((name, value, small) for name, value in bound(small))


def definitions(job: Job) -> list[Definition]:
    """Definitions visible in the kernel, in the order in which they run; names assigned twice are left out."""
    result: list[Definition] = []
    scopes: list[cst.CSTNode] = [job.module, *enclosing_functions(job)]
    env: Env | None = job.located.env
    chain: list[Env] = []
    while env is not None:
        chain.insert(0, env)
        env = env.parent
    for scope, scope_env in zip(scopes, chain, strict=False):
        body = scope.body if isinstance(scope, cst.Module) else scope.body.body  # type: ignore[attr-defined]
        found = list(_bound_in(body))
        names = [name for name, _, _ in found]
        result += [
            Definition(name, value, small, scope_env, False, scope)
            for name, value, small in found
            if names.count(name) == 1
        ]
    lets = [
        stmt
        for stmt in job.kernel.walk()
        if isinstance(stmt, Let) and isinstance(stmt.node, (cst.Assign, cst.AnnAssign))
    ]
    names = [let.name for let in lets]
    for let in lets:
        if names.count(let.name) == 1 and isinstance(let.node, (cst.Assign, cst.AnnAssign)):
            result.append(Definition(let.name, let.value.node, let.node, let.env, True, job.located.node))
    return result


def uses_outside(
    job: Job, changed: set[str], covered: list[cst.BaseExpression], known: list[Definition]
) -> cst.Name | None:
    """A use of a changed name that is neither in a covered expression nor in a known definition; None if there is none.

    Uses in other functions count only where the name means the same thing: not below a function that binds it itself.
    """
    if not changed:
        return None
    allowed = {id(name) for node in covered for name in names_in(node)}
    allowed |= {id(name) for item in known for name in names_in(item.value)}
    for item in known:
        if item.name not in changed:
            continue
        if isinstance(item.scope, cst.Module) and job.elsewhere[item.name]:
            return cst.Name(item.name)
        for name in visible_uses(item.scope, item.name):
            if id(name) not in allowed:
                return name
    return None


def visible_uses(scope: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """Every read of a name below a scope, except in functions that bind the name themselves."""
    for node in children(scope):
        yield from _uses(node, name)


def _uses(node: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    if (HOLDS_LINES[type(node)] or type(node) is cst.SimpleStatementLine) and name not in _named(node):
        return
    if type(node) is cst.FunctionDef:
        params = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
        if any(param.name.value == name for param in params) or _binds(node, name):
            return
    if type(node) is cst.Name:
        if node.value == name:
            yield node
        return
    if type(node) is cst.AssignTarget or type(node) is cst.AnnAssign:
        for part in _read_in_target(node.target):
            yield from _uses(part, name)
        if type(node) is cst.AnnAssign and node.value is not None:
            yield from _uses(node.value, name)
        return
    if type(node) is cst.Attribute or type(node) is cst.Arg:
        yield from _uses(node.value, name)
        return
    for child in children(node):
        yield from _uses(child, name)


@remembered
def _named(node: cst.CSTNode) -> frozenset[str]:
    return frozenset(found.value for found in names_in(node))


def _read_in_target(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What an assignment to a target reads: nothing of the names that it binds."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _read_in_target(element.value)
    elif not isinstance(target, cst.Name):
        yield target


def _binds(node: cst.FunctionDef, name: str) -> bool:
    binds = any(name in assigned_names(statement) for statement in node.body.body)
    return binds and not nodes_of(node, cst.Global, cst.Nonlocal)
