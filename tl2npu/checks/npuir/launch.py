"""TL466: launches and control flow that the compiler does not take."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.model import Launch, Loop
from tl2npu.source.tree import nodes_of

_AXES = 2


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about the launch, and about loops without bounds and assertions in it."""
    launch = subject.kernel.launched
    if launch.is_npu:
        yield from _launch(launch)
    else:
        yield Finding("TL466", launch.call, "this is a GPU launch: `is_npu=True` is missing", "warning")
    for placed in subject.statements:
        if isinstance(placed.stmt, Loop) and placed.stmt.kind == "while":
            yield Finding(
                "TL466", placed.stmt.node, "AscendNPU IR does not compile `while`; write a loop with fixed bounds"
            )
    for node in nodes_of(launch.node.body, cst.Assert):
        yield Finding("TL466", node, "AscendNPU IR does not compile `assert` in a kernel")


def _launch(launch: Launch) -> Iterator[Finding]:
    if len(launch.grid) > _AXES:
        yield Finding("TL466", launch.call, f"the grid has {len(launch.grid)} axes; AscendNPU IR supports one or two")
    if launch.threads is not None:
        yield Finding("TL466", launch.call, "a launch of AscendNPU IR has no `threads`")
    if launch.names and len(launch.names) != len(launch.grid) + 1:
        names = ", ".join(launch.names)
        text = f"the launch returns {len(launch.grid) + 1} values, but `{names}` takes {len(launch.names)}"
        yield Finding("TL466", launch.call, text)
