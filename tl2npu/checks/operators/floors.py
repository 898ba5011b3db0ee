"""TL761: ``//`` and ``%`` of what may be negative round towards zero on the NPU."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.ranges.floors import Division, doubtful


def check(subject: Subject) -> Iterator[Finding]:
    """An error where a block, an iteration or an element of a tile is known to be negative, else a warning."""
    sampler = Sampler(subject)
    placed = {id(one.stmt): one for one in subject.statements}
    for one in doubtful(subject.kernel, subject.located.evaluator, subject.late):
        shown = f"`{code(one.node)}`"
        where = [sampler.find(placed[id(one.stmt)], one.goal, known, (), one.guards) for known in subject.values]
        wrong = next((text for text in where if text is not None), None)
        if wrong is not None:
            yield Finding(
                "TL761", one.node, f"{shown} has a negative dividend{wrong}: the NPU rounds towards zero, Python down"
            )
        else:
            text = f"where {_what(one)} is negative, {shown} rounds towards zero on the NPU, but down in Python"
            yield Finding("TL761", one.node, text, "warning")


def _what(one: Division) -> str:
    return f"`{code(one.left)}`" if one.positive else f"`{code(one.left)}` or `{code(one.right)}`"
