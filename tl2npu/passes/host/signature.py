"""TL211 to TL214: parameters that carried hand-overs go, and everything that counts parameters follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.positions import (
    compilations,
    indices,
    output_positions,
    parameter_count,
    workspace_positions,
)
from tl2npu.kernel.model import Buffer, Memory
from tl2npu.passes.host.calls import drop_arguments
from tl2npu.passes.host.followers import followers_of, host_of
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import listed_like
from tl2npu.results import Follower
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def drop_parameters(job: Job, emptied: Sequence[Buffer], fused: int) -> None:
    """Remove the parameters, re-number ``workspace_idx`` and ``out_idx`` and change the calls in this file.

    With ``fused`` > 0 every negative ``out_idx`` becomes positive: the compiler appends its own workspaces behind the
    parameters (R-OUTIDX). Raises :class:`Blocked` if host code passes a dropped tensor from where it cannot be changed.
    """
    outputs, workspaces = (output_positions(job.file, job.located), workspace_positions(job.file, job.located))
    gone = [b for b in emptied if b.memory is Memory.GM and b.index not in outputs]
    positions = {b.index for b in gone}
    factory = job.located.factory
    siblings = [item for item in job.file.located if item.factory is factory and item.node is not job.located.node]
    if factory is not None and siblings and (gone or fused):
        raise Blocked("TL902", siblings[0].node, "two kernels of one factory share its out_idx and workspace_idx")
    edits = Edits(job.file.index)
    for buffer in gone:
        edits.remove(buffer.node)
        job.change("TL211", buffer.node, f"removed `{buffer.name}`, which is unused now")
    for compilation in compilations(job.located):
        if compilation.unread is not None and (gone or fused):
            raise Blocked("TL902", compilation.unread, compilation.why_unread)
        _renumber(job, edits, compilation, "workspace_idx", positions, bool(fused))
        _renumber(job, edits, compilation, "out_idx", positions, bool(fused))
    passed = positions - workspaces
    if passed:
        hidden = outputs | workspaces
        visible = [i for i in range(parameter_count(job.located)) if i not in hidden]
        _change_calls(job, edits, {visible.index(b.index): b.name for b in gone if b.index in passed}, len(visible))
    job.apply(edits)


def _change_calls(job: Job, edits: Edits, gone: Mapping[int, str], arity: int) -> None:
    """The calls in this file follow at once; those in others are noted, and must be able to follow."""
    factory = job.located.factory
    name = next(iter(gone.values()))
    found = 0
    followers: tuple[Follower, ...] = ()
    if factory is not None:
        found = drop_arguments(host_of(job, factory.node), edits, gone, arity)
        followers = followers_of(job, factory.node)
    if not found and not followers:
        text = f"callers pass `{name}`, but no call of the kernel is in this repository"
        raise Blocked("TL883", job.located.node, text)
    job.promise(followers, arguments=gone, arity=arity)


def refuse_shared_arguments(job: Job, compilation: Compilation) -> None:
    """Arguments passed as ``**name`` may only change if no other compilation uses the name."""
    spread = compilation.spread
    if not isinstance(spread, cst.Name):
        return
    uses = sum(1 for name in names_in(job.module) if name.value == spread.value)
    if uses > 2 or job.elsewhere[spread.value]:
        raise Blocked("TL902", spread, f"`{spread.value}` also contains arguments of other kernels")


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
        holder = _holder(job, compilation, key)
        if isinstance(holder, cst.Arg) and _places_others(holder, compilation):
            edits.replace(holder.value, cst.Name("None"))
        else:
            edits.remove(holder)
        job.change("TL212", found.arg, "dropped `workspace_idx`: no workspace parameter is left")
        return
    new = []
    for given, position in kept:
        shifted = position - sum(1 for g in gone if g < position)
        new.append(shifted if given >= 0 or (rebase and key == "out_idx") else shifted - (count - len(gone)))
    if tuple(new) != found.given:
        refuse_shared_arguments(job, compilation)
        if isinstance(found.arg, cst.Name):
            raise Blocked("TL902", found.arg, f"`{key}` is set from `{found.arg.value}`, which other code may use too")
        edits.replace(found.arg, listed_like(new, found.arg))
        job.change(rule, found.arg, f"`{key}`: {list(found.given)} -> {new}")


def _places_others(arg: cst.Arg, compilation: Compilation) -> bool:
    """An argument by position with others by position behind it, which count on it."""
    args = compilation.call.args if compilation.call is not None else ()
    behind = args[args.index(arg) + 1 :] if arg in args else ()
    return arg.keyword is None and any(other.keyword is None and not other.star for other in behind)


def _holder(job: Job, compilation: Compilation, key: str) -> cst.CSTNode:
    """The argument (or dict element) that carries a keyword."""
    value = compilation.kwargs[key]
    holder = job.file.index.parent(value)
    if not isinstance(holder, (cst.Arg, cst.DictElement)):
        raise Blocked("TL902", value, f"cannot remove `{key}` here")
    return holder
