"""What the end of a child says of a kernel, in words: the table of ``tl2npu.errors``, and the text of the tools.

``bisheng`` is a clang, whose messages have ``error:``; msSanitizer's user guide: a finding begins with
``====== ERROR:`` or ``====== WARNING:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tl2npu.backends.children import Ended, last_line
from tl2npu.codes import CODES
from tl2npu.errors.log import Found, explain

_DETAIL = re.compile(r"errorStr: ([^.\n]+)")
_COMPILER = re.compile(r"^.*\b(?:fatal )?error: .*$", re.M)
_FINDING = re.compile(r"^=+ (?:ERROR|WARN\w*): (.*?)\s*:?\s*$", re.M)
_HEX = re.compile(r"0x[0-9a-f]+")
_WORDS = 220


def of_runtime(text: str) -> str:
    """The error code of the runtime in an output, what the device said, and what that means; empty without a code."""
    found = explain(text).found
    code = next((one.entry for one in found if one.entry.key.isdigit()), None)
    if code is None:
        return ""
    detail = _DETAIL.search(text)
    said = f", {detail.group(1).strip()}" if detail else ""
    fault = next((one for one in found if one.entry.layer == "AI core"), None)
    return f"error {code.key} ({code.means}{said}){_because(fault)}"


def _because(fault: Found | None) -> str:
    """What the bits of an exception mean, or its text, and the rules about it."""
    if fault is None:
        return ""
    rules = ", ".join(f"{rule} {CODES[rule].name}" for rule in fault.entry.rules[:2])
    return f": {fault.entry.means}{f' ({rules})' if rules else ''}"


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
