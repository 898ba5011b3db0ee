"""What ``tl2npu verify`` says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from tl2npu.report.closing import verified_text
from tl2npu.report.json import diagnostic_object, verified
from tl2npu.report.model import counted, place
from tl2npu.results import Diagnostic
from tl2npu.verified import Comparison, KernelVerdict, Metrics, ScriptCheck, VerifyResult

VERSION = 1

_COLOURS = {
    **dict.fromkeys(("verified",), "green"),
    **dict.fromkeys(("failed", "error"), "red"),
    **dict.fromkeys(("not verified", "not migrated", "warning"), "yellow"),
}


_UNTRIED = ("not migrated", "unchanged")
"""Of these kernels nothing is to be proved."""


def text(result: VerifyResult, color: bool = False, width: int | None = None) -> str:
    """Kernels with their findings, scripts, notes, and a last line with the verdict.

    ``width``: that of a terminal, in which words stay whole; None where lines are as long as they are.
    """

    def styled(word: str, kind: str) -> str:
        return click.style(word, fg=_COLOURS.get(kind), bold=kind in ("failed", "error")) if color else word

    if result.error is not None:
        return f"{styled('error', 'error')}: {result.error}\n"
    lines: list[str] = []
    for kernel in result.kernels:
        own = [d for d in result.diagnostics if d.kernel == kernel.name]
        lines.append(f"{place(result.old, kernel)} {kernel.name}: {_status(kernel, bool(own), styled)}")
        lines += _findings(result, own, styled)
    named = {kernel.name for kernel in result.kernels}
    lines += _findings(result, [d for d in result.diagnostics if d.kernel not in named], styled)
    lines += [_script(check) for check in result.scripts if not check.exit_code]  # of the others there is a finding
    if result.standard != "tl2npu" or result.reference:
        lines += [_figures(launch, row) for launch in result.comparisons for row in launch.metrics]
    lines += [f"  note: {note}" for note in result.notes]
    lines.append(_summary(result, styled))
    return "".join(f"{row}\n" for line in lines for row in _rows(line, width))


def _rows(line: str, width: int | None) -> list[str]:
    """A line, colours included, in rows that fit; the further ones are indented."""
    margin = " " * (len(line) - len(line.lstrip(" ")) + 2)
    rows: list[str] = []
    for word in line.split(" "):
        longer = f"{rows[-1]} {word}" if rows else word
        if rows and rows[-1].strip() and width is not None and len(click.unstyle(longer)) > width:
            rows.append(margin + word)
        else:
            rows[-1:] = [longer]
    return rows


def _status(kernel: KernelVerdict, explained: bool, styled: Any) -> str:
    if kernel.verified is not None:
        return str(styled(verified_text(kernel.verified), "verified"))
    return str(styled(kernel.status, kernel.status)) + ("" if explained else f" ({kernel.reason})")


def _findings(result: VerifyResult, found: Sequence[Diagnostic], styled: Any) -> list[str]:
    """Findings one below the other; a help that several in a row have stands below the first."""
    lines: list[str] = []
    above = ""
    for item in found:
        kind = f"{styled(item.severity, item.severity)} {styled(item.code, item.severity)}"
        lines.append(f"  {place(result.old, item)}:{item.column} {kind} {item.name}: {item.message}")
        lines += [f"    help: {item.help}"] if item.help not in ("", above) else []
        above = item.help
    return lines


def _figures(launch: Comparison, row: Metrics) -> str:
    shape = ", ".join(map(str, row.shape))
    return (
        f"  {launch.kernel} {row.tensor}[{shape}] {row.dtype}: max abs {row.max_abs:.3g}, MERE {row.mere:.3g}, "
        f"MARE {row.mare:.3g} at {list(row.worst)}, cosine {row.cosine:.6f}, {row.matched:.2%} match"
    )


def _metrics(row: Metrics) -> dict[str, Any]:
    names = ("tensor", "dtype", "max_abs", "mare", "mere", "rmse", "cosine", "matched", "unmet")
    return {**{name: getattr(row, name) for name in names}, "shape": list(row.shape), "worst": list(row.worst)}


def _script(check: ScriptCheck) -> str:
    if check.exit_code is None:
        return f"  the {check.role} script did not finish"
    said = [line.strip() for line in check.output.splitlines() if line.strip()]
    last = f": {said[-1]}" if said else ""
    return f"  the {check.role} script ended with exit code {check.exit_code}{last}"


def _summary(result: VerifyResult, styled: Any) -> str:
    proved = [k.verified for k in result.kernels if k.verified is not None]
    word = _verdict(result)
    verdict = styled(word, "verified" if result.ok else "failed")
    what = f"the migration of {result.old}" if result.new is None else f"{result.new} against {result.old}"
    if result.reference:
        what = f"{result.new or 'the migration of ' + result.old} against {result.reference}"
    by = "" if result.standard == "tl2npu" else f" by {result.standard}"
    where = {"sim": "the simulator"}.get(result.backend, result.backend)
    arithmetic = "" if result.arithmetic == "precise" else f" with {result.arithmetic} arithmetic"
    left = [kernel.status for kernel in result.kernels if kernel.status in _UNTRIED]
    tried = len(result.kernels) - len(left)
    counts = f"{len(proved)} of {counted(tried, 'migrated kernel' if left else 'kernel')}"
    others = [f"{left.count(status)} {status}" for status in _UNTRIED if status in left]
    refused = "".join(f", {text}" for text in others)
    figures = _differences(result.comparisons)
    if result.backend == "compile":
        where, word = "the compiler", {"verified": "accepted", "not verified": "not accepted"}.get(word, word)
        verdict = styled(word, "verified" if result.ok else "failed")
        programs = sum(proof.calls for proof in proved)
        what = "the migration of " if result.new is None else ""
        file = result.old if result.new is None else result.new
        where += f", called as in {result.reference}" if result.reference else ""
        compiled = f"{counts} accepted{refused}, {counted(programs, 'program')} compiled"
        return f"{verdict}: {what}{file} by {where}; {compiled}"
    agree = "agrees" if tried == 1 else "agree"
    told = ", ".join([*([f"{counts} {agree}"] if tried or not left else []), *others])
    return f"{verdict}: {what} on {where}{arithmetic}{by}; {told}, {figures}{_in_spite(result)}"


def _differences(comparisons: Sequence[Comparison]) -> str:
    """How many launches were compared on their own inputs, and the largest difference of all.

    That is 0 too where numbers differ from NaN, or the compiler's reading from the author's: then it is left out.
    """
    calls = sum(not launch.draw and launch.max_error is not None for launch in comparisons)
    figures = f"{counted(calls, 'launch')} compared"
    largest = max((launch.max_error for launch in comparisons if launch.max_error is not None), default=None)
    if largest or (largest is not None and not any(launch.problems for launch in comparisons)):
        figures += f", largest difference {largest:.3g}"
    return figures


def _in_spite(result: VerifyResult) -> str:
    """What speaks against the file where its kernels do not."""
    against = [
        f"the {check.role} script {'failed' if check.exit_code else 'did not finish'}"
        for check in result.scripts
        if check.exit_code != 0
    ]
    tried = [kernel.status for kernel in result.kernels if kernel.status not in _UNTRIED]
    if not against and not result.ok and tried and set(tried) == {"verified"}:
        against = [f"see {item.code}" for item in result.diagnostics[:1]]
    return "".join(f"; {text}" for text in against)


def _verdict(result: VerifyResult) -> str:
    """What is wrong is told from what could not be compared."""
    failed = any(kernel.status == "failed" for kernel in result.kernels)
    failed = failed or any(check.role == "new" and check.exit_code not in (0, None) for check in result.scripts)
    if result.ok and all(kernel.status in _UNTRIED for kernel in result.kernels):
        return "unchanged"
    return "verified" if result.ok else "failed" if failed else "not verified"


def as_json(result: VerifyResult) -> str:
    """One JSON object with a final newline; documented in docs/json.md."""
    report: dict[str, Any] = {
        "version": VERSION,
        "old": result.old,
        "new": result.new,
        "ok": result.ok,
        "error": result.error,
        "backend": result.backend,
        "arithmetic": result.arithmetic,
        "reference": result.reference or None,
        "standard": result.standard,
        "kernels": [
            {
                "name": kernel.name,
                "cell": kernel.cell,
                "line": kernel.line,
                "status": kernel.status,
                "reason": kernel.reason,
                "verified": verified(kernel.verified),
            }
            for kernel in result.kernels
        ],
        "launches": [_launch(comparison) for comparison in result.comparisons],
        "scripts": [
            {"role": check.role, "exit_code": check.exit_code, "output": check.output} for check in result.scripts
        ],
        "diagnostics": [diagnostic_object(item) for item in result.diagnostics],
        "notes": list(result.notes),
    }
    return json.dumps(report, indent=2) + "\n"


def _launch(comparison: Comparison) -> dict[str, Any]:
    return {
        "kernel": comparison.kernel,
        "call": comparison.call,
        "outputs": list(comparison.outputs),
        "max_error": comparison.max_error,
        "dropped": list(comparison.dropped),
        "relaid": list(comparison.relaid),
        "unrounded": list(comparison.unrounded),
        "tensors": [_metrics(row) for row in comparison.metrics],
        "problems": [{"code": code, "message": message} for code, message in comparison.problems],
    }
