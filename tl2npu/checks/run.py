"""All checks of one kernel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import libcst as cst

from tl2npu.checks import blocks, npuir
from tl2npu.checks.cross_core import both_store, cores, flags, hand_overs, host, kept, pipelines, races, unordered
from tl2npu.checks.language import (
    declarations,
    front_end,
    generated_names,
    gpu_names,
    leftover_sync,
    leftovers,
    self_check,
    signatures,
)
from tl2npu.checks.memory_plan import addresses, fitting, sharing
from tl2npu.checks.operators import (
    alignment,
    arguments,
    copies,
    element_types,
    extents,
    floors,
    gather,
    gemm,
    generated,
    in_place,
    intrinsics,
    missing_operators,
    parallel,
    plane_copies,
    reciprocals,
    shapes,
    starts,
    tile_bounds,
    unfilled,
    untouched,
    unwritten,
    values,
)
from tl2npu.checks.row_split import doubled, outside, row_ops, rows
from tl2npu.checks.subject import Check, Finding, Subject
from tl2npu.dialects import ascend, gpu
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.kernel.model import Op
from tl2npu.source.index import Index

CHECKS: tuple[Check, ...] = (
    rows.check,
    row_ops.check,
    outside.check,
    doubled.check_one_thread,
    hand_overs.check,
    races.check,
    unordered.check,
    self_check.check,
    leftover_sync.check,
    cores.check,
    parallel.check,
    gather.check,
    copies.check,
    alignment.check,
    arguments.check,
    element_types.check,
    extents.check,
    shapes.check,
    tile_bounds.check,
    values.check,
    in_place.check,
    missing_operators.check,
    reciprocals.check,
    kept.check,
    pipelines.check,
    host.check,
    gemm.check,
    leftovers.check,
    gpu_names.check,
    generated_names.check,
    fitting.check,
    fitting.check_open_sizes,
    sharing.check,
    addresses.check,
    starts.check,
    plane_copies.check,
    unfilled.check,
    signatures.check,
    declarations.check,
    front_end.check,
    intrinsics.check,
    generated.check,
    floors.check,
    blocks.check,
)
"""Every family; the order does not matter."""
AS_IT_STANDS: tuple[Check, ...] = (doubled.check, flags.check)
BY_HAND: tuple[Check, ...] = (
    *AS_IT_STANDS,
    unwritten.check,
    untouched.check,
    both_store.check,
    flags.check_places,
    intrinsics.check_slow,
)
"""Of kernels that somebody wrote, and no migration has to mend; the first also of those for AscendNPU IR."""

ROW_SPLIT_CHECKS: tuple[Check, ...] = (rows.check, row_ops.check, outside.check)
"""Whether ``threads=2`` splits the rows of every tile as the kernel needs it."""


def check_kernel(subject: Subject) -> list[Finding]:
    """What is wrong with a Developer-mode kernel, in text order, each finding once.

    A kernel for AscendNPU IR has checks of its own.
    A prim_func without a launch has no findings.
    """
    if subject.kernel.launch is None:
        return []
    return _findings(subject, npuir.CHECKS if _is_npuir(subject) else CHECKS)


def check_quickly(subject: Subject) -> list[Finding]:
    """The same without the order of accesses, for which the pipes run with clocks."""
    if subject.kernel.launch is None or _is_npuir(subject):
        return check_kernel(subject)
    return _findings(subject, [check for check in CHECKS if check is not unordered.check])


def _is_npuir(subject: Subject) -> bool:
    return subject.kernel.dialect == "npuir" or subject.options.target == "npuir"


def check_families(subject: Subject, checks: Sequence[Check]) -> list[Finding]:
    """What some of the checks of a Developer-mode kernel say; kept for those that ask again, or for all."""
    return _findings(subject, checks)


def check_as_it_stands(subject: Subject) -> list[Finding]:
    """What is wrong with a kernel that is judged as somebody wrote it.

    Of a kernel that is a GPU's in all that it calls, its launch is named, and what it leaves out of its tensors: that
    its fragments lie in L0C, say, is no news to anybody who has not migrated it.
    """
    launch = subject.kernel.launch
    if launch is None or launch.threads is None or subject.kernel.dialect != "gpu" or _calls_ascend(subject):
        found = [*check_kernel(subject), *_findings(subject, AS_IT_STANDS if _is_npuir(subject) else BY_HAND)]
        return [replace(f, severity=f.as_it_stands) if f.as_it_stands is not None else f for f in found]
    text = "this is a GPU kernel: `is_npu=True` is missing (try `tl2npu migrate`)"
    return [Finding("TL815", launch.call, text), *_findings(subject, (untouched.check,))]


def _calls_ascend(subject: Subject) -> bool:
    ops = (placed.stmt.op.name for placed in subject.statements if isinstance(placed.stmt, Op))
    return any(name in ascend.OPERATORS and name not in gpu.OPERATORS for name in ops)


def _findings(subject: Subject, checks: Sequence[Check]) -> list[Finding]:
    found: list[Finding] = []
    seen: set[tuple[str, int, str]] = set()
    told: set[tuple[str, int, str, str | None]] = set()  # of the other number of threads, whose example may differ
    for arm in subject.arms:
        mine: set[tuple[str, int, str, str | None]] = set()
        for finding in (one for check in checks for one in _once(arm, check)):
            key = (finding.code, id(finding.node), finding.message)
            short = (finding.code, id(finding.node), finding.message.partition(" (")[0], finding.severity)
            if _applies(subject, finding.code) and key not in seen and short not in told:
                seen.add(key)
                mine.add(short)
                found.append(finding)
        told |= mine
    places = _ranks(subject.file.index, {id(finding.node): finding.node for finding in found}.values())
    if places is None:
        return sorted(found, key=lambda finding: (_place(subject, finding), finding.code))
    return sorted(found, key=lambda finding: (places[id(finding.node)], finding.code))


def _once(arm: Subject, check: Check) -> Sequence[Finding]:
    """What a check says of a kernel: worked out once, whoever asks."""
    if check not in arm.kept:
        arm.kept[check] = tuple(replace(finding, by=check) for finding in check(arm))
    found = arm.kept[check]
    assert isinstance(found, tuple)
    return found


def _ranks(index: Index, nodes: Collection[cst.CSTNode]) -> dict[int, tuple[int, int, int]] | None:
    """The order of nodes in the text: by their statements, and by their places in these; None if that is not enough.

    Positions say it in any case, but a tree that passes made has them only when it is written out and parsed again.
    """
    order = {id(statement): rank for rank, statement in enumerate(index.statements)} if len(nodes) > 1 else {}
    ranks: dict[int, tuple[int, int, int]] = {}
    for node in nodes:
        statement = index.statement(node) if node in index and index.foreign(node) is None else None
        if statement is None or isinstance(statement, (cst.Try, cst.TryStar, cst.Match)):
            return None  # the latter go on behind the statements in them
        ranks[id(node)] = order.get(id(statement), 0), *index.place_in_statement(node)
    return ranks


def _applies(subject: Subject, code: str) -> bool:
    """False for a limit that the kernel's compiler version is known not to have."""
    known = any(compiler.holds(code) for compiler in COMPILERS.values())
    return not known or subject.compiler.holds(code)


def _place(subject: Subject, finding: Finding) -> tuple[int, int]:
    if finding.node not in subject.file.index:
        return (0, 0)
    position = subject.file.index.position(finding.node)
    return position.line, position.column
