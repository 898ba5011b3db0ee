"""Repeat a rewriting step until it finds nothing more to do; the one driver of all passes that go in rounds.

A pass that stops after a fixed number of rounds leaves the rest of its work undone without a word. Here a pass ends
when its step has nothing left to do, or the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.job import Job
from tl2npu.source.tree import walk

_PER_NODE = 4
"""Rounds for each node: a statement has ten nodes or more, and can be moved out of the twenty blocks of Python."""


def until_settled(job: Job, step: Callable[[], bool], progress: Callable[[], object] | None = None) -> None:
    """Call ``step`` until it says that there was nothing to do.

    Every round must change ``progress``, by default the tree. A step rewrites one construct, so the rounds are bounded
    by the size of the tree. Raises :class:`Blocked` (TL902) for a step that changes nothing or does not end.
    """
    measure = progress or (lambda: job.module)
    start, rounds, most = job.module, 0, _PER_NODE
    while True:
        before = measure()
        if not step():
            return
        rounds += 1
        if rounds > most == _PER_NODE:  # nearly no step needs as many: only then are the nodes counted
            most *= sum(1 for _ in walk(start))
        if measure() == before or rounds > most:
            text = f"internal error: this rewriting does not end ({rounds} rounds); report it with the kernel"
            raise Blocked("TL902", job.located.node, text)
