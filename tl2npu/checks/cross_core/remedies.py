"""The help of TL780 and TL781: which calls order the two accesses, and where they have to stand.

A set runs as often as its wait: both stand outside of what is around one of the accesses only, a loop or a condition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import count

from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flags.balance import call_of, imbalances
from tl2npu.kernel.flags.pipes import PIPES, named_pipe
from tl2npu.kernel.flags.seen import Conflict, Seen
from tl2npu.kernel.model import Branch, Dim, Loop, ScopeBlock, Stmt, Sync

Flags = Sequence[tuple[Sync, Placed]]


def remedy(subject: Subject, group: Sequence[Conflict], last: Stmt) -> str:
    """The wait that is missing where a flag is set; else both calls, with a number that the kernel does not use.

    ``last``: the last of the statements that have to be over.
    """
    first, second = group[0].first, group[0].second
    behind, before = _behind(subject, last, second.stmt), _before(subject, second.stmt, last)
    again, loop = "", _next_iteration(subject, last, second.stmt)
    if loop is not None:
        at = subject.file.index.line(loop.node)
        again = f"; set it once more before the loop on line {at}, and wait once more behind it"
    flags = [(placed.stmt, placed) for placed in subject.statements if isinstance(placed.stmt, Sync)]
    if first.side is not second.side:
        return _between_cores(subject, group, flags, f"behind {behind}", before, again)
    if (there := _of_flag_that_is_set(subject, group[0], flags)) is not None:
        return there
    if (slot := _other_slot(subject, group[0], flags)) is not None:
        return slot
    number = _unused(flags, "eventId")
    sets, waits = (call_of(f"{one}_flag", first.touch.pipe, second.touch.pipe, number) for one in ("set", "wait"))
    if len(group) > 1 and not again:
        return f"write `{sets}` and `{waits}` between {behind} and {before}, or `T.barrier_all()`"
    text = f"write `{sets}` behind {behind} and `{waits}` before {before}{again}"
    return f"{text}; or `T.barrier_all()` {f'behind {behind}' if again else 'between them'}"


def _between_cores(
    subject: Subject, group: Sequence[Conflict], flags: Flags, behind: str, before: str, again: str
) -> str:
    first, pipe = group[0].first, group[0].first.touch.pipe
    line = max(subject.file.index.position(one.first.stmt.node).line for one in group)
    waits = {flag.text("flag") for flag, _ in flags if flag.op.name == "wait_cross_flag"}
    for flag, placed in flags:
        named = named_pipe(flag, "pipe")
        at = subject.file.index.position(flag.node).line
        own = any(isinstance(parent, ScopeBlock) and parent.side is first.side for parent in placed.parents)
        if not own or flag.op.name != "set_cross_flag" or at <= line or named not in PIPES:
            continue
        if flag.text("flag") not in waits:
            wait = f"T.wait_cross_flag({flag.text('flag')})"
            return f"write `{wait}` before this: line {at} sets that flag, and a wait is missing"
        if named != pipe:
            return f"`{code(flag.call)}` on line {at} waits for pipe {named} only: set it on pipe {pipe}"
    number = _unused(flags, "flag")
    pair = f'`T.set_cross_flag("{pipe}", {number})` {behind} and `T.wait_cross_flag({number})`'
    return f"write {pair} before {before}{again}"


def _placed(subject: Subject, stmt: Stmt) -> Placed:
    return next(placed for placed in subject.statements if placed.stmt is stmt)


def _around(placed: Placed) -> dict[Hashable, Stmt]:
    """The loops and arms of conditions around a statement, outermost first."""
    arms = {id(branch): arm for branch, arm in placed.conditions}
    return {(id(one), arms.get(id(one))): one for one in placed.parents if isinstance(one, (Loop, Branch))}


def _apart(subject: Subject, stmt: Stmt, other: Stmt) -> str:
    """The outermost loop or condition around a statement that is not around the other; empty if there is none."""
    shared = _around(_placed(subject, other))
    outer = next((one for key, one in _around(_placed(subject, stmt)).items() if key not in shared), None)
    if outer is None:
        return ""
    return f"the {'loop' if isinstance(outer, Loop) else '`if`'} on line {subject.file.index.line(outer.node)}"


def _behind(subject: Subject, stmt: Stmt, other: Stmt) -> str:
    return _apart(subject, stmt, other) or f"line {subject.file.index.position(stmt.node).line}"


def _before(subject: Subject, stmt: Stmt, other: Stmt) -> str:
    return _apart(subject, stmt, other) or "this"


def _next_iteration(subject: Subject, first: Stmt, second: Stmt) -> Loop | None:
    """The loop in whose next iteration the second comes after the first."""
    one, other = _placed(subject, first), _placed(subject, second)
    if other.order >= one.order:
        return None
    return next((loop for loop in reversed(one.loops) if any(loop is outer for outer in other.loops)), None)


def _of_flag_that_is_set(subject: Subject, conflict: Conflict, flags: Flags) -> str | None:
    """The wait for a flag that is set, where it runs as often as that: in front of loops that have no set."""
    pipes = conflict.first.touch.pipe, conflict.second.touch.pipe
    wait = call_of("wait_flag", *pipes, "").removesuffix(" )")
    every = imbalances(subject.kernel, subject.located.evaluator)
    short = [one for one in every if one.missing.startswith(wait)]
    if not short:
        return None
    found, reader = short[0], _placed(subject, conflict.second.stmt)
    setter = next(placed for placed in subject.statements if placed.stmt.node is found.node)
    setters = [placed for flag, placed in flags if wait.replace("T.wait", ".set", 1) in code(flag.call)]
    within = {id(loop) for placed in (setter, *setters) for loop in placed.loops}
    deeper = next((loop for loop in reader.loops if id(loop) not in within), None)
    place = "this" if deeper is None else f"the loop on line {subject.file.index.line(deeper.node)}"
    call = found.named if all(loop in reader.loops for loop in setter.loops) else found.missing
    slot = _slot(conflict.second)
    if len(short) > 1 and slot is not None and slot.lo.constant is None:
        call = call_of("wait_flag", *pipes, code(slot.node))
    lines = sorted({subject.file.index.position(one.node).line for one in short})
    shown = f"line {lines[0]} sets" if len(lines) == 1 else f"lines {' and '.join(map(str, lines))} set"
    return f"write `{call}` before {place}: {shown} that flag, and a wait is missing"


def _slot(seen: Seen) -> Dim | None:
    """The index that says which slot of a tile is meant: the first one, where there are more."""
    for access in accesses(seen.stmt):
        dims = access.operand.dims
        if access.operand.buffer is seen.touch.buffer and access.writes == seen.touch.writes and dims:
            return dims[0] if len(dims) > 1 and dims[0].is_point else None
    return None


def _other_slot(subject: Subject, conflict: Conflict, flags: Flags) -> str | None:
    """A wait for one slot, behind which another one is read."""
    wrote, read, reader = _slot(conflict.first), _slot(conflict.second), _placed(subject, conflict.second.stmt)
    if not conflict.is_read or wrote is None or read is None or read.lo.constant is not None:
        return None
    pipes = tuple(one.touch.pipe for one in (conflict.first, conflict.second))
    own = [(f, p) for f, p in flags if (named_pipe(f, "src"), named_pipe(f, "dst")) == pipes and "eventId" in f.args]
    if all(flag.op.name != "set_flag" or flag.args["eventId"].sym != wrote.lo for flag, _ in own):
        return None
    for flag, placed in reversed(own):
        same = placed.parents == reader.parents and placed.order < reader.order
        if same and flag.op.name == "wait_flag" and (slot := flag.args["eventId"].sym).constant is None:
            if slot == read.lo:
                return None
            line, text = subject.file.index.position(flag.node).line, flag.text("eventId")
            name = conflict.second.touch.buffer.name
            return f"line {line} waits for slot `{text}`: read that one, `{name}[{text}, ...]`, or wait for this one"
    return None


def _unused(flags: Iterable[tuple[Sync, Placed]], name: str) -> int:
    used = {flag.args[name].sym.constant for flag, _ in flags if name in flag.args}
    return next(number for number in count() if number not in used)
