"""All checks of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tl2npu.checks.subject import Finding, Subject

Check = Callable[[Subject], Iterator[Finding]]

CHECKS: tuple[Check, ...] = ()


def check_kernel(subject: Subject) -> list[Finding]:
    """What is wrong with a Developer-mode kernel, in text order, each finding once.

    A kernel in Expert mode is judged by the self-check list only: the other checks assume that the automatic passes
    run. A prim_func without a launch has no findings.
    """
    if subject.kernel.launch is None:
        return []
    return []
