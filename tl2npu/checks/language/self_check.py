"""TL810 to TL813, TL815, TL816: the self-check list of a migrated kernel: launch, leftovers, pass_configs.

Evidence: facts 5 and 6 and E46, measured with the compiler at 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.cross_core.channels import kept, on_chip
from tl2npu.checks.cross_core.unordered import by_hand
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.configs import COMBINE, CV_SYNC, SYNC
from tl2npu.kernel.factories.positions import compilations, indices
from tl2npu.kernel.memory.inferred import certain_uses, inferred
from tl2npu.kernel.model import Launch, Op, ScopeBlock, Sync
from tl2npu.results import Severity
from tl2npu.source.tree import names_in, nodes_of

_EXPLICIT = {"alloc_L1": "alloc_shared", "alloc_ub": "alloc_shared", "alloc_L0C": "alloc_fragment"}
_IN_CORE = ("set_flag", "wait_flag", "barrier_all", "pipe_barrier")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about the form of a kernel, whatever it computes."""
    launch = subject.kernel.launched
    yield from _check_launch(subject, launch)
    found = on_chip(subject)
    if launch.threads is not None:
        yield from _check_vid(subject, launch)
        yield from _check_allocations(subject)
    elif found:
        text = "cross-core transfers without `threads=`: both vector cores do all of the vector work"
        yield Finding("TL813", launch.call, text, "warning")
    if found:
        yield from _check_workspaces(subject)
    yield from _check_configs(subject)


def _check_launch(subject: Subject, launch: Launch) -> Iterator[Finding]:
    call = launch.call
    if launch.threads is not None:
        value = launch.threads_value
        if value is not None and value not in (1, 2):
            yield Finding("TL815", call, f"an NPU kernel takes 1 or 2 threads, not {value}")
        given = launch.threads.node
        several = isinstance(given, (cst.Tuple, cst.List)) and len(given.elements) != 1
        if several or subject.is_runtime(launch.threads.sym):
            why = "one axis of threads" if several else "a number of threads that is known when it is compiled"
            yield Finding("TL815", call, f"an NPU kernel takes {why}, not `{code(given)}`")
        if not launch.is_npu:
            yield Finding("TL815", call, "without `is_npu=True`, `threads=` does not split the vector work")
        target = launch.item.asname.name if launch.item.asname is not None else None
        if isinstance(target, cst.Tuple):
            yield Finding("TL815", call, "with `threads=` the launch binds one name: `as (cid)`")
    elif launch.is_npu and isinstance(launch.item.asname and launch.item.asname.name, cst.Name):
        yield Finding("TL815", call, "without `threads=` the launch binds two names: `as (cid, _)`")
    if len(launch.grid) > 1:
        yield Finding("TL815", call, f"an NPU kernel has one grid axis, not {len(launch.grid)}")


def _check_vid(subject: Subject, launch: Launch) -> Iterator[Finding]:
    """TL810: the axis of the vector cores by its usual name, which nothing binds any more."""
    if len(launch.names) > 1 and launch.names[1] != "_":
        return  # the launch itself is rejected
    bound = {*launch.names, *assigned_names(subject.kernel.node.body), *subject.kernel.scalars}
    factory = subject.located.factory
    if factory is not None:
        bound |= {param.name.value for param in nodes_of(factory.node.params, cst.Param)}
        bound |= assigned_names(factory.node.body)
    if "vid" in bound:
        return  # a block, or a variable of the kernel or its factory; what the module has may be there by chance
    for name in names_in(launch.node.body):
        if name.value == "vid":
            yield Finding("TL810", name, "`vid` is used, but the launch does not bind it")
            return


def _check_allocations(subject: Subject) -> Iterator[Finding]:
    """TL812: explicit memories where the inference gives the same."""
    found = certain_uses(subject.kernel, subject.late)
    for buffer, use in found.items():
        general = _EXPLICIT.get(buffer.alloc)
        if general is None or not isinstance(buffer.node, cst.Call) or buffer.outside:
            continue
        if general == "alloc_shared" and inferred(use) is not buffer.memory:
            continue
        yield Finding("TL812", buffer.node, f"`{buffer.name}` is allocated with T.{buffer.alloc}, not T.{general}")


def _check_workspaces(subject: Subject) -> Iterator[Finding]:
    """TL811: workspaces beside on-chip copies, which bring their own."""
    touched = {a.operand.buffer for placed in subject.statements for a in accesses(placed.stmt)}
    for param in subject.kernel.params:
        if "workspace" in param.name.lower():
            unused = param not in touched
            severity: Severity | None = None if unused else "warning"
            how = "is unused" if unused else "carries a cross-core transfer in a kernel with on-chip copies"
            yield Finding("TL811", param.node, f"the parameter `{param.name}` {how}", severity)
    names = {param.index: param for param in subject.kernel.params}
    for compilation in compilations(subject.located):
        node = compilation.kwargs.get("workspace_idx")
        if node is None:
            continue
        try:
            found = indices(subject.file, subject.located, compilation, "workspace_idx")
        except Blocked:
            yield Finding("TL811", node, "`workspace_idx` lists parameters that the kernel does not have")
            continue
        for position in found.positions if found else ():
            param_at = names.get(position)
            if param_at is None or "workspace" not in param_at.name.lower():
                shown = param_at.name if param_at else f"number {position}"
                yield Finding("TL811", node, f"`workspace_idx` lists the parameter {shown}, which is not a workspace")


def _check_configs(subject: Subject) -> Iterator[Finding]:
    """TL816: the passes without which this form of the kernel is wrong."""
    compiled = compilations(subject.located)
    if not compiled:
        return
    node = compiled[0].kwargs.get("pass_configs") or compiled[0].node
    if any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements):
        return  # reported as a leftover scope
    missing = [key for key in keys_needed(subject) if subject.is_on(key) is False]
    if missing == [SYNC] and _orders_itself(subject):
        text = f"{SYNC} is off, and nothing here needs it: `T.gemm_v0` orders its loads and the store of its result"
        yield Finding("TL816", node, text, "info")
    elif missing:
        yield Finding("TL816", node, f"the kernel needs {' and '.join(missing)}")
    elif subject.is_on(CV_SYNC) and subject.is_on(COMBINE) is False:
        yield Finding("TL816", node, f"{CV_SYNC} does nothing without {COMBINE}")


def _orders_itself(subject: Subject) -> bool:
    """Whether nothing but ``gemm_v0`` and what it waits for runs on the cube core (``common.h:gemm_v0``)."""
    products = any(isinstance(placed.stmt, Op) and placed.stmt.op.kind is Kind.GEMM for placed in subject.statements)
    runs = by_hand(subject) if products and not subject.is_mixed else ()
    return bool(runs) and not any(run.conflicts for run in runs)


def is_left_off(subject: Subject) -> bool:
    """Whether a kernel needs one of the passes by its form, and not by what it does."""
    return keys_needed(subject) == [SYNC] and _orders_itself(subject)


def keys_needed(subject: Subject) -> list[str]:
    """The passes without which a kernel in Developer mode is wrong."""
    by_hand = any(isinstance(p.stmt, Sync) and p.stmt.op.name in _IN_CORE for p in subject.statements)
    needed = [] if by_hand else [SYNC]
    if subject.is_mixed:
        needed.append(COMBINE)
    if on_chip(subject) or kept(subject.kernel):
        needed.append(CV_SYNC)
    return needed
