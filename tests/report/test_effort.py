from __future__ import annotations

import pytest

from tests.report.support import RUN
from tl2npu.report.build import build
from tl2npu.report.effort import Effort, duration, effort
from tl2npu.results import Change, Diagnostic, Disposition, FileResult, KernelResult, Severity, Verified


@pytest.mark.parametrize(
    ("disposition", "target", "lines", "verified", "found", "minutes"),
    [
        ("unchanged", "none", 0, False, (), 0),
        ("migrated", "developer", 0, True, (), 1),
        ("migrated", "developer", 21, True, (), 3),
        ("migrated", "developer", 21, False, (), 8),
        ("migrated", "developer", 1, True, ("warning", "warning", "info"), 6),
        ("partial", "fallback", 1, True, (), 31),
        ("refused", "none", 0, False, (), 30),
        ("refused", "none", 0, False, ("error", "error", "warning"), 35),
    ],
)
def test_the_sum(
    disposition: Disposition,
    target: str,
    lines: int,
    verified: bool,
    found: tuple[Severity, ...],
    minutes: int,
) -> None:
    """Findings of one severity share a code here, and each code counts once; those of other kernels do not count."""
    proof = Verified("sim", 1, 0.0) if verified else None
    kernel = KernelResult("f", 1, "gpu", target, disposition, "", (), proof)
    other = KernelResult("g", 9, "gpu", "none", "refused", "")
    items = [Diagnostic(f"TL80{len(severity)}", "x", severity, 2, "x", kernel="f") for severity in found]
    items.append(Diagnostic("TL999", "x", "error", 2, "x", kernel="g"))
    changes = [Change("TL201", line % 21 + 2, "x", "f") for line in range(lines * 2 if lines == 21 else lines)]
    file = FileResult("k.py", "", "", None, (kernel, other), tuple(items), (*changes, Change("TL201", 99, "x", "g")))
    assert effort(build(RUN, [file]).entries[0], kernel).minutes == minutes


def test_what_the_npu_does_not_have_is_a_redesign() -> None:
    kernel = KernelResult("f", 1, "gpu", "none", "refused", "")
    items = [Diagnostic(code, "x", "error", 2, "x", kernel="f") for code in ("TL191", "TL180", "TL801")]
    file = FileResult("k.py", "", "", None, (kernel,), tuple(items))
    assert effort(build(RUN, [file]).entries[0], kernel).minutes == 480 + 3 * 30


def test_levels_and_durations() -> None:
    assert [Effort(m).level for m in (0, 1, 15, 16, 60, 61)] == ["none", "low", "low", "medium", "medium", "high"]
    assert [duration(m) for m in (0, 1, 15, 16, 60, 61, 240, 241, 720, 721, 2400, 2401, 14400, 14401)] == [
        *("none", "minutes", "minutes", "an hour", "an hour", "a few hours", "a few hours", "a day", "a day"),
        *("days", "days", "weeks", "weeks", "months"),
    ]
