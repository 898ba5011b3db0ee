"""TL875 to TL878: ``T.Pipelined`` loops that hand tiles over between the cores.

Evidence: facts 2 (g7_pipe*, g9_*_p*, g9_rem32) and E23, measured with the compiler at 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.cross_core.channels import channels
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.model import Buffer, Copy, Loop, Memory, Side, Stmt, children, walk
from tl2npu.kernel.symbolic import const


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every pipelined loop with a hand-over in it."""
    found: list[Loop] = []
    for channel in channels(subject):
        for loop in channel.writer.loops:
            if loop.kind == "pipelined" and loop not in found and _is_staged(loop):
                found.append(loop)
    for loop in found:
        yield from _check_extent(subject, loop)
        yield from _check_state(loop)
    for loop in found[1:]:
        if not any(loop in list(walk(outer.body)) or outer in list(walk(loop.body)) for outer in found[:1]):
            yield Finding("TL878", loop.node, "a kernel may have only one pipelined loop with cross-core transfers")


def _is_staged(loop: Loop) -> bool:
    return loop.num_stages is not None and loop.num_stages not in (const(0), const(1))


def _check_extent(subject: Subject, loop: Loop) -> Iterator[Finding]:
    item, stages = loop.ranges[0], loop.num_stages
    assert stages is not None
    if not item.start.is_zero:
        yield Finding("TL875", loop.node, f"the pipelined loop over `{item.name}` does not start at 0")
        return
    if subject.is_runtime(item.extent):
        text = f"the trip count of the pipelined loop over `{item.name}` is known at run time only"
        yield Finding("TL876", loop.node, text)
        return
    for count, depth in subject.together(item.extent, stages):
        if count is not None and depth is not None and depth > 0 and count % depth:
            text = f"{count} iterations in {depth} stages: the last {count % depth} would not run"
            yield Finding("TL875", loop.node, text)
            return


def _check_state(loop: Loop) -> Iterator[Finding]:
    """TL877: a buffer that carries a value from step to step is copied per stage if two vector stages start from it."""
    stages = _vector_stages(loop.body)
    carried: dict[Buffer, int] = {}
    written: set[Buffer] = set()
    for stage in stages:
        fresh: set[Buffer] = set()
        exposed: set[Buffer] = set()
        for stmt in stage:
            found = [access for access in accesses(stmt) if access.operand.buffer.memory is Memory.UB]
            exposed |= {a.operand.buffer for a in found if a.reads} - fresh
            written |= {a.operand.buffer for a in found if a.writes}
            fresh |= {a.operand.buffer for a in found if a.writes and a.operand.is_whole}
        for buffer in exposed:
            carried[buffer] = carried.get(buffer, 0) + 1
    for buffer, count in carried.items():
        if count > 1 and buffer in written and _starts_from_before(stages, buffer):
            text = f"two vector stages of the pipelined loop read the same value of `{buffer.name}`"
            yield Finding("TL877", loop.node, text)


def _vector_stages(body: list[Stmt]) -> list[list[Stmt]]:
    """Maximal runs of vector statements, each with everything inside its loops."""
    stages: list[list[Stmt]] = []
    current: list[Stmt] = []
    for stmt in body:
        side = side_of(stmt)
        if isinstance(stmt, Copy) and side is Side.BOTH:
            side = Side.CUBE if stmt.src.buffer.memory is Memory.L0C else Side.VECTOR
        if side is Side.VECTOR:
            current += [s for s in walk([stmt]) if not children(s) or isinstance(s, Loop)]
        elif side is Side.CUBE and current:
            stages.append(current)
            current = []
    return [*stages, current] if current else stages


def _starts_from_before(stages: list[list[Stmt]], buffer: Buffer) -> bool:
    """The first access of a step reads the value of the step before."""
    for stage in stages:
        for stmt in stage:
            found = [access for access in accesses(stmt) if access.operand.buffer is buffer]
            if found:
                return any(access.reads for access in found)
    return False
