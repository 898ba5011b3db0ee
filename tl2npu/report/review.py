"""What a reviewer asks of a kernel that was written anew: decisions, assumptions, costs, and what to test on a device.

The answers are messages of the run, which stand elsewhere by line, put together by the question that they answer. Why
a kernel has one vector core or two is its reason, which every format shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tl2npu.codes import SPEED
from tl2npu.report.model import Entry, counted
from tl2npu.results import Change, Diagnostic, KernelResult

_DECIDED = frozenset("TL128 TL139 TL197 TL234 TL612 TL615 TL617 TL620 TL623 TL624".split())
_ASSUMED = frozenset("""
    TL114 TL129 TL144 TL502 TL503 TL504 TL505 TL616 TL700 TL701 TL720 TL742 TL751 TL801 TL885 TL905
    """.split())
_COSTS = SPEED | frozenset("TL146 TL165 TL332 TL506 TL603 TL702 TL845 TL882".split())
_FEW_LINES = 6
_TESTS = (
    ("TL108 TL155", "rows of both halves of a tile: each vector core has one of them"),
    ("TL612", "a loop whose turns fill its stages, and one that leaves a remainder"),
    ("TL131 TL133 TL623", "one call many times: where cores overtake each other, results change from call to call"),
    ("TL128 TL620", "more tasks than the device has cores, and fewer"),
    ("TL168 TL178 TL626 TL885", "a length that no tile divides"),
    ("TL142 TL144 TL616", "the tolerance: some steps are more exact than on a GPU"),
    ("TL145 TL157 TL742", "infinities and NaN, if the data has any"),
    ("TL700 TL701 TL720 TL801", "the sizes and element types that callers outside of the file use"),
)
"""Codes, and what to run where one of them was told."""


def answers(entry: Entry, kernel: KernelResult) -> Iterator[tuple[str, str]]:
    """The questions, each with one answer after the other; nothing for a kernel that was not written anew."""
    if not kernel.rewritten:
        return
    told = [item.diagnostic for item in entry.findings_of(kernel) if item.diagnostic.severity != "error"]
    items: list[Change | Diagnostic] = [*entry.changes_of(kernel), *told]
    said = sorted((item.line, item.code, item.message) for item in items)
    codes = {code for _, code, _ in said}
    there = len({text for _, code, text in said if code == "TL131"})
    back = len({text for _, code, text in said if code == "TL133" and "vector cores" in text})
    if there or back:
        yield "decided", f"{counted(there, 'tile')} handed to the cube core, {counted(back, 'product')} handed back"
    for question, wanted in (("decided", _DECIDED), ("assumed", _ASSUMED), ("costs", _COSTS)):
        for text, lines in folded((line, text) for line, code, text in said if code in wanted):
            yield question, f"{numbered(lines)}: {text}"
    for line in dict.fromkeys(line for line, code, _ in said if code == "TL623"):
        yield "costs", f"line {line}: the cube core makes one more product, of zeros, and the vector cores wait for it"
    yield from _estimated(kernel)
    if kernel.checked is not None:
        same = "old and new give the same values on random inputs"
        yield "checked", same if kernel.checked.equal else f"old and new were not compared: {kernel.checked.why}"
    for those, text in _TESTS:
        if codes & set(those.split()):
            yield "test", text
    if kernel.verified is None:
        yield "test", "values: `tl2npu verify` runs the old and the new kernel on the simulator, or on an NPU"


def _estimated(kernel: KernelResult) -> Iterator[tuple[str, str]]:
    """What the cost model says of a kernel in Developer mode, or that it says nothing."""
    if kernel.target == "developer-threads1":
        yield "costs", "threads=1: one of the two vector cores of a block is idle"
    if kernel.pipes:
        whole = sum(cycles for _, cycles in kernel.pipes)
        shown = ", ".join(f"{name} {cycles / whole:.0%}" for name, cycles in kernel.pipes if cycles * 20 > whole)
        work = f"{whole:,.0f} cycles of work for a block at the first call of the file"
        yield "costs", f"{work}, the sum of its pipes by the cost model: {shown}"
    elif kernel.target.startswith("developer"):
        why = "some sizes, or the rates of the device, are not known"
        yield "costs", f"not estimated: {why}; `tl2npu cost --args` takes a call"


def folded(said: Iterable[tuple[int, str]]) -> Iterator[tuple[str, list[int]]]:
    """Messages with their lines; those that say the same of several names (`` `a`: ... ``) as one with all of them."""
    names: dict[str, dict[str, None]] = {}
    lines: dict[str, dict[int, None]] = {}
    for line, text in said:
        name, _, rest = text.partition(": ")
        alone = re.fullmatch(r"(?:TL\d+ )?`\w+`", name) is not None and bool(rest)
        code = name.rpartition(" ")[0]
        key = f"{code}: {rest}" if alone else text
        names.setdefault(key, {}).update({name.rpartition(" ")[2]: None} if alone else {})
        lines.setdefault(key, {})[line] = None
    for key, own in names.items():
        code, _, rest = key.partition(": ") if own else ("", "", "")
        yield (f"{code} {', '.join(own)}: {rest}".strip() if own else key), [*lines[key]]


def numbered(lines: Sequence[int]) -> str:
    """``line 3``, ``lines 3, 5 and 12 more``."""
    more = f" and {len(lines) - _FEW_LINES} more" if len(lines) > _FEW_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:_FEW_LINES]))}{more}"
