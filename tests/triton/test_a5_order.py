"""The order of events, against every interleaving of small random programs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pytest

from tl2npu.kernel.symbolic import const
from tl2npu.tile.expr import Index, Load
from tl2npu.tile.ir import For, Map, Origin, Stmt
from tl2npu.triton.a5.ir import CORES, Core, Event, Scope
from tl2npu.triton.a5.order import merged
from tl2npu.triton.refused import Refused

pytestmark = pytest.mark.thorough

CHIPS = frozenset({"x", "y"})
Step = tuple[str, str, int]
"""``write`` of a number to a buffer, ``read`` of a buffer under a number, ``set`` or ``wait`` of an event."""
Program = list[Stmt | Event]


def kernel(seed: int) -> tuple[Program, Program, bool]:
    """Two programs, and whether they have a loop: accesses in a front, a loop and an end, and events among them."""
    chance = random.Random(seed)
    numbers = {"cube": iter(range(100, 200)), "vector": iter(range(200, 300))}
    looped = chance.random() < 0.6
    parts: list[dict[Core, Program]] = []
    for longest in (1, 3, 1) if looped else (3,):
        part: dict[Core, Program] = {"cube": [], "vector": []}
        for core, steps in part.items():
            steps += [access(chance, next(numbers[core])) for _ in range(chance.randint(0, longest))]
        for _ in range(chance.randint(longest > 1, longest)):
            event(chance, part, part)
        parts.append(part)
    if looped and chance.random() < 0.3:
        event(chance, *chance.sample(parts, 2))  # also from a loop to what is behind it
    if chance.random() < 0.15:
        event(chance, chance.choice(parts), {"cube": [], "vector": []})
    programs: dict[Core, Program] = {"cube": [], "vector": []}
    for number, part in enumerate(parts):
        for core, steps in part.items():
            loop = For(core, const(2), tuple(steps), 0, Origin(1))  # type: ignore[arg-type]
            programs[core] += [loop] if looped and number == 1 else steps
    return programs["cube"], programs["vector"], looped


def access(chance: random.Random, number: int) -> Stmt:
    """A write or a read; ``number`` tells whose it is, and is what it writes."""
    buffer, line = chance.choice("xxy"), Origin(number)
    if chance.random() < 0.5:
        return Map(buffer, Index(const(number)), line)
    return Map(f"r{number}", Load(buffer, (), "float32"), line)


def event(chance: random.Random, first: dict[Core, Program], second: dict[Core, Program]) -> None:
    """A set somewhere in a program of the first part, a wait for it somewhere in the other one of the second."""
    sender: Core = chance.choice(("cube", "vector"))
    number = chance.randint(0, 1)
    for kind, part in (("set", first), ("wait", second)):
        new = Event("set" if kind == "set" else "wait", sender, number, None, Origin(1))
        steps = part[new.by]
        steps.insert(chance.randint(0, len(steps)), new)


def unrolled(steps: Sequence[Stmt | Event], turns: int) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        if isinstance(step, For):
            found += unrolled(step.body, turns) * turns
        elif isinstance(step, Event):
            found.append((step.kind, step.sender[0] + str(step.number), 0))
        elif isinstance(step, Map) and isinstance(step.value, Load):
            found.append(("read", step.value.buffer, step.origin.line))
        elif isinstance(step, Map):
            found.append(("write", step.dst, step.origin.line))
    return found


def outcomes(cube: list[Step], vector: list[Step]) -> set[tuple[object, ...]]:
    """What all interleavings read, in the order of each program, or ``stuck``; and what is left of the events."""

    @cache
    def after(i: int, j: int, memory: tuple[tuple[str, int], ...], tokens: tuple[str, ...]) -> frozenset[tuple]:
        if i == len(cube) and j == len(vector):
            return frozenset({((), (), tokens)})
        found: set[tuple] = set()
        for mine, steps, place in ((0, cube, i), (1, vector, j)):
            if place == len(steps):
                continue
            kind, name, number = steps[place]
            held, left, seen = dict(memory), Counter(tokens), ()
            if kind == "write":
                held[name] = number
            elif kind == "read":
                seen = ((number, held[name]),)
            elif kind == "set":
                left[name] += 1
            elif left[name]:
                left[name] -= 1
            else:
                continue
            rest = after(i + (mine == 0), j + mine, tuple(sorted(held.items())), tuple(sorted(left.elements())))
            for one, other, end in rest:
                found.add((seen + one, other, end) if mine == 0 else (one, seen + other, end))
        return frozenset(found) or frozenset({(("stuck",), (), ())})

    return set(after(0, 0, tuple((name, 0) for name in sorted(CHIPS)), ()))


def sequential(body: Sequence[Stmt], turns: int) -> tuple[object, ...]:
    """What the merged program reads: by the cube core and by the vector cores."""
    held = dict.fromkeys(CHIPS, 0)
    seen: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for kind, name, number in unrolled(body, turns):
        if kind == "write":
            held[name] = number
        else:
            seen[number >= 200].append((number, held[name]))
    return tuple(seen[0]), tuple(seen[1]), ()


@pytest.mark.parametrize("first", range(0, 8000, 2000))
def test_what_is_accepted_has_one_outcome(first: int) -> None:
    accepted = looped = 0
    for seed in range(first, first + 2000):
        cube, vector, looped_ = kernel(seed)
        scopes = [Scope(core, tuple(part), Origin(1)) for core, part in zip(CORES, (cube, vector), strict=True)]  # type: ignore[arg-type]
        try:
            body = merged(scopes, CHIPS, frozenset(), str)  # type: ignore[arg-type]
        except Refused:
            continue
        accepted, looped = accepted + 1, looped + looped_
        for count in (0, 1, 2, 3) if looped_ else (0,):
            assert outcomes(unrolled(cube, count), unrolled(vector, count)) == {sequential(body, count)}, seed
    assert accepted > 100
    assert looped > 30


def test_what_has_one_outcome_and_shares_nothing_is_accepted() -> None:
    tried = 0
    for seed in range(3000):
        cube, vector, looped = kernel(seed)
        one, other = ({s[1] for s in unrolled(part, 1) if s[0] in ("read", "write")} for part in (cube, vector))
        first, *more = outcomes(unrolled(cube, 0), unrolled(vector, 0))
        if looped or one & other or more or first[2] or "stuck" in first[0] + first[1]:  # type: ignore[operator]
            continue
        scopes = [Scope(core, tuple(part), Origin(1)) for core, part in zip(CORES, (cube, vector), strict=True)]  # type: ignore[arg-type]
        merged(scopes, CHIPS, frozenset(), str)  # type: ignore[arg-type]
        tried += 1
    assert tried > 100
