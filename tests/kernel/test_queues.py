"""Waits that never end, in random programs of one core: the checks and the simulator against a plain model."""

from __future__ import annotations

import random
from collections import Counter

import libcst as cst
import pytest

from tl2npu.kernel.flags.queues import Queues
from tl2npu.kernel.model import Stmt
from tl2npu.simulator.hazards.hazard import Party
from tl2npu.simulator.hazards.stalls import Stalls
from tl2npu.simulator.ir.stmt import Site

Step = tuple[str, tuple[str, str, int] | None]
PRODUCT = (("MTE2", "MTE1"), ("FIX", "M"), ("MTE1", "M"), ("M", "MTE1"), ("MTE1", "MTE2"), ("M", "FIX"))
"""The flags of ``gemm_v0`` in the order of ``common.h``, for one step over K."""


def program(draw: random.Random) -> list[Step]:
    """A few flags in any order; mostly pairs, so that not every program stands still at once."""
    pipes = draw.sample(("S", "MTE1", "MTE2", "M", "FIX"), draw.randint(2, 4))
    steps: list[Step] = []
    for _ in range(draw.randint(1, 9)):
        source, target = draw.sample(pipes, 2)
        flag = source, target, draw.randint(0, 1)
        kinds = draw.choice(
            (("set", "wait"), ("set", "wait"), ("wait", "set"), ("set",), ("wait",), ("all",), ("gemm",))
        )
        at = draw.randint(0, len(steps))
        for kind in kinds:
            steps.insert(at, (kind, flag if kind in ("set", "wait") else None))
            at = draw.randint(at + 1, len(steps))
    return steps


def unrolled(steps: list[Step]) -> list[tuple[int, str, tuple[str, str, int] | None]]:
    """With the number of the step, and products as the flags that they are."""
    found: list[tuple[int, str, tuple[str, str, int] | None]] = []
    for number, (kind, flag) in enumerate(steps):
        if kind == "gemm":
            found += [(number, one, (*pair, 9)) for pair in PRODUCT for one in ("set", "wait")]
        else:
            found.append((number, kind, flag))
    return found


def left_undone(steps: list[Step]) -> set[int]:
    """Steps that no schedule comes to: whatever may run does, until nothing may."""
    todo = unrolled(steps)
    done = [False] * len(todo)

    def pipe(at: int) -> str:
        _, kind, flag = todo[at]
        return "S" if flag is None else flag[0] if kind == "set" else flag[1]

    moved = True
    while moved:
        moved = False
        for at, (_, kind, flag) in enumerate(todo):
            before = [n for n in range(at) if not done[n]]
            issued = not any(pipe(n) in ("S", pipe(at)) for n in before)
            ran = Counter(k for (_, k, f), is_done in zip(todo, done, strict=True) if f == flag and is_done)
            free = not before if kind == "all" else kind == "set" or ran["set"] > ran["wait"]
            # the scalar unit goes on once it has handed out a set, which is done by another pipe
            if not done[at] and issued and free:
                done[at] = moved = True
    return {number for (number, _, _), is_done in zip(todo, done, strict=True) if not is_done}


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int) -> None:
    draw, stood, circles = random.Random(seed), 0, 0
    for _ in range(400):
        steps = program(draw)
        undone = left_undone(steps)
        queues, stalls = Queues(), Stalls()
        nodes = [Stmt(cst.Pass()) for _ in steps]
        for number, (kind, flag) in enumerate(steps):
            party = Party(Site("k.py", number), "", "aic", 0)
            if kind == "gemm":
                queues.product(nodes[number], False, False)
                stalls.product(party)
            else:
                queues.put(nodes[number], flag, kind == "set", False, False)
                stalls.hand_out({"all": "Barrier"}.get(kind, kind.title()), flag, party)
        jam, circle = queues.jam(), stalls.circle()
        assert (jam is not None) == bool(undone) == any(stalls.lines.values()), steps
        if jam is not None:
            stood, circles = stood + 1, circles + bool(jam.path)
            assert all(nodes.index(item.stmt) in undone for item in jam.items), steps
            if jam.path:  # it comes round, and each set stands behind the wait that is named with it
                assert jam.path[-1][1] is jam.wait
                assert circle
        for wait, setter in circle:
            assert wait.party.site.line in undone
            assert setter is None or (setter.party.site.line in undone and setter.flag == wait.flag)
    assert stood > 100
    assert circles > 25
