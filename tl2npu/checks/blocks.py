"""TL817: a launch has at most 65,535 blocks; the compiler says nothing, and the launch fails."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import Finding, Subject
from tl2npu.devices import MOST_BLOCKS
from tl2npu.kernel.factories.blocks import asked_for


def check(subject: Subject) -> Iterator[Finding]:
    """A finding for a launch that some known call of the factory asks too many blocks of."""
    launch = subject.kernel.launched
    most = max((count for count in asked_for(launch, subject.shown) if count is not None), default=0)
    if most > MOST_BLOCKS:
        text = f"{most:,} blocks: a launch of more than {MOST_BLOCKS:,} fails with error 107000"
        yield Finding("TL817", launch.call.args[0].value, text)
