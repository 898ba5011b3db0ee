"""TL817: a launch has at most 65,535 blocks; the compiler says nothing, and the launch fails."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.devices import MOST_BLOCKS
from tl2npu.kernel.factories.blocks import asked_for


def check(subject: Subject) -> Iterator[Finding]:
    """A finding for a launch that some known call of the factory asks too many blocks of.

    A warning where only some configurations of a tuner do.
    """
    launch = subject.kernel.launched
    callers = subject.shown_callers
    counts = [count or 0 for count in asked_for(launch, (caller.values for caller in callers))]
    if max(counts) <= MOST_BLOCKS:
        return
    fitting = {id(caller.node) for caller, count in zip(callers, counts, strict=True) if count <= MOST_BLOCKS}
    chosen = any(
        count > MOST_BLOCKS and id(caller.node) not in fitting and isinstance(caller.node, (cst.Call, cst.FunctionDef))
        for caller, count in zip(callers, counts, strict=True)
    )
    text = f"{max(counts):,} blocks: a launch of more than {MOST_BLOCKS:,} fails with error 107000"
    yield Finding("TL817", launch.call.args[0].value, text, None if chosen or not fitting else "warning")
