"""Operators without an equivalent: in the kernel, in its launch, in the macros and helpers that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.gpu import OPERATORS
from tl2npu.dialects.gpu.missing import MISSING
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.environment import Helper
from tl2npu.passes.job import Job
from tl2npu.source.tree import children, names_in

_PACKAGES = ("tilelang.intrinsics.", "tilelang.cuda.", "tilelang.tileop.", "tvm.tir.", "tvm.script.")
"""Other places that export the same building blocks."""
_LAUNCH_KEYWORDS = {
    "prelude": ("TL185", "extern calls and code in another language"),
    "cluster_dims": ("TL186", "thread-block clusters"),
}
_HINTS = frozenset(name for name in OPERATORS.keys() - MISSING.keys() if name.startswith("annotate_"))


@dataclass(frozen=True)
class Use:
    """A place where something without an equivalent is used."""

    code: str
    what: str
    shown: str
    node: cst.CSTNode


def uses(job: Job) -> list[Use]:
    """Every use of an operator that is missing on an NPU, in the order in which the kernel reaches it."""
    return job.fact(_uses)


def _uses(job: Job) -> list[Use]:
    found: list[Use] = []
    for node in _reached(job):
        if type(node) is cst.Call:
            found += _in_launch(job, node)
        elif type(node) is cst.Name or type(node) is cst.Attribute:
            name = operator_name(job, node)
            if name in MISSING:
                found.append(Use(*MISSING[name], f"T.{name}", node))
    return found


def operator_name(job: Job, node: cst.BaseExpression) -> str:
    """The name of an operator relative to ``tilelang.language``, also of one exported elsewhere; empty for others."""
    if found := job.file.names.operator(node):
        return found
    resolved = job.file.names.resolve(node) or ""
    return resolved.rsplit(".", 1)[-1] if resolved.startswith(_PACKAGES) else ""


def _in_launch(job: Job, node: cst.Call) -> Iterator[Use]:
    """``T.Kernel(..., prelude=...)``."""
    if operator_name(job, node.func) not in ("Kernel", "ClusterKernel"):
        return
    for arg in node.args:
        name = arg.keyword.value if arg.keyword is not None else ""
        if name in _LAUNCH_KEYWORDS and not (isinstance(arg.value, cst.Name) and arg.value.value == "None"):
            yield Use(*_LAUNCH_KEYWORDS[name], f"`{name}=`", arg)


def _reached(job: Job) -> Iterator[cst.CSTNode]:
    """Every node of the kernel, of the helpers that it calls, and of what its factory binds for them.

    What only hints for the GPU compiler need (layouts) is left out, and so are the types that a comparison asks about.
    """
    kernel = job.located.node
    roots: list[cst.CSTNode] = [kernel.params, kernel.body]
    seen: set[int] = {id(kernel)}
    factory = job.located.factory
    around = [job.module.body] if factory is None else [factory.node.body.body, job.module.body]
    made = [_calls_assigned(body) for body in around]
    own = {param.name.value for param in kernel.params.params} | assigned_names(kernel.body)
    while roots:
        root = roots.pop(0)
        names: dict[str, None] = {}
        for node in _relevant(job, root):
            yield node
            if type(node) is cst.Name and not (node.value in own and root in (kernel.params, kernel.body)):
                names.setdefault(node.value)
        for found in _bound(job, names, made):
            if id(found) not in seen:
                seen.add(id(found))
                roots.append(found.body if isinstance(found, cst.FunctionDef) else found)


def _relevant(job: Job, root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) is cst.Call and operator_name(job, node.func) in _HINTS:
            continue
        if type(node) is cst.Comparison and _asks_for_type(job, node):
            continue
        yield node
        if type(node) is cst.Attribute and job.file.names.resolve(node) is not None:
            continue
        stack += reversed(children(node))


def _asks_for_type(job: Job, node: cst.Comparison) -> bool:
    sides = (node.left, *(target.comparator for target in node.comparisons))
    rows = [OPERATORS.get(operator_name(job, name)) for side in sides for name in _dotted(side)]
    return any(row is not None and row.kind is Kind.TYPE for row in rows)


def _dotted(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, (cst.Tuple, cst.List, cst.Set)):
        for element in node.elements:
            yield from _dotted(element.value)
    elif isinstance(node, (cst.Name, cst.Attribute)):
        yield node


def _bound(job: Job, names: Iterable[str], made: Sequence[Mapping[str, list[cst.Call]]]) -> Iterator[cst.CSTNode]:
    """Functions and assigned values behind names that the kernel does not bind itself."""
    for name in names:
        value = job.located.env.lookup(name)
        if isinstance(value, Helper):
            yield value.node
        else:
            yield from (call for table in made for call in table.get(name, ()))


def _calls_assigned(body: Sequence[cst.CSTNode]) -> dict[str, list[cst.Call]]:
    """Name -> the calls whose results lines of a block assign to it, or to a part of it."""
    found: dict[str, list[cst.Call]] = {}
    for line in body:
        for small in line.body if type(line) is cst.SimpleStatementLine else ():
            if type(small) is cst.Assign and type(small.value) is cst.Call:
                for name in {name.value for item in small.targets for name in names_in(item.target)}:
                    found.setdefault(name, []).append(small.value)
    return found
