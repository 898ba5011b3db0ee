"""What an option that was not given might still do for the kernels of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tl2npu.report.model import Finding, Report
from tl2npu.results import Diagnostic

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
