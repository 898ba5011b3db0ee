"""What of a kernel is one thread's own: the indices of threads, and everything that is computed with them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.names import uses
from tl2npu.source.literals import text_of
from tl2npu.source.tree import argument, children, mentioned, names_in, nodes_of

_DIMS = {"threadIdx.x": 0, "threadIdx.y": 1, "threadIdx.z": 2}
_DEFAULT = "128"
"""Threads of a block whose launch does not say how many."""
_OWN = ("alloc_local", "alloc_var")
Axes: TypeAlias = frozenset[str]
"""The names of the thread indices that something depends on."""
NONE: Axes = frozenset()


class Unclear(Exception):
    """Code that does not take the form of loops over threads."""


@dataclass(frozen=True)
class Own:
    """A thread's own storage: ``shape`` as it is written, without an axis of one element; ``axes``: which threads'
    values differ. ``alloc``: the statement, None for a name that gets storage."""

    alloc: cst.Assign | None
    shape: tuple[str, ...]
    dtype: str
    scalar: bool
    axes: Axes


@dataclass
class Lanes:
    """``extents``: name of a thread index -> how many there are, in the order of the dimensions. ``bindings``: the
    statements that name them. ``all_named``: no dimension of threads is without a name. ``axes``: of every name that
    differs between threads, ``own`` of these the ones that are storage."""

    extents: dict[str, str]
    bindings: list[cst.Assign]
    all_named: bool
    axes: dict[str, Axes] = field(default_factory=dict)
    own: dict[str, Own] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    """The element type of every thread's own storage, as it is written."""

    def of(self, node: cst.CSTNode) -> Axes:
        """The thread indices that a piece of code depends on."""
        return NONE.union(*(self.axes.get(name.value, NONE) for name in names_in(node)))

    def ordered(self, axes: Axes) -> list[str]:
        """In the order of the dimensions."""
        return [name for name in self.extents if name in axes]

    def strides(self, body: cst.CSTNode) -> bool:
        """Whether a thread has several elements, one beside the other: its index is a factor."""
        products = (node for node in nodes_of(body, cst.BinaryOperation) if isinstance(node.operator, cst.Multiply))
        factors = (side for node in products for side in (node.left, node.right) if not nodes_of(side, cst.Subscript))
        return any(mentioned(side) & self.extents.keys() for side in factors)


def lanes_of(job: Job, besides: Container[str] = ()) -> Lanes | None:
    """The threads that a kernel tells apart by ``T.get_thread_binding`` or ``T.thread_binding``; None for kernels that
    do not, or that use more of threads than their index and the operators ``besides``. Raises :class:`Unclear`."""
    launch = job.kernel.launch
    found = [use for use in uses(job) if use.code == "TL184" and use.shown not in besides]
    if launch is None or not found:
        return None
    threads = _threads(launch.call)
    named: dict[int, tuple[str, str]] = {}
    bindings: list[cst.Assign] = []
    for use in found:
        call = job.file.index.parent(use.node)
        assign = job.file.index.parent(call) if isinstance(call, cst.Call) and call.func is use.node else None
        if not isinstance(assign, cst.Assign) or not isinstance(call, cst.Call) or len(assign.targets) != 1:
            return None
        target = assign.targets[0].target
        dim = _dimension(use.shown, call)
        if not isinstance(target, cst.Name) or dim is None or dim[0] in named or dim[0] >= len(threads):
            return None
        named[dim[0]] = target.value, dim[1] or threads[dim[0]]
        bindings.append(assign)
    extents = dict(named[dim] for dim in sorted(named))
    if len(extents) < len(named):
        return None
    rest = [extent for dim, extent in enumerate(threads) if dim not in named]
    dims = {name: dim for dim, (name, _) in named.items()}
    lanes = Lanes(extents, bindings, all(extent == "1" for extent in rest), dims=dims)
    _spread(job, lanes, launch.node)
    return lanes


def _threads(call: cst.Call) -> list[str]:
    listed = argument(call, "threads")
    if listed is None:
        return [_DEFAULT]
    if isinstance(listed, (cst.Tuple, cst.List)):
        return [code(item.value) for item in listed.elements]
    return [code(listed)]


def _dimension(shown: str, call: cst.Call) -> tuple[int, str] | None:
    """The dimension that a call names, and the number of threads if it says so."""
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    plain = [arg.value for arg in call.args if arg.keyword is None]
    if shown.endswith("get_thread_binding"):
        dim = given.get("dim", plain[0] if plain else cst.Integer("0"))
        return (int(dim.value), "") if isinstance(dim, cst.Integer) else None
    kind = given.get("thread")
    if not shown.endswith("thread_binding") or not isinstance(kind, cst.SimpleString) or len(given) > 1:
        return None
    if len(plain) == 2 and code(plain[0]) == "0":
        plain = plain[1:]
    dim_of = _DIMS.get(str(text_of(kind)))
    return (dim_of, code(plain[0])) if dim_of is not None and len(plain) == 1 else None


def _spread(job: Job, lanes: Lanes, launch: cst.With) -> None:
    """Work out which names differ between threads, until nothing is added."""
    lanes.axes = {name: frozenset({name}) for name in lanes.extents}
    local = dict(_own_storage(job, launch))
    while True:
        before = dict(lanes.axes)
        for node, around in _bound(launch.body, ()):
            target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
            if node in lanes.bindings or (isinstance(node, cst.Assign) and len(node.targets) > 1):
                continue
            reached = lanes.of(node.value or target).union(*(lanes.of(test) for test in around))
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                if target.value.value not in local:
                    continue
                reached |= NONE.union(*(lanes.of(item) for item in target.slice))
                name = target.value.value
            elif isinstance(target, cst.Name):
                name = target.value
            else:
                raise Unclear
            if reached:
                lanes.axes[name] = lanes.axes.get(name, NONE) | reached
        if lanes.axes == before:
            break
    lanes.types = {name: dtype for name, (_, _, dtype, _) in local.items()}
    for name, (alloc, shape, dtype, scalar) in local.items():
        if axes := lanes.axes.get(name, NONE):
            lanes.own[name] = Own(alloc, shape, dtype, scalar, axes)


def _own_storage(job: Job, launch: cst.With) -> Iterator[tuple[str, tuple[cst.Assign, tuple[str, ...], str, bool]]]:
    for node in nodes_of(launch.body, cst.Assign):
        value, target = node.value, node.targets[0].target
        if not isinstance(value, cst.Call) or not isinstance(target, cst.Name):
            continue
        name = job.file.names.operator(value.func)
        if name not in _OWN:
            continue
        given = [arg.value for arg in value.args]
        if name == "alloc_var" and len(given) == 1:
            yield target.value, (node, (), code(given[0]), True)
        elif name == "alloc_local" and len(given) == 2 and isinstance(given[0], (cst.Tuple, cst.List)):
            shape = tuple(code(item.value) for item in given[0].elements)
            yield target.value, (node, () if shape == ("1",) else shape, code(given[1]), False)


_Binding: TypeAlias = cst.Assign | cst.AugAssign | cst.AnnAssign


def _bound(node: cst.CSTNode, around: Sequence[cst.CSTNode]) -> Iterator[tuple[_Binding, Sequence[cst.CSTNode]]]:
    """Every assignment, with the conditions and ranges that it stands under."""
    for child in children(node):
        if isinstance(child, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            yield child, around
        elif isinstance(child, cst.If):
            yield from _bound(child, (*around, child.test))
        elif isinstance(child, cst.For):
            yield from _bound(child, (*around, child.iter))
        elif not isinstance(child, cst.BaseExpression):
            yield from _bound(child, around)
