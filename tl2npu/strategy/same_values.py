"""Whether the kernel that was built gives the values of the one that was read, before it is taken.

Both are evaluated on NumPy arrays (:mod:`tl2npu.evaluate`). What cannot be evaluated is said, and stands all the same.
"""

from __future__ import annotations

from tl2npu.evaluate.compare import Outcome, compared, sizes_text
from tl2npu.passes.job import Job
from tl2npu.results import KernelResult, SelfCheck
from tl2npu.strategy.attempt import subject_of

CODE = "TL970"
_READ = frozenset({"gpu"})
"""Styles whose statements run in text order; those of Expert mode wait for flags."""
_WRITTEN = frozenset({"developer", "developer-threads1"})


def self_checked(given: Job, job: Job, result: KernelResult) -> tuple[SelfCheck | None, str]:
    """What is to be said of a rewritten kernel, and why it must not be written, empty if nothing speaks against it."""
    if not given.options.self_check or result.disposition != "migrated":
        return None, ""
    if result.source not in _READ or result.target not in _WRITTEN:
        return None, ""
    outcome = compared(subject_of(given), subject_of(job))
    if outcome.equal is None:
        return SelfCheck(False, outcome.why), ""
    if outcome.equal:
        return SelfCheck(True, "", sizes_text(outcome)), ""
    return None, _different(outcome)


def _different(outcome: Outcome) -> str:
    at = sizes_text(outcome)
    return f"the new kernel would compute something else: {outcome.why}{f' ({at})' if at else ''}"
