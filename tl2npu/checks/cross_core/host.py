"""TL740, TL880 to TL882, TL884: what the runtime around a kernel with on-chip hand-overs cannot do.

The workspaces that the compiler adds are parameters behind the user's, one tile for every block. Evidence: facts 2
(g6_neg), 6 and 7, E87 and E88.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.cross_core.channels import OnChip, on_chip
from tl2npu.checks.subject import MOST_VALUES, Finding, Subject
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import LIMIT
from tl2npu.kernel.factories.positions import compilations, indices
from tl2npu.kernel.factories.tunings import tuning_of
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import const

HUGE_BYTES = 2 << 30
"""Workspaces of more than 2 GiB for one launch are worth a warning."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings of a kernel with on-chip hand-overs, the note for target pto, and calls that are too many."""
    ways, factory = len(subject.every_value), subject.located.factory
    if ways > MOST_VALUES and factory is not None:
        count = f"more than {LIMIT}" if len(subject.callers) == LIMIT else f"{ways}"
        text = f"`{factory.node.name.value}` is called or tuned in {count} ways: sizes are checked for some of them"
        yield Finding("TL740", factory.node.name, text)
    if factory is not None and (unread := tuning_of(subject.file, factory.node).unread) is not None:
        text = f"the configurations of `{factory.node.name.value}` are not written out; those not read are not checked"
        yield Finding("TL740", unread, text)
    found = on_chip(subject)
    if found:
        yield from _check_outputs(subject)
        yield from _check_grid(subject, found)
    launch = subject.kernel.launch
    if subject.target == "pto" and launch is not None and launch.threads is not None:
        yield Finding("TL884", launch.call, "target pto has not been measured on hardware with `threads=`")


def _check_outputs(subject: Subject) -> Iterator[Finding]:
    for compilation in compilations(subject.located):
        try:
            found = indices(subject.file, subject.located, compilation, "out_idx")
        except Blocked:
            continue
        if found is not None and any(value < 0 for value in found.given):
            text = f"`out_idx={code(found.arg)}` counts from the end, where the compiler adds its workspaces"
            yield Finding("TL880", found.arg, text)


def _check_grid(subject: Subject, found: list[OnChip]) -> Iterator[Finding]:
    launch = subject.kernel.launched
    for size in launch.grid:
        if subject.is_runtime(size):
            text = "the number of blocks, and so the size of the workspaces, is known at run time only"
            yield Finding("TL881", launch.call, text)
            return
    total = const(0)
    for item in found:
        tile = const(ITEM_SIZE.get(item.dst.dtype, 0))
        for size in item.dst.shape:
            tile = tile * size
        total = total + tile
    for size in launch.grid[:1]:
        for need in subject.numbers(total * size):
            if need is not None and need > HUGE_BYTES:
                text = f"the automatic workspaces need {need / (1 << 30):.1f} GiB: one tile of each for every block"
                yield Finding("TL882", launch.call, text)
                return
