"""The text that belongs to one kernel: its factory, and what of the module the factory uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.factories.factory import inner_names
from tl2npu.passes.job import Job
from tl2npu.source.bound import only_imports
from tl2npu.source.tree import calls_in, names_in, nodes_of, walk


def parts(job: Job) -> list[cst.CSTNode]:
    """The statements of the module that make the kernel: its factory, the constants and helpers that it uses."""
    top = job.file.index.top(job.located.node)
    found: list[cst.CSTNode] = [top]
    seen = {id(top)}
    wanted = _free_names(top)
    grown = True
    while grown:
        grown = False
        for statement in job.module.body:
            if id(statement) in seen or only_imports(statement) or not assigned_names(statement) & wanted:
                continue
            if isinstance(statement, (cst.For, cst.While, cst.If, cst.With, cst.Try)):
                continue  # host code that binds a name by chance
            seen.add(id(statement))
            found.append(statement)
            wanted |= _free_names(statement)
            grown = True
    return found


def nodes(job: Job) -> Iterator[cst.CSTNode]:
    """Every node of :func:`parts` without what makes other prim_funcs, then of the arguments of its callers."""
    others = list(of_others(job))
    aside = {id(other) for other in others}
    own = parts(job)
    for part in own:
        if id(part) not in aside:  # the factory may call another
            yield from walk(part, aside)
    yield from arguments(job, own, others)


def arguments(job: Job, own: Sequence[cst.CSTNode], others: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Every node of the arguments of the factory's callers, outside of its ``own`` statements."""
    if job.located.factory is not None:
        for other in others:
            yield from _arguments(other, job.located.factory.node.name.value)
    top = job.file.index.top(job.located.node)
    if isinstance(top, cst.FunctionDef):
        for statement in job.module.body:
            if all(statement is not part for part in own):
                yield from _arguments(statement, top.name.value)


def of_others(job: Job) -> Iterator[cst.CSTNode]:
    """Other prim_funcs, with the outermost function that makes such a one alone, from names of its own."""
    index = job.file.index
    around = {id(above) for above in index.ancestors(job.located.node)}
    for item in job.file.located:
        if item.key == job.key:
            continue
        functions = [above for above in index.ancestors(item.node) if isinstance(above, cst.FunctionDef)]
        makers = [item.node, *(above for above in functions if id(above) not in around)]
        shared = {name for above in functions if id(above) in around for name in bound_names(above)}
        shared -= {maker.name.value for maker in makers}
        yield makers[0] if _free_names(makers[-1]) & shared else makers[-1]


def bound_names(node: cst.CSTNode) -> set[str]:
    """The names that a function binds (parameters, locals, other functions), or another statement."""
    if not isinstance(node, cst.FunctionDef):
        return set(assigned_names(node))
    params = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
    bound = {param.name.value for param in params} | inner_names(node)
    for statement in node.body.body:
        bound |= assigned_names(statement)
    return bound


def _arguments(node: cst.CSTNode, callee: str) -> Iterator[cst.CSTNode]:
    """What stands in the calls ``callee(...)``, ``callee.compile(...)``, ``tilelang.compile(callee(...))``."""
    for call in calls_in(node):
        func = call.func
        while isinstance(func, (cst.Attribute, cst.Call)):
            func = func.value if isinstance(func, cst.Attribute) else func.func
        if type(func) is cst.Name and func.value == callee:
            for arg in call.args:
                yield from walk(arg)


def _free_names(node: cst.CSTNode) -> set[str]:
    """Names that a statement uses and does not bind itself, nor does a function inside of it for itself."""
    inner = [(function, bound_names(function)) for function in nodes_of(node, cst.FunctionDef) if function is not node]
    local = {id(name) for function, bound in inner for name in names_in(function) if name.value in bound}
    used = {name.value for name in names_in(node) if id(name) not in local}
    if not isinstance(node, cst.FunctionDef):
        return used
    return used - bound_names(node)
