"""What a report ends with: counts, what was checked, what an option might still do, and the last line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tl2npu.codes import CODES, SPEED
from tl2npu.report.escape import visible
from tl2npu.report.model import Finding, Report, changed_text, counted
from tl2npu.results import VERDICTS, Diagnostic, Verified

TOP = 10
MANY = 20
"""From so many kernels on a report ends with its digest."""
MOST_WHYS = 3
"""So many reasons why kernels were not evaluated are shown."""


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


def speed(report: Report) -> list[str]:
    """One line on what makes kernels slow, which all other formats and ``--explain`` say one by one."""
    found = Counter(item.diagnostic.code for _, item in report.findings() if item.diagnostic.code in SPEED)
    if not found:
        return []
    codes = ", ".join(f"{code} {number}" for code, number in sorted(found.items()))
    return [f"{counted(sum(found.values()), 'note')} on speed ({codes}): --explain lists them, `tl2npu cost` has times"]


def checked(report: Report) -> list[str]:
    """One line on the kernels that were evaluated before they were written; none where nothing can be evaluated."""
    found = [(kernel.name, kernel.checked) for _, kernel in report.kernels() if kernel.checked is not None]
    if not found:
        return []
    equal = sum(one.equal for _, one in found)
    kernels = f"{equal:,} of {counted(len(found), 'kernel')}"
    whys = Counter(one.why for _, one in found if not one.equal)
    first = {one.why: name for name, one in reversed(found) if not one.equal}

    def which(why: str, number: int) -> str:
        """Which kernels, where there are others: the first, and how many more."""
        more = f" and {number - 1:,} more" if number > 1 else ""
        return f" ({visible(first[why])}{more})" if len(found) > number else ""

    left = "".join(
        f"; {number:,} not checked{which(why, number)}: {visible(why)}" for why, number in whys.most_common(MOST_WHYS)
    )
    more = f"; {len(whys) - MOST_WHYS} other reasons" if len(whys) > MOST_WHYS else ""
    triton = sum(k.source == "triton" and k.rewritten and k.checked is None for _, k in report.kernels())
    more += f"; {counted(triton, 'Triton kernel')} not checked: `tl2npu verify` compares them" if triton else ""
    return [f"checked: {kernels} {'gives' if equal == 1 else 'give'} the same values on random inputs{left}{more}"]


def summary(report: Report) -> str:
    """The last line: what was changed, found, left out."""
    parts: list[str] = []
    number = sum(report.verdicts.values())
    kernels = counted(number, "kernel") if number else "no kernels"
    lost = [
        kernel for entry in report.entries if entry.error is not None for kernel in entry.kernels if kernel.rewritten
    ]
    if report.run.task == "check":
        severities = report.severities
        parts.append(f"{counted(severities['error'], 'error')}, {counted(severities['warning'], 'warning')}")
        parts.append(f"{kernels} in {counted(len(report.entries), 'file')}")
    else:
        found = report.verdicts - Counter(kernel.verdict for kernel in lost)
        verdicts = ", ".join(f"{found[name]:,} {name}" for name in VERDICTS if found[name])
        parts += [changed_text(report), kernels + (f": {verdicts}" if verdicts else "")]
    if report.failed:
        parts.append(
            f"{counted(report.failed, 'file')} failed"
            + (f", {counted(len(lost), 'kernel')} not written" if lost else "")
        )
    if report.skipped:
        parts.append(f"{len(report.skipped):,} skipped")
    return "; ".join(parts)


def verified_text(proof: Verified) -> str:
    """Who proved it, on what, how exactly: ``verified on the simulator: 2 launches, largest difference 0``."""
    where = {"sim": "the simulator"}.get(proof.backend, proof.backend)
    if proof.max_error is None:
        return f"accepted by the compiler: {counted(proof.calls, 'program')}"
    return f"verified on {where}: {counted(proof.calls, 'launch')}, largest difference {proof.max_error:.3g}"


# What an option that was not given might still do for the kernels of a run.

FP8, UNSAFE, TUNED = "--fp8 float16", "--unsafe", "--tuned NAME=VALUE"


def possible(report: Report) -> list[str]:
    """One line with the kernels that nothing stops but what an option is for; none for a check.

    It says "up to": what else is wrong with a kernel often shows only behind the first error.
    """
    if report.run.task == "check":
        return []
    found = Counter[str]()
    for entry, kernel in report.kernels():
        if kernel.unfinished or kernel.errors:
            found[_only(entry.findings_of(kernel))] += 1
    told = [f"{found[option]:,} with `{option}`" for option in (FP8, UNSAFE, TUNED) if found[option]]
    return [f"more kernels may migrate: up to {', up to '.join(told)}"] if told else []


def _only(findings: Sequence[Finding]) -> str:
    """The one option that every error of a kernel asks for; empty if there is none."""
    options = {_option(item.diagnostic) for item in findings if item.diagnostic.severity == "error"}
    return options.pop() if len(options) == 1 else ""


def _option(item: Diagnostic) -> str:
    if item.code == "TL191":  # fp4 and others have no stand-in
        types = re.findall(r"\b(?:float|int|uint)\d+_?\w*|\bfp\d+\w*", item.message)
        return FP8 if any(map(_is_fp8, types)) and all(map(_is_fp8, types)) else ""
    if f"`tl2npu migrate {UNSAFE}`" in item.help:
        return UNSAFE
    return TUNED if item.code == "TL514" else ""


def _is_fp8(name: str) -> bool:
    return name.startswith(("float8", "fp8"))
