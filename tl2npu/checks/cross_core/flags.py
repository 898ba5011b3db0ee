"""TL330: flags inside a core that do not pair, in a kernel that sets its own; for any size, and for the sizes given.

TL333: waits that never end although every flag is set as often as it is waited for.

TL790, TL894: numbers that no flag has, and statements in the scope of the core that cannot run them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import libcst as cst

from tl2npu.checks.cross_core.unordered import by_hand
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.ascend.sync import CROSS_FLAGS, EVENT_IDS, OLD_IDS
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.configs import COMBINE
from tl2npu.kernel.flags.balance import Imbalance, call_of, imbalances
from tl2npu.kernel.flags.listed import singles
from tl2npu.kernel.flags.queues import SCALAR, Item, Jam
from tl2npu.kernel.model import CUBE_MEMORY, Copy, Loop, Memory, Opaque, ScopeBlock, Side, Sync, walk
from tl2npu.kernel.symbolic import ceildiv, const
from tl2npu.results import Severity

_CALLERS = 4


def check(subject: Subject, line_of: Callable[[cst.CSTNode], int] | None = None) -> Iterator[Finding]:
    """Findings about the kernel as its author wrote it: without its flags they mean nothing.

    ``line_of``: the line of a node in the file that the author sees, where that is another one.
    """
    if not any(isinstance(stmt, Sync) and stmt.op.name.endswith("_flag") for stmt in subject.kernel.walk()):
        return
    evaluator = subject.located.evaluator
    found = imbalances(subject.kernel, evaluator)
    seen = {id(item.node) for item in found if item.certain}
    exact: list[tuple[cst.CSTNode, Imbalance]] = []
    for caller in subject.callers[:_CALLERS] if subject.located.factory is not None else ():
        for item in imbalances(subject.kernel, evaluator, caller.values):
            if item.certain and id(item.node) not in seen:
                seen.add(id(item.node))
                exact.append((caller.node, item))
    line_of = line_of or (lambda node: subject.file.index.position(node).line)
    jams = _jams(subject)
    for item in found:
        if item.certain or (id(item.node) not in seen and not _has_turn(subject, item)):
            yield _finding(subject, _at_first(item, jams), item.message, line_of)
    for place, item in exact:
        yield _finding(
            subject, _at_first(item, jams), f"{item.message}, for the sizes of line {line_of(place)}", line_of
        )
    short = {item.missing for item in found + [item for _, item in exact] if item.missing.startswith("T.set")}
    told: set[int] = set()
    for jam in jams:
        sure = jam.path and not any(item.cut for item in jam.items)
        if sure and id(jam.wait.stmt.node) not in told and short.isdisjoint(map(_missing, jam.items)):
            told.add(id(jam.wait.stmt.node))
            yield _never_ends(subject, jam, line_of)


def _jams(subject: Subject) -> list[Jam]:
    """The waits that hold up a core, one for each run."""
    every = (queues.jam() for run in by_hand(subject, False) for queues in run.queues.values())
    return [jam for jam in every if jam is not None]


def _missing(item: Item) -> str:
    """The call that would end a wait."""
    return call_of("set_flag", *item.key) if item.key is not None else ""


def _at_first(found: Imbalance, jams: Iterable[Jam]) -> Imbalance:
    """At the first wait that never ends for lack of the flag."""
    waits = (item for jam in jams for item in jam.items if item.key is not None and not item.sets)
    first = next((item for item in waits if found.stuck and _missing(item) == found.missing), None)
    return replace(found, node=first.stmt.node) if first is not None else found


def _never_ends(subject: Subject, jam: Jam, line_of: Callable[[cst.CSTNode], int]) -> Finding:
    """A wait for what is only set behind it, by way of other pipes."""
    key, (first, _) = jam.wait.key, jam.path[0]
    assert key is not None
    assert first is not None
    text = f"deadlock: {_who(jam.wait)} waits for line {line_of(first.stmt.node)} to set `{key[0].lower()}` -> "
    text += f"`{key[1].lower()}` {key[2]}"
    for setter, head in jam.path:
        text += " for line " + str(line_of(setter.stmt.node)) if setter not in (None, first) else ""
        if head is not jam.wait:
            text += f"; before that, {_who(head)} waits on line {line_of(head.stmt.node)}"
        else:
            text += " for this wait" if setter is None else ", which comes behind this wait"
    later = any(item.later for item in jam.items)
    text += ", if every loop runs twice" if later else ""
    loop = _round(subject, jam.wait.stmt.node, {id(one) for one in _loops(subject, first.stmt.node)})
    before, behind = ("this", "at the end") if loop is None else (f"the loop on line {line_of(loop.node)}", "behind it")
    event = jam.wait.stmt.args.get("eventId") if isinstance(jam.wait.stmt, Sync) else None
    each = "" if event is None or event.sym.constant is not None else ", and so for the other events"
    help = f"write `{_missing(jam.wait)}` before {before} and `{call_of('wait_flag', *key)}` {behind}{each}"
    return Finding("TL333", jam.wait.stmt.node, text, "warning", help=help, as_it_stands=None if later else "error")


def _who(item: Item) -> str:
    return "the barrier" if item.key is None else "the scalar unit" if item.pipe == SCALAR else f"pipe {item.pipe}"


def _loops(subject: Subject, node: cst.CSTNode) -> Iterable[Loop]:
    return next((placed.loops for placed in subject.statements if placed.stmt.node is node), ())


def _round(subject: Subject, node: cst.CSTNode, others: Collection[int]) -> Loop | None:
    """The outermost loop around a wait that is one of these: what its first turn waits for is set before it."""
    return next((loop for loop in _loops(subject, node) if id(loop) in others), None)


def _has_turn(subject: Subject, item: Imbalance) -> bool:
    """Whether the loop is long enough in every known call."""
    name, turn = item.turn or ("", 0)
    ranges = [one for stmt in subject.kernel.walk() if isinstance(stmt, Loop) for one in stmt.ranges]
    counts = [ceildiv(one.extent, one.step or const(1)) for one in ranges if str(one.var).partition("@")[0] == name]
    return bool(counts) and all(n is not None and n > turn for count in counts for n in subject.numbers(count))


def check_places(subject: Subject) -> Iterator[Finding]:
    """Numbers of flags, once for each statement, and the first statement in each ``T.Scope`` of the other core."""
    told: set[int] = set()
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Sync) and not stmt.op.name.startswith("wait"):
            found = (f for one in singles(stmt, subject.located.evaluator) or () for f in _number(subject, one))
            if id(stmt.node) not in told and (first := next(found, None)) is not None:
                told.add(id(stmt.node))
                yield first
        elif isinstance(stmt, ScopeBlock) and not subject.is_on(COMBINE):
            yield from _misplaced(stmt)


def _number(subject: Subject, stmt: Sync) -> Iterator[Finding]:
    """Hazards of ``tl2npu run``, too: public kernels use a few numbers that present documentation does not give."""
    for name, count in (("eventId", EVENT_IDS), ("flag", CROSS_FLAGS)):
        given = stmt.args.get(name)
        for number in subject.numbers(given.sym) if given is not None else ():
            if number is not None and not 0 <= number < count:
                text = f"T.{stmt.op.name} takes numbers from 0 to {count - 1} for `{name}`, not {number}"
                used = 0 <= number < OLD_IDS
                text += f"; public kernels use up to {OLD_IDS - 1}, which nothing documents" if used else ""
                yield Finding("TL790", stmt.node, text, "info" if used else None)
                break


def _misplaced(scope: ScopeBlock) -> Iterator[Finding]:
    """The first access of a memory that the core of the scope does not have; copies between the cores have two."""
    on_cube = scope.side is Side.CUBE
    foreign, letter = (frozenset({Memory.UB}), "V") if on_cube else (CUBE_MEMORY, "C")
    for stmt in walk(scope.body):
        if isinstance(stmt, Opaque) or (isinstance(stmt, Copy) and side_of(stmt) is Side.BOTH):
            continue
        tile = next((a.operand.buffer for a in accesses(stmt) if a.operand.buffer.memory in foreign), None)
        if tile is not None:
            core, other = ("cube core", "vector cores") if on_cube else ("vector cores", "cube core")
            text = f"this runs on the {core}, but `{tile.name}` in {tile.memory.value} belongs to the {other}"
            help = f'move what works on {tile.memory.value} into `with T.Scope("{letter}"):`'
            yield Finding("TL894", stmt.node, text, help=help)
            return


def _finding(subject: Subject, item: Imbalance, message: str, line_of: Callable[[cst.CSTNode], int]) -> Finding:
    """An error where a core certainly waits for ever; a migration takes the flags away, so it goes on all the same."""
    help = ""
    severity: Severity | None = None if item.certain else "info"
    if item.missing.startswith("T.set"):
        pipes = item.missing.rpartition(",")[0].partition(".")[2]
        setters = (one for one in subject.statements if isinstance(one.stmt, Sync) and pipes in code(one.stmt.call))
        loop = _round(subject, item.node, {id(loop) for one in setters for loop in one.loops})
        place = "this wait" if loop is None else f"the loop on line {line_of(loop.node)}"
        help = f"a `{item.missing}` is missing before {place}, or the wait is one too many"
    elif item.missing:
        help = f"a `{item.missing}` is missing behind this; what the prologue sets, the epilogue waits for"
    return Finding("TL330", item.node, message, severity, help=help, as_it_stands="error" if item.stuck else None)
