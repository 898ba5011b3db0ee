"""Two reports of one repository, an earlier and a later one: what became of its kernels; and a badge of one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tl2npu.report.escape import visible
from tl2npu.report.model import Report
from tl2npu.results import VERDICTS, KernelResult

_GREEN, _YELLOW, _GREY = "#3c873a", "#b58900", "#555555"
_WIDTH = 6.6  # pixels of a character of the badge


def compared(old: Report, new: Report) -> tuple[str, bool]:
    """The counts of each outcome, then every kernel whose outcome is another one; and whether some kernel got worse."""
    before, now = dict(_kernels(old)), dict(_kernels(new))
    lines = [f"{'outcome':22} {'before':>7} {'now':>7}"]
    for name in VERDICTS:
        counts = [sum(kernel.verdict == name for kernel in kernels.values()) for kernels in (before, now)]
        lines += [f"{name:22} {counts[0]:7,} {counts[1]:7,}"] if any(counts) else []
    lines.append(f"{'ready for an NPU':22} {_ready(old):7,} {_ready(new):7,}")
    worse = False
    for key in sorted(before.keys() | now.keys()):
        one, other = before.get(key), now.get(key)
        left, right = ("no such kernel" if kernel is None else kernel.verdict for kernel in (one, other))
        if left != right:
            lines.append(f"{visible(key[0])} {visible(key[1])}: {left} -> {right}")
            worse = worse or (one is not None and other is not None and _is_ready(one) and not _is_ready(other))
    return "\n".join(lines) + "\n", worse


def badge(report: Report, svg: bool) -> str:
    """How many kernels are ready for an NPU, as a picture, or as JSON for services that draw badges."""
    ready, total = _ready(report), sum(1 for _ in report.kernels())
    label, message = "Ascend kernels", f"{ready:,} of {total:,}"
    color = _GREY if not total else _GREEN if ready == total else _YELLOW
    if not svg:
        return json.dumps({"schemaVersion": 1, "label": label, "message": message, "color": color}) + "\n"
    left, right = (round(len(text) * _WIDTH) + 14 for text in (label, message))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">'
        f"<title>{label}: {message}</title>"
        f'<rect width="{left}" height="20" fill="{_GREY}"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{color}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14">{label}</text><text x="{left + right / 2:g}" y="14">{message}</text>'
        "</g></svg>\n"
    )


def _kernels(report: Report) -> Iterator[tuple[tuple[str, str, int], KernelResult]]:
    """By path, name and number among those of one name."""
    seen: dict[tuple[str, str], int] = {}
    for entry, kernel in report.kernels():
        key = entry.path, kernel.name
        seen[key] = seen.get(key, 0) + 1
        yield (*key, seen[key]), kernel


def _is_ready(kernel: KernelResult) -> bool:
    return kernel.for_npu and not kernel.errors


def _ready(report: Report) -> int:
    return sum(_is_ready(kernel) for _, kernel in report.kernels())
