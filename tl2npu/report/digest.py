"""The end of a long report: outcomes, vector cores and the commonest codes, each on one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tl2npu.codes import CODES
from tl2npu.report.escape import visible
from tl2npu.report.model import Report, counted
from tl2npu.results import VERDICTS

TOP = 10
MANY = 20
"""From so many kernels on a report ends with its digest."""


def digest(report: Report) -> Iterator[str]:
    """How many kernels came to what, and the ten codes with the most findings; ends with an empty line."""
    kernels = [kernel for _, kernel in report.kernels()]
    if report.run.task != "check":
        for verdict in VERDICTS:
            own = [kernel for kernel in kernels if kernel.verdict == verdict]
            if own:
                forms = Counter(_cores(kernel.target, kernel.reason) for kernel in own if kernel.rewritten)
                shown = ", ".join(f"{count:,} {form}" for form, count in forms.most_common())
                yield f"{len(own):6,} {verdict}{f' ({shown})' if shown else ''}"
    found = Counter((item.diagnostic.code, item.diagnostic.severity) for _, item in report.findings())
    for (code, severity), count in found.most_common(TOP):
        rule = CODES.get(code)
        help_ = f": {rule.remedy}" if rule is not None and severity != "info" else ""
        yield f"{count:6,} {severity} {visible(code)} {rule.name if rule is not None else ''}{help_}"
    if len(found) > TOP:
        yield f"       and {counted(len(found) - TOP, 'more code')}"


def _cores(target: str, reason: str) -> str:
    """How a kernel that was written uses the vector cores."""
    if target == "developer-threads1":
        return "threads=1"
    if target != "developer":
        return target
    return "without vector cores" if reason.startswith("cube only") else "threads=2"
