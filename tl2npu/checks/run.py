"""All checks of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tl2npu.checks import (
    copies,
    cores,
    fitting,
    gather,
    gemm,
    gpu_names,
    hand_overs,
    host,
    kept,
    leftovers,
    npuir,
    parallel,
    pipelines,
    races,
    row_ops,
    rows,
    self_check,
    starts,
    unbound_names,
)
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.compiler import COMPILERS

Check = Callable[[Subject], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    rows.check,
    row_ops.check,
    hand_overs.check,
    races.check,
    self_check.check,
    cores.check,
    parallel.check,
    gather.check,
    copies.check,
    kept.check,
    pipelines.check,
    host.check,
    gemm.check,
    leftovers.check,
    gpu_names.check,
    fitting.check,
    starts.check,
    unbound_names.check,
)
"""Every family; the order does not matter."""


def check_kernel(subject: Subject) -> list[Finding]:
    """What is wrong with a Developer-mode kernel, in text order, each finding once.

    A kernel for AscendNPU IR has checks of its own.
    A kernel in Expert mode is judged by the self-check list only: the other checks assume that the automatic passes
    run. A prim_func without a launch has no findings.
    """
    if subject.kernel.launch is None:
        return []
    if subject.kernel.dialect == "npuir" or subject.options.target == "npuir":
        return _findings(subject, npuir.CHECKS)
    if subject.is_expert:
        return list(self_check.check_leftover_sync(subject))
    return _findings(subject, CHECKS)


def _findings(subject: Subject, checks: Sequence[Check]) -> list[Finding]:
    found: list[Finding] = []
    seen: set[tuple[str, int, str]] = set()
    for check in checks:
        for finding in check(subject):
            key = (finding.code, id(finding.node), finding.message)
            if _applies(subject, finding.code) and key not in seen:
                seen.add(key)
                found.append(finding)
    if len({id(finding.node) for finding in found}) < 2:  # positions are dear
        return sorted(found, key=lambda finding: finding.code)
    return sorted(found, key=lambda finding: (_place(subject, finding), finding.code))


def _applies(subject: Subject, code: str) -> bool:
    """False for a limit that the kernel's compiler version is known not to have."""
    known = any(compiler.holds(code) for compiler in COMPILERS.values())
    return not known or subject.compiler.holds(code)


def _place(subject: Subject, finding: Finding) -> tuple[int, int]:
    if finding.node not in subject.file.index:
        return (0, 0)
    position = subject.file.index.position(finding.node)
    return position.line, position.column
