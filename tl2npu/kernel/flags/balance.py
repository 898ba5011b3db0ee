"""Flags inside a core, counted: is every ``set_flag`` waited for, and has every ``wait_flag`` something to wait for?

The flags of two pipes are cut out of the kernel with the loops and conditions around them, and counted for every small
number that loop lengths, numbers of slots and block indices may have (:mod:`tl2npu.kernel.flags.terms`). A flag is
reported only if the counts differ for all of them; what is loaded, or changes from turn to turn in a way that is not
followed, has to balance within itself, or nothing is said.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

import libcst as cst

from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.flags.parts import (
    Choice,
    Flag,
    GiveUp,
    Part,
    Repeat,
    conditions_in,
    flags_in,
    may_turn_twice,
    only,
    parts_of,
    repeats_in,
    single_turns,
    terms_in,
    with_plain_turns,
)
from tl2npu.kernel.flags.terms import Numbers, Terms, Unknown, value
from tl2npu.kernel.model import Kernel, Loop, Side
from tl2npu.kernel.symbolic import Sym

_ANY = "any"
"""In place of the event, where only the pipes are looked at."""
_CHOICES = 4_000
_STEPS = 150_000


@dataclass(frozen=True, eq=False)
class Imbalance:
    """``certain``: wherever the flags run as the message says. Otherwise a loop that is too short would make it so.

    ``missing``: the call that is not there; ``named``: with the event in the author's words. ``stuck``: a wait
    that nothing ends, under no condition. ``turn``: the variable of that loop, and the iteration that it must have.
    """

    node: cst.CSTNode
    message: str
    certain: bool = True
    missing: str = ""
    named: str = ""
    stuck: bool = False
    turn: tuple[str, int] | None = None


def imbalances(kernel: Kernel, evaluator: Evaluator, values: Mapping[str, int] | None = None) -> list[Imbalance]:
    """The flags of a kernel that do not pair, in text order; ``values``: known integers of its factory."""
    loops = frozenset(
        name for s in kernel.walk() if isinstance(s, Loop) for r in s.ranges for name in r.var.variables()
    )
    launch = frozenset(name for name in (kernel.cid, kernel.vid) if name is not None)
    terms = Terms(evaluator, loops, launch, values or {})
    found: list[Imbalance] = []
    try:
        everything = parts_of(kernel.body, terms, Side.NONE)
    except GiveUp:
        return []
    for channel in dict.fromkeys(flag.channel for flag in flags_in(everything)):
        found += _of_channel(only(everything, channel), terms)
    return found


def _of_channel(parts: list[Part], terms: Terms) -> list[Imbalance]:
    """Event by event; all events of the pipes together where one of them is not to be told."""
    for apart in (True, False):
        try:
            return _Count(parts, terms, apart).findings()
        except GiveUp:
            continue
    return []


def call_of(name: str, src: str, dst: str, event: Hashable) -> str:
    """The text of a set or a wait."""
    return f'T.{name}("{src.lower()}", "{dst.lower()}", {event})'


# counting ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Tally:
    """How often which flag ran for which event: a number, or an expression where that is unknown.

    Parts that may run any number of times are not in ``made``: ``open`` has their events with the sign of what they
    add, ``inside`` their flags.
    """

    made: Counter[tuple[int, Hashable]] = field(default_factory=Counter)
    open: set[tuple[Hashable, int]] = field(default_factory=set)
    inside: set[tuple[int, Hashable]] = field(default_factory=set)

    def add(self, other: _Tally, times: int = 1) -> None:
        """Count something else, so many times."""
        for key, count in other.made.items():
            self.made[key] += count * times
        self.open |= other.open
        self.inside |= other.inside


@dataclass(frozen=True)
class _Outcome:
    """One choice of numbers: what it comes to, which flags ran, and which loops turned more than once."""

    tally: _Tally
    ran: frozenset[int]
    turned: frozenset[int]
    net: dict[Hashable, int]

    def reaches_less(self, other: _Outcome) -> bool:
        """The other one runs all of this and more."""
        mine, theirs = (self.ran, self.turned), (other.ran, other.turned)
        return mine != theirs and self.ran <= other.ran and self.turned <= other.turned

    @property
    def pairs(self) -> bool:
        """Every flag that is set is waited for."""
        return not self.net and not self.tally.open

    @property
    def sure(self) -> set[tuple[Hashable, int]]:
        """Events with the sign of what is too much, if every part that may run does run once."""
        found = self.tally.open | {(event, 1 if count > 0 else -1) for event, count in self.net.items()}
        return {(event, sign) for event, sign in found if (event, -sign) not in found}


class _Count:
    """The flags of one channel."""

    def __init__(self, parts: list[Part], terms: Terms, apart: bool) -> None:
        used = Counter(name for term in terms_in(parts) for name in term.variables())
        parts = with_plain_turns(parts, used, terms)
        self.parts, self.terms, self.apart = parts, terms, apart
        self.flags = list(flags_in(parts))
        self.index = {id(flag): n for n, flag in enumerate(self.flags)}
        self.loops = {id(part) for part in repeats_in(parts) if may_turn_twice(part)}
        self.steps = 0
        self.ran: set[int] = set()
        self.turned: set[int] = set()

    def findings(self) -> list[Imbalance]:
        """What is certainly unbalanced, or depends on one turn of a loop."""
        single = list(single_turns(self.parts))
        outcomes: list[_Outcome] = []
        for numbers in self._choices():
            outcome = self._outcome(numbers)
            if outcome is None:
                continue
            outcomes.append(outcome)
            everything = len(outcome.ran) == len(self.flags) and outcome.turned == self.loops
            if everything and not single and not outcome.sure:
                return []
        reached = {(one.ran, one.turned): one for one in outcomes}.values()
        most = {(one.ran, one.turned) for one in reached if not any(one.reaches_less(other) for other in reached)}
        full = [one for one in outcomes if (one.ran, one.turned) in most]
        if len(set[int]().union(*(one.ran for one in full))) < len(self.flags):
            return []  # no such number was tried, or there is none
        if all(one.sure for one in full):
            return self._report(full, [one for one in outcomes if one.ran and one.pairs])
        if not all(one.pairs for one in full):
            return []
        return [found for choice, name, turn in single if (found := self._late(choice, name, turn, outcomes, full))]

    def _choices(self) -> Iterator[Numbers]:
        events = [flag.event for flag in self.flags if flag.event is not None]
        domains = self.terms.domains(list(terms_in(self.parts)), events, list(conditions_in(self.parts)))
        if prod(len(domain) for domain in domains.values()) > _CHOICES:
            raise GiveUp
        every = itertools.product(*domains.values())
        for numbers in sorted(every, key=lambda one: (sum(one), one)):
            yield dict(zip(domains, numbers, strict=True))

    def _outcome(self, numbers: Numbers) -> _Outcome | None:
        """None if the numbers make no sense."""
        self.ran, self.turned = set(), set()
        try:
            tally = self._run(self.parts, dict(numbers))
        except ZeroDivisionError:
            return None
        self._settled(tally)
        return _Outcome(tally, frozenset(self.ran), frozenset(self.turned), self._net(tally))

    def _net(self, tally: _Tally) -> dict[Hashable, int]:
        total: Counter[Hashable] = Counter()
        for (index, event), count in tally.made.items():
            total[event] += self.flags[index].sign * count
        return {event: count for event, count in total.items() if count}

    def _settled(self, tally: _Tally) -> None:
        """Events that are unknown must have paired by now."""
        if any(isinstance(event, Sym) for event in self._net(tally)):
            raise GiveUp

    def _run(self, parts: Sequence[Part], numbers: Numbers) -> _Tally:
        tally = _Tally()
        for part in parts:
            self.steps += 1
            if self.steps > _STEPS:
                raise GiveUp
            if isinstance(part, Flag):
                index = self.index[id(part)]
                self.ran.add(index)
                tally.made[index, self._event(part, numbers)] += 1
            elif isinstance(part, Choice):
                tally.add(self._choose(part, numbers))
            else:
                self._turns(part, numbers, tally)
        return tally

    def _event(self, flag: Flag, numbers: Numbers) -> Hashable:
        if not self.apart:
            return _ANY
        if flag.event is None:
            return flag.key
        try:
            return value(flag.event, numbers)
        except Unknown:
            return flag.key

    def _choose(self, part: Choice, numbers: Numbers) -> _Tally:
        try:
            return self._run(part.then if part.cond.holds(numbers) else part.orelse, numbers)
        except Unknown:
            pass
        arms = [self._run(arm, numbers) for arm in (part.then, part.orelse)]
        nets = [self._net(arm) for arm in arms]
        if nets[0] == nets[1]:
            arms[0].add(arms[1], 0)
            return arms[0]
        if all(nets):
            raise GiveUp
        some, none = arms if nets[0] else reversed(arms)
        result = self._any_number(some)
        result.add(none)
        return result

    def _any_number(self, tally: _Tally) -> _Tally:
        """What may run any number of times."""
        self._settled(tally)
        signs = {(event, 1 if count > 0 else -1) for event, count in self._net(tally).items()}
        unpaired = {event for event, _ in signs}
        paired = Counter({key: count for key, count in tally.made.items() if key[1] not in unpaired})
        return _Tally(paired, tally.open | signs, tally.inside | set(tally.made))

    def _turns(self, part: Repeat, numbers: Numbers, tally: _Tally) -> None:
        try:
            turns = value(part.turns, numbers) if part.turns is not None else None
            start = value(part.start, numbers) if part.start is not None else None
            step = value(part.step, numbers) if part.step is not None else None
        except Unknown:
            turns = start = step = None
        if turns is not None and turns > 1:
            self.turned.add(id(part))
        if turns is None:
            tally.add(self._any_number(self._run(part.body, numbers)))
        elif turns > 0 and (start is None or step is None or not part.depends):
            once = self._run(part.body, numbers)
            self._settled(once)
            if part.depends and self._net(once):
                raise GiveUp
            tally.add(once, turns)
        else:
            for turn in range(turns):
                assert start is not None
                assert step is not None
                once = self._run(part.body, {**numbers, part.name: start + turn * step})
                self._settled(once)
                tally.add(once)

    # findings --------------------------------------------------------------------------------------------------------

    def _report(self, full: list[_Outcome], paired: list[_Outcome]) -> list[Imbalance]:
        channel = self.flags[0].channel
        name = f"`{channel.src.lower()}` -> `{channel.dst.lower()}`"
        common = set.intersection(*(one.sure for one in full))
        if not common:
            raise GiveUp
        found: list[Imbalance] = []
        for event, sign in sorted(common, key=str):
            once = all(abs(one.net.get(event, 0)) == 1 and (event, sign) not in one.tally.open for one in full)
            often = "once more" if once else "more often"
            blamed = self._blamed(event, sign, full, paired).stmt
            text = f"set {often} than it is waited for" if sign > 0 else f"waited for {often} than it is set"
            where = ", if every loop runs twice and every condition is true" if paired else ""
            what = f"the flag {name}" if event == _ANY else f"the flag {name} {event}"
            short = all(one.net.get(event, 0) < 0 and (event, -1) not in one.tally.open for one in full)
            call = partial(call_of, "wait_flag" if sign > 0 else "set_flag", channel.src, channel.dst)
            missing, named = ("", "") if event == _ANY else (call(event), call(blamed.text("eventId") or event))
            stuck = sign < 0 and short and not paired
            found.append(Imbalance(blamed.node, f"{what} is {text}{where}", missing=missing, named=named, stuck=stuck))
        return found

    def _blamed(self, event: Hashable, sign: int, full: list[_Outcome], paired: list[_Outcome]) -> Flag:
        """The statement without which the counts are equal, best one that does not run where they are."""
        ran = {n for one in full for n, e in (*one.tally.made, *one.tally.inside) if e == event}
        same = [n for n, flag in enumerate(self.flags) if flag.sign == sign and n in ran]
        exact = [n for n in same if all(one.tally.made[n, event] == abs(one.net.get(event, 0)) for one in full)]
        missed = [n for n in exact if not any(n in one.ran for one in paired)]
        return self.flags[(missed or exact or same)[-1 if sign < 0 else 0]]

    def _late(
        self, choice: Choice, name: str, turn: int, outcomes: list[_Outcome], full: list[_Outcome]
    ) -> Imbalance | None:
        """Flags that run in one certain turn of a loop only, and are missed where the loop is shorter."""
        inside = {self.index[id(flag)] for flag in flags_in(choice.then)}
        most = {one.ran for one in full}
        without = [one for one in outcomes if not one.ran & inside and one.ran | inside in most]
        if not without or any(one.pairs for one in without):
            return None
        flag = self.flags[min(inside)]
        what = "set" if flag.sign > 0 else "waited for"
        where = f"`{flag.channel.src.lower()}` -> `{flag.channel.dst.lower()}`"
        text = f"the flag {where} is {what} only in iteration {turn} of `{name}`: it must run more than {turn} times"
        return Imbalance(flag.stmt.node, text, certain=False, turn=(name, turn))
