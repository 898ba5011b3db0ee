"""TL211 to TL214: parameters that carried hand-overs go, and everything that counts parameters follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factory import Compilation
from tl2npu.kernel.model import Buffer, Memory
from tl2npu.kernel.positions import (
    compilations,
    indices,
    output_positions,
    parameter_count,
    workspace_positions,
)
from tl2npu.passes.definitions import visible_uses
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import children, names_in


def _list_text(values: Sequence[int], like: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(like, cst.Integer | cst.UnaryOperation) and len(values) == 1:
        return cst.parse_expression(str(values[0]))
    inner = ", ".join(map(str, values))
    if isinstance(like, cst.Tuple):
        return cst.parse_expression(f"({inner},)" if len(values) == 1 else f"({inner})")
    return cst.parse_expression(f"[{inner}]")


def drop_parameters(job: Job, emptied: Sequence[Buffer], fused: int) -> None:
    """Remove the parameters, re-number ``workspace_idx`` and ``out_idx`` and change the calls in this file.

    With ``fused`` > 0 every negative ``out_idx`` becomes positive: the compiler appends its own workspaces behind the
    parameters (R-OUTIDX). Raises :class:`Blocked` if host code passes a dropped tensor from where it cannot be changed.
    """
    outputs, workspaces = (
        output_positions(job.file, job.located),
        workspace_positions(job.file, job.located),
    )
    gone = [b for b in emptied if b.memory is Memory.GM and b.index not in outputs]
    positions = {b.index for b in gone}
    factory = job.located.factory
    siblings = [item for item in job.file.located if item.factory is factory and item.node is not job.located.node]
    if factory is not None and siblings and (gone or fused):
        raise Blocked("TL902", siblings[0].node, "two kernels of one factory share its out_idx and workspace_idx")
    edits = Edits(job.file.index)
    for buffer in gone:
        edits.remove(buffer.node)
        job.change("TL211", buffer.node, f"`{buffer.name}` carries nothing any more")
    for compilation in compilations(job.located):
        if compilation.unread is not None and (gone or fused):
            raise Blocked("TL902", compilation.unread, "the arguments of tilelang.jit come from elsewhere")
        _renumber(job, edits, compilation, "workspace_idx", positions, bool(fused))
        _renumber(job, edits, compilation, "out_idx", positions, bool(fused))
    passed = positions - workspaces
    if passed:
        hidden = outputs | workspaces
        visible = [i for i in range(parameter_count(job.located)) if i not in hidden]
        _change_calls(job, edits, gone, {visible.index(i) for i in passed}, len(visible))
    job.apply(edits)


def refuse_shared_arguments(job: Job, compilation: Compilation) -> None:
    """Arguments passed as ``**name`` may only change if no other compilation uses the name."""
    spread = compilation.spread
    if not isinstance(spread, cst.Name):
        return
    uses = sum(1 for name in names_in(job.module) if name.value == spread.value)
    if uses > 2 or job.elsewhere[spread.value]:
        raise Blocked("TL902", spread, f"`{spread.value}` also holds the arguments of other kernels")


def _renumber(job: Job, edits: Edits, compilation: Compilation, key: str, gone: set[int], rebase: bool) -> None:
    found = indices(job.file, job.located, compilation, key)
    if found is None:
        return
    count = parameter_count(job.located)
    kept = [
        (given, position) for given, position in zip(found.given, found.positions, strict=False) if position not in gone
    ]
    rule = "TL212" if key == "workspace_idx" else "TL213"
    if not kept and key == "workspace_idx":
        refuse_shared_arguments(job, compilation)
        edits.remove(_holder(job, compilation, key))
        job.change("TL212", found.arg, "no parameter is a workspace any more")
        return
    new = []
    for given, position in kept:
        shifted = position - sum(1 for g in gone if g < position)
        new.append(shifted if given >= 0 or (rebase and key == "out_idx") else shifted - (count - len(gone)))
    if tuple(new) != found.given:
        refuse_shared_arguments(job, compilation)
        if isinstance(found.arg, cst.Name):
            raise Blocked("TL902", found.arg, f"`{key}` is the name `{found.arg.value}`, which other code may use")
        edits.replace(found.arg, _list_text(new, found.arg))
        job.change(rule, found.arg, f"`{key}`: {list(found.given)} -> {new}")


def _holder(job: Job, compilation: Compilation, key: str) -> cst.CSTNode:
    """The argument (or dict element) that carries a keyword."""
    value = compilation.kwargs[key]
    holder = job.file.index.parent(value)
    if not isinstance(holder, (cst.Arg, cst.DictElement)):
        raise Blocked("TL902", value, f"`{key}` cannot be removed here")
    return holder


# calls ---------------------------------------------------------------------------------------------------------------


def kernel_calls(job: Job) -> Iterator[cst.Call]:
    """Calls of the compiled kernel in this file: ``factory(...)(...)`` and ``f = factory(...); f(...)``.

    Raises :class:`Blocked` for any other use of the factory or of what it made: the kernel may be called from there.
    """
    factory = job.located.factory
    if factory is None:
        return
    index, name = job.file.index, factory.node.name.value
    handles: dict[int, tuple[cst.CSTNode, str]] = {}
    for use in names_in(job.module):
        if use.value != name or use is factory.node.name:
            continue
        made = index.parent(use)
        while isinstance(made, cst.Arg) or (isinstance(made, cst.Call) and not _makes_kernel(job, made, name)):
            made = index.parent(made)
        if not isinstance(made, cst.Call):
            raise _unseen(use, name)
        above = index.parent(made)
        if isinstance(above, cst.Call) and above.func is made:
            yield above
        elif isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
            handles[id(above)] = index.enclosing(above, cst.FunctionDef) or job.module, target.value
        elif not isinstance(above, cst.Expr):
            raise _unseen(use, name)
    for scope, handle in handles.values():
        yield from _handle_calls(job, scope, handle)


def _handle_calls(job: Job, scope: cst.CSTNode, handle: str) -> Iterator[cst.Call]:
    index = job.file.index
    for use in visible_uses(scope, handle):
        above = index.parent(use)
        if isinstance(above, cst.Call) and above.func is use:
            yield above
        elif not isinstance(above, (cst.Attribute, cst.AssignTarget)):
            raise _unseen(use, handle)


def _unseen(node: cst.CSTNode, name: str) -> Blocked:
    return Blocked("TL883", node, f"`{name}` is used here in a way that may hide a call of the kernel")


def _makes_kernel(job: Job, call: cst.Call, factory: str) -> bool:
    if isinstance(call.func, cst.Name) and call.func.value == factory:
        return True
    compiled = job.file.names.resolve(call.func)
    if compiled in ("tilelang.compile", "tilelang.jit") and call.args:
        inner = call.args[0].value
        while isinstance(inner, cst.Call):
            inner = inner.func
        return isinstance(inner, cst.Name) and inner.value == factory
    return False


def _assigns(node: cst.CSTNode) -> Iterator[cst.Assign]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Assign):
            yield current
        elif not isinstance(current, cst.BaseExpression):
            stack += reversed(children(current))


def _change_calls(job: Job, edits: Edits, gone: Sequence[Buffer], places: set[int], arity: int) -> None:
    found = list(kernel_calls(job))
    if not found:
        raise Blocked(
            "TL883",
            gone[0].node,
            f"`{gone[0].name}` is passed by the caller, and no call of the kernel in this file shows how",
        )
    for call in found:
        if any(arg.star or arg.keyword for arg in call.args) or len(call.args) != arity:
            raise Blocked("TL883", call, "this call of the kernel cannot be changed with certainty")
        for place in sorted(places):
            arg = call.args[place]
            edits.remove(arg)
            job.change("TL214", call, f"`{code(arg.value)}` is no longer passed")
    _drop_tensors(job, edits, [call.args[p].value for call in found for p in places])


def _drop_tensors(job: Job, edits: Edits, values: Sequence[cst.BaseExpression]) -> None:
    """Host tensors that only served as workspaces go with their allocation.

    A tensor that the host also uses otherwise carries data in or out: raises :class:`Blocked`.
    """
    removed = {id(value) for value in values}
    for value in values:
        if not isinstance(value, cst.Name) and not _is_allocation(value):
            raise Blocked("TL883", value, f"where `{code(value)}` comes from and goes to cannot be seen")
    names = {value.value for value in values if isinstance(value, cst.Name)}
    for name in sorted(names):
        stores = [
            a
            for a in _assigns(job.module)
            if len(a.targets) == 1 and isinstance(a.targets[0].target, cst.Name) and a.targets[0].target.value == name
        ]
        targets = {id(a.targets[0].target) for a in stores}
        other = [
            n
            for n in names_in(job.module)
            if n.value == name and id(n) not in removed and id(n) not in targets and not _in_kernel(job, n)
        ]
        if other or not stores or not all(_is_allocation(a.value) for a in stores):
            place = other[0] if other else next(v for v in values if isinstance(v, cst.Name) and v.value == name)
            raise Blocked("TL842", place, f"host code also uses `{name}`, which the kernel would no longer write")
        for assign in stores:
            edits.remove(assign)
            job.change("TL214", assign, f"`{name}` was only a workspace")


def _in_kernel(job: Job, node: cst.CSTNode) -> bool:
    return any(above is job.located.node for above in job.file.index.ancestors(node))


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
