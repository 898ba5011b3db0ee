"""TL198: code of warp groups, ``if tx < 32: ... elif tx < 64: ...``, in an order in which none waits for a later one.

Each group has a loop of its own over the same range, or an arm in one loop. Any order that keeps the order of every
group, and in which no barrier is waited for before it is complete, is one in which the GPU may run. A first turn finds
it: a group goes on until it has to wait, then the next one does. :func:`~.order.in_order` then checks all turns.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.despecialise.order import Run, Stuck, arms, has_barriers, thread_names
from tl2npu.passes.writing.statements import Names
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement
_TURNS, _SIZE = 1, 2
"""The first turn of a loop that is the last one as well: what only these do is in the order, too."""


@dataclass(eq=False)
class _Group:
    """``first`` and ``last``: its threads. ``lines``: what they run."""

    first: int
    last: int
    lines: list[Line] = field(default_factory=list)

    def written(self, name: str, lines: Sequence[Line]) -> cst.If:
        """``if first <= tx < last: ...``."""
        low = f"{self.first} <= " if self.first else ""
        body = list(lines)
        return cst.If(cst.parse_expression(f"{low}{name} < {self.last}"), cst.IndentedBlock(body))


def put(job: Job) -> None:
    """Write the code of the groups in such an order, where one is found."""
    for step in (_with_one_loop, _with_parts):
        found = step(job)
        if found is not None:
            job.apply(found)


def _groups(run: Run, node: cst.If) -> list[_Group] | None:
    """The arms of an ``if`` that asks which thread it is."""
    found: list[_Group] = []
    for threads, suite in arms(run, node) or ():
        lines = [line for line in suite.body if isinstance(line, Line)]
        found.append(_Group(min(threads), max(threads) + 1, lines))
        if len(lines) < len(suite.body):
            return None
    return found or None


def _start(job: Job) -> tuple[Run, str] | None:
    names = thread_names(job)
    launch = job.kernel.launch
    if len(names) != 1 or launch is None:
        return None
    return Run.of(job, _TURNS, _SIZE), next(iter(names))


def _with_one_loop(job: Job) -> Edits | None:
    """Loops of the groups over the same range as one loop."""
    started, launch = _start(job), job.kernel.launch
    if started is None or launch is None:
        return None
    run, name = started
    edits = Edits(job.file.index)
    for line in launch.node.body.body:
        groups = _apart(job, line, _groups(run, line)) if isinstance(line, cst.If) else None
        merged = _in_one_loop(job, groups, name) if groups is not None else None
        if merged is not None:
            edits.replace_many(line, merged)
    return edits


def _in_one_loop(job: Job, groups: Sequence[_Group], name: str, *, inner: bool = False) -> list[Line] | None:
    """The lines of groups whose loops go over the same range, as one loop, and so the loops in these.

    ``inner``: in such a loop. There a group without a loop of its own comes behind those in front of it in the text.
    """
    loops = [_loop(job, group) for group in groups]
    headers = {f"{code(loop.target)} in {code(loop.iter)}" for loop in loops if loop is not None}
    if len(groups) < 2 or len(headers) != 1:
        return None
    before: list[Line] = []
    turns: list[_Group] = []
    behind: list[Line] = []
    one: cst.For | None = None
    for group, loop in zip(groups, loops, strict=True):
        place = next((n for n, item in enumerate(group.lines) if item is loop), len(group.lines))
        turn = [item for item in (loop.body.body if loop is not None else ()) if isinstance(item, Line)]
        first, last = group.lines[:place], group.lines[place + 1 :]
        if inner and loop is None and one is not None:
            first, last = last, first
        for into, kept in ((before, first), (behind, last)):
            if kept:
                into.append(group.written(name, kept))
        if turn:
            turns.append(_Group(group.first, group.last, turn))
        one = loop if loop is not None else one
    assert one is not None
    inside = _in_one_loop(job, turns, name, inner=True) or [turn.written(name, turn.lines) for turn in turns]
    return [*before, one.with_changes(body=cst.IndentedBlock(inside)), *behind]


def _loop(job: Job, group: _Group) -> cst.For | None:
    loops = [line for line in group.lines if isinstance(line, cst.For) and has_barriers(job, line)]
    return loops[0] if len(loops) == 1 else None


def _differing(groups: Sequence[_Group]) -> set[str]:
    """Names to which two groups give different values: in one order of all statements a name has only one."""
    found: dict[str, str] = {}
    differing = set[str]()
    for group in groups:
        own: dict[str, str] = {}
        for line in group.lines:
            for assign in nodes_of(line, cst.Assign, cst.AugAssign, cst.AnnAssign):
                for name in assigned_names(assign):
                    own[name] = own.get(name, "") + code(assign) + "\n"
        differing |= {name for name, text in own.items() if found.setdefault(name, text) != text}
    return differing


def _apart(job: Job, branch: cst.If, groups: Sequence[_Group] | None) -> Sequence[_Group] | None:
    """The groups with names of their own; None where a name is needed behind them."""
    differing = _differing(groups) if groups is not None else set()
    if groups is None or not differing:
        return groups
    inside, every = (Counter(n.value for n in names_in(node)) for node in (branch, job.located.node.body))
    if any(inside[name] < every[name] for name in differing):
        return None
    names, found = Names(job), [groups[0]]
    for group in groups[1:]:
        own = {name: cst.Name(names.fresh(name)) for name in sorted(differing)}
        lines = [new for line in group.lines if isinstance(new := substituted(line, own), Line)]
        found.append(_Group(group.first, group.last, lines))
    return found


def _with_parts(job: Job) -> Edits | None:
    """The arms of each loop in the parts between their waits."""
    started, launch = _start(job), job.kernel.launch
    if started is None or launch is None:
        return None
    run, name = started
    edits = Edits(job.file.index)
    try:
        for line in launch.node.body.body:
            if isinstance(line, cst.For) and has_barriers(job, line):
                _parts_of(run, line, name, edits)
            run.block([line])
    except Stuck:
        return edits if edits else None
    return edits


def _parts_of(run: Run, loop: cst.For, name: str, edits: Edits) -> None:
    """Run the first turn of a loop, group by group."""
    lines = list(loop.body.body)
    choices = [_groups(run, line) if isinstance(line, cst.If) else None for line in lines]
    places = [place for place, found in enumerate(choices) if found is not None]
    if not places:
        inside = run.copied()
        inside.first_turn(loop)
        for line in lines:
            if isinstance(line, cst.For) and has_barriers(run.job, line):
                _parts_of(inside, line, name, edits)
    if not places or places != list(range(places[0], places[-1] + 1)):
        return
    groups = _merged([group for place in places for group in choices[place] or ()])
    if groups is None or len(groups) < 2 or _differing(groups):
        return
    trial = run.copied()
    trial.first_turn(loop)
    trial.block(lines[: places[0]])
    order: list[tuple[_Group, list[Line]]] = []
    left = {id(group): list(group.lines) for group in groups}
    moved = True
    while moved:
        moved = False
        for group in groups:
            done: list[Line] = []
            while left[id(group)] and trial.can_run(left[id(group)][0], group.last - group.first):
                done.append(left[id(group)].pop(0))
            if done:
                order.append((group, done))
                moved = True
    if any(left.values()):
        raise Stuck
    new = [group.written(name, part) for group, part in order]
    first = lines[places[0]]
    edits.replace_many(first, new)
    for place in places[1:]:
        edits.remove(lines[place])


def _merged(groups: Sequence[_Group]) -> list[_Group] | None:
    """One entry for each group; None if groups overlap in part."""
    found: dict[tuple[int, int], _Group] = {}
    for group in groups:
        known = found.setdefault((group.first, group.last), _Group(group.first, group.last))
        known.lines += group.lines
    spans = sorted(found)
    apart = all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    return list(found.values()) if apart else None
