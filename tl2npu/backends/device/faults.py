"""What the end of a child says of a kernel, in words.

Sources: the codes of the runtime, torch_npu's ``NPUErrorCodes.h`` (Ascend/pytorch 05900fb6); ``bisheng`` is a clang,
whose messages have ``error:``; msSanitizer's user guide: a finding begins with ``====== ERROR:``
or ``====== WARNING:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tl2npu.backends.children import Ended, last_line

RUNTIME = {
    "107001": "invalid device ID",
    "107019": "task execution timed out",
    "207001": "out of memory on the device",
    "207018": "the memory on the device is exhausted",
    "507001": "internal error of the task scheduler on the device",
    "507014": "AI Core execution timed out",
    "507015": "AI Core exception",
    "507016": "AI Core trap",
    "507033": "the device failed to start",
    "507034": "vector core execution timed out",
    "507035": "vector core exception",
    "507036": "vector core trap",
    "507042": "AI Core trap: read out of bounds",
    "507043": "AI Core trap: write out of bounds",
    "507044": "vector core trap: read out of bounds",
    "507045": "vector core trap: write out of bounds",
    "507046": "tasks of the stream were not complete in time",
    "507899": "internal error of the driver",
    "507901": "the connection between host and device was lost",
}
"""Codes that kernels and machines bring about, with their meaning."""

_CODE = re.compile(r"(?<!\d)(?:107|207|507)\d{3}(?!\d)")
_DETAIL = re.compile(r"errorStr: ([^.\n]+)")
_COMPILER = re.compile(r"^.*\b(?:fatal )?error: .*$", re.M)
_FINDING = re.compile(r"^=+ (?:ERROR|WARN\w*): (.*?)\s*:?\s*$", re.M)
_HEX = re.compile(r"0x[0-9a-f]+")
_WORDS = 220


def of_runtime(text: str) -> str:
    """The error code of the runtime in an output, with its meaning and what the device said; empty without one."""
    codes = [code for code in _CODE.findall(text) if code in RUNTIME]
    if not codes:
        return ""
    detail = _DETAIL.search(text)
    said = f", {detail.group(1).strip()}" if detail else ""
    return f"error {codes[0]} ({RUNTIME[codes[0]]}{said})"


def of_death(ended: Ended) -> str:
    """How a process ended that did not come to its end."""
    parts = [part for part in (ended.died or "it was killed", of_runtime(ended.output)) if part]
    if len(parts) == 1 and (line := last_line(ended.output)):
        parts.append(line[:_WORDS])
    return "; ".join(parts)


def of_exception(message: str, output: str) -> str:
    """An exception of the child: the code of the runtime behind it, else its own text."""
    return of_runtime(message) or of_runtime(output) or message[:_WORDS]


def of_compiler(message: str, output: str) -> str:
    """What the compiler says: the first error of bisheng, else the exception of TileLang."""
    found = _COMPILER.search(output)
    if found is not None and "Error: " not in found.group().split("error: ")[0]:
        return found.group().strip()[:_WORDS]
    return message[:_WORDS]


def of_sanitizer(report: str) -> Iterator[tuple[str, int]]:
    """The findings of a report without addresses, each once, with how often it was made."""
    found: dict[str, int] = {}
    for match in _FINDING.finditer(report):
        text = _HEX.sub("an address", match.group(1))[:_WORDS]
        found[text] = found.get(text, 0) + 1
    yield from found.items()
