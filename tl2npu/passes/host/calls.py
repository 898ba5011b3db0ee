"""Calls of kernels in host code, in the file of the kernel or in another one, and arguments that they lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import children, names_in


@dataclass(frozen=True, eq=False)
class Host:
    """A file that calls a factory. ``definition`` is the name in its ``def`` and ``kernel`` the prim_func, where they
    stand in this file. ``change`` is told of edits; ``shared``: may other files import this name of the module?
    """

    index: Index
    names: Names
    factory: str
    change: Callable[[str, cst.CSTNode, str], None]
    shared: Callable[[str], bool]
    definition: cst.Name | None = None
    kernel: cst.CSTNode | None = None


def kernel_calls(host: Host) -> Iterator[cst.Call]:
    """Calls of the compiled kernel: ``factory(...)(...)`` and ``f = factory(...); f(...)``.

    Raises :class:`Blocked` for any other use of the factory or of what it made: the kernel may be called from there.
    """
    index, name = host.index, host.factory
    handles: dict[int, tuple[cst.CSTNode, str]] = {}
    for use in names_in(index.module):
        if use.value != name or use is host.definition:
            continue
        made = index.parent(use)
        if isinstance(made, (cst.ImportAlias, cst.AsName)):
            continue
        while isinstance(made, cst.Arg) or (isinstance(made, cst.Call) and not _makes_kernel(host, made)):
            made = index.parent(made)
        if not isinstance(made, cst.Call):
            raise _unseen(use, name)
        above = index.parent(made)
        if isinstance(above, cst.Call) and above.func is made:
            yield above
        elif isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
            scope: cst.CSTNode = index.enclosing(above, cst.FunctionDef) or index.module
            if scope is index.module and host.shared(target.value):
                raise Blocked("TL915", above, f"other files may import `{target.value}`")
            handles[id(above)] = scope, target.value
        elif not isinstance(above, cst.Expr):
            raise _unseen(use, name)
    for scope, handle in handles.values():
        yield from _handle_calls(index, scope, handle)


def _handle_calls(index: Index, scope: cst.CSTNode, handle: str) -> Iterator[cst.Call]:
    for use in visible_uses(scope, handle):
        above = index.parent(use)
        if isinstance(above, cst.Call) and above.func is use:
            yield above
        elif not isinstance(above, (cst.Attribute, cst.AssignTarget)):
            raise _unseen(use, handle)


def _unseen(node: cst.CSTNode, name: str) -> Blocked:
    return Blocked("TL883", node, f"this use of `{name}` may hide a call of the kernel")


def _makes_kernel(host: Host, call: cst.Call) -> bool:
    if isinstance(call.func, cst.Name) and call.func.value == host.factory:
        return True
    compiled = host.names.resolve(call.func)
    if compiled in ("tilelang.compile", "tilelang.jit") and call.args:
        inner = call.args[0].value
        while isinstance(inner, cst.Call):
            inner = inner.func
        return isinstance(inner, cst.Name) and inner.value == host.factory
    return False


def _assigns(node: cst.CSTNode) -> Iterator[cst.Assign]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Assign):
            yield current
        elif not isinstance(current, cst.BaseExpression):
            stack += reversed(children(current))


def drop_arguments(host: Host, edits: Edits, gone: Mapping[int, str], arity: int) -> int:
    """Take arguments out of every call of the kernel; how many calls there are.

    ``gone``: their places among the ``arity`` arguments, with the names of the parameters. Raises :class:`Blocked` for
    calls that cannot be changed with certainty, and for tensors that the host also uses otherwise.
    """
    found = list(kernel_calls(host))
    for call in found:
        if any(arg.star or arg.keyword for arg in call.args) or len(call.args) != arity:
            raise Blocked("TL883", call, "cannot prove what this call passes to the kernel")
        for place in sorted(gone):
            arg = call.args[place]
            edits.remove(arg)
            host.change("TL214", call, f"removed the argument `{code(arg.value)}`")
    _drop_tensors(host, edits, [call.args[p].value for call in found for p in sorted(gone)])
    return len(found)


def _drop_tensors(host: Host, edits: Edits, values: Sequence[cst.BaseExpression]) -> None:
    """Host tensors that only served as workspaces go with their allocation.

    A tensor that the host also uses otherwise carries data in or out: raises :class:`Blocked`.
    """
    removed = {id(value) for value in values}
    for value in values:
        if not isinstance(value, cst.Name) and not _is_allocation(value):
            raise Blocked("TL883", value, f"cannot trace the uses of `{code(value)}`")
    names = {value.value for value in values if isinstance(value, cst.Name)}
    for name in sorted(names):
        stores = [
            a
            for a in _assigns(host.index.module)
            if len(a.targets) == 1 and isinstance(a.targets[0].target, cst.Name) and a.targets[0].target.value == name
        ]
        targets = {id(a.targets[0].target) for a in stores}
        other = [
            n
            for n in names_in(host.index.module)
            if n.value == name and id(n) not in removed and id(n) not in targets and not _in_kernel(host, n)
        ]
        if other or not stores or not all(_is_allocation(a.value) for a in stores):
            place = other[0] if other else next(v for v in values if isinstance(v, cst.Name) and v.value == name)
            raise Blocked("TL842", place, f"host code also reads `{name}`, which the migrated kernel would not write")
        for assign in stores:
            edits.remove(assign)
            host.change("TL214", assign, f"removed `{name}`, which was only a workspace")


def _in_kernel(host: Host, node: cst.CSTNode) -> bool:
    return any(above is host.kernel for above in host.index.ancestors(node))


def _is_allocation(node: cst.BaseExpression) -> bool:
    """``torch.empty(...)``, ``torch.zeros(...).npu()`` and the like: nothing but an allocation happens."""
    while isinstance(node, cst.Call):
        func = node.func
        if not isinstance(func, cst.Attribute):
            return False
        if func.attr.value in ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "randn", "rand"):
            return True
        node = func.value
    return False
