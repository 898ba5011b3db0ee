"""Flags inside a core that are not set as often as they are waited for, and many that are."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.kernel.support import file_of, source
from tl2npu.kernel.flags.balance import Imbalance, imbalances

pytestmark = pytest.mark.thorough

PIPELINE = """
with T.Scope("C"):
    T.set_flag("mte1", "mte2", 0)
    T.set_flag("mte1", "mte2", 1)
    T.set_flag("m", "mte1", 0)
    T.set_flag("m", "mte1", 1)
    T.set_flag("fix", "m", 0)
    for t in T.serial(T.ceildiv(m_blocks * n_blocks, 20)):
        if cid + 20 * t < m_blocks * n_blocks:
            T.wait_flag("mte1", "mte2", 0)
            T.set_flag("mte2", "mte1", 0)
            T.wait_flag("fix", "m", 0)
            for k in T.serial(K // deep):
                if k < K // deep - 1:
                    T.wait_flag("mte1", "mte2", (k + 1) % S)
                    T.set_flag("mte2", "mte1", (k + 1) % S)
                for kk in T.serial(T.ceildiv(deep, block)):
                    if kk == 0:
                        T.wait_flag("mte2", "mte1", k % S)
                    T.wait_flag("m", "mte1", kk % P)
                    if kk == T.ceildiv(deep, block) - 1:
                        T.set_flag("mte1", "mte2", k % S)
                    T.set_flag("mte1", "m", kk % P)
                    T.wait_flag("mte1", "m", kk % P)
                    T.set_flag("m", "mte1", kk % P)
            T.set_flag("m", "fix", 0)
            T.wait_flag("m", "fix", 0)
            T.set_flag("fix", "m", 0)
    T.wait_flag("mte1", "mte2", 0)
    T.wait_flag("mte1", "mte2", 1)
    T.wait_flag("m", "mte1", 0)
    T.wait_flag("m", "mte1", 1)
    T.wait_flag("fix", "m", 0)
"""
"""A product with two tiles in L1 and two in L0, all flags and nothing else."""

ARGS = "m_blocks, n_blocks, K, deep, block, S, P, n, first"


def found(body: str, **around: str) -> list[Imbalance]:
    """What is found in a kernel with this body."""
    text = source(body, args=ARGS, **around)
    (located,) = file_of(text).located
    return imbalances(located.read(), located.evaluator)


def lines(body: str, **around: str) -> list[str]:
    """The statements that are blamed."""
    text = source(body, args=ARGS, **around)
    file = file_of(text)
    (located,) = file.located
    nodes = [item.node for item in imbalances(located.read(), located.evaluator)]
    return [text.splitlines()[file.index.position(node).line - 1].strip() for node in nodes]


FLAGS = [n for n, line in enumerate(PIPELINE.splitlines()) if "_flag(" in line]


def without(body: str, number: int) -> str:
    """The body with one line that does nothing."""
    rows = body.splitlines()
    rows[number] = re.sub(r"T\..*", "pass", rows[number])
    return "\n".join(rows)


def test_a_pipeline_that_pairs() -> None:
    assert found(PIPELINE) == []


@pytest.mark.parametrize("number", FLAGS, ids=lambda n: PIPELINE.splitlines()[n].strip())
def test_every_flag_of_the_pipeline_is_missed(number: int) -> None:
    broken = found(without(PIPELINE, number))
    assert [item for item in broken if item.certain]
    src, dst = re.findall(r'"(\w+)"', PIPELINE.splitlines()[number])
    missing = "waited for" if "set_flag" in PIPELINE.splitlines()[number] else "set"
    assert all(f"`{src}` -> `{dst}`" in item.message for item in broken)
    assert all(f"is {missing}" in item.message for item in broken)


BALANCED = {
    "straight": """
        T.set_flag("mte2", "v", 3)
        T.wait_flag("mte2", "v", 3)
    """,
    "pipes in any case, with their prefix": """
        T.set_flag("MTE2", "V", 3)
        T.wait_flag("PIPE_MTE2", "v", 3)
    """,
    "from turn to turn": """
        for i in T.serial(n):
            if i > 0:
                T.wait_flag("v", "mte2", 0)
            if i < n - 1:
                T.set_flag("v", "mte2", 0)
    """,
    "two turns later": """
        for i in T.serial(n):
            if i > 1:
                T.wait_flag("m", "mte1", i % 2)
            if i < n - 2:
                T.set_flag("m", "mte1", i % 2)
    """,
    "slots in loops": """
        for s in T.serial(S):
            T.set_flag("v", "mte2", s)
        for i in T.serial(n):
            T.wait_flag("v", "mte2", i % S)
            T.set_flag("v", "mte2", i % S)
        for s in T.serial(S):
            T.wait_flag("v", "mte2", s)
    """,
    "slots from a base": """
        BASE = 3
        T.set_flag("m", "mte1", BASE)
        T.set_flag("m", "mte1", BASE + 1)
        for i in T.serial(n):
            side = i % 2
            T.wait_flag("m", "mte1", BASE + side)
            T.set_flag("m", "mte1", BASE + side)
        T.wait_flag("m", "mte1", BASE)
        T.wait_flag("m", "mte1", BASE + 1)
    """,
    "the other arm": """
        if first:
            T.set_flag("mte2", "v", 0)
        else:
            T.set_flag("mte2", "v", 0)
        T.wait_flag("mte2", "v", 0)
    """,
    "a toggle that is not followed": """
        side = 0
        for i in T.serial(n):
            T.set_flag("v", "mte2", side)
            side = 1 - side
            T.wait_flag("v", "mte2", 1 - side)
    """,
    "a condition on data": """
        for i in T.serial(n):
            if O[i, 0] > 0:
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
    """,
    "conditions on data that may agree": """
        for i in T.serial(n):
            if O[i, 0] > 0:
                T.set_flag("mte2", "v", 0)
            if O[i, 0] > 0:
                T.wait_flag("mte2", "v", 0)
    """,
    "all but the first, as data say": """
        for i in T.serial(n):
            if O[i, 0] > 0:
                T.wait_flag("v", "mte2", 0)
            T.set_flag("v", "mte2", 0)
        T.wait_flag("v", "mte2", 0)
    """,
    "turns that are not known": """
        T.set_flag("mte2", "v", 0)
        count = T.if_then_else(cid < 3, n, first)
        for i in T.serial(count):
            T.wait_flag("mte2", "v", 0)
            if i + 1 < K:
                T.set_flag("mte2", "v", 0)
    """,
    "every 32 rows": """
        for i in T.serial(n // 2):
            step = T.floordiv(i, 32)
            if step > 1 and i % 32 == 0:
                T.wait_flag("mte3", "mte2", step % 2)
            if (i + 1) % 32 == 0:
                if step < n // 64 - 2:
                    T.set_flag("mte3", "mte2", step % 2)
    """,
    "one core of two": """
        if vid == 0:
            T.set_flag("mte2", "v", 0)
        if vid == 0:
            T.wait_flag("mte2", "v", 0)
    """,
    "a loop that is left early": """
        T.set_flag("mte2", "v", 0)
        for i in T.serial(n):
            T.wait_flag("mte2", "v", 0)
            T.set_flag("mte2", "v", 0)
            if O[i, 0] > 0:
                T.wait_flag("mte2", "v", 0)
                T.loop_break()
    """,
    "tasks of a persistent kernel": """
        T.set_flag("fix", "m", 0)
        for bx, by in T.Persistent([m_blocks, n_blocks], 20, cid):
            T.wait_flag("fix", "m", 0)
            T.set_flag("fix", "m", 0)
        T.wait_flag("fix", "m", 0)
    """,
    "both of two conditions": """
        for i in T.serial(n):
            for j in T.serial(3):
                if T.And(i == 0, j == 0):
                    T.set_flag("mte2", "v", 1)
                if i == 0 and not j > 0:
                    T.wait_flag("mte2", "v", 1)
    """,
    "cross flags are no business of one core": """
        T.set_cross_flag("FIX", 0)
    """,
}


@pytest.mark.parametrize("body", BALANCED.values(), ids=BALANCED)
def test_nothing_is_said_of_flags_that_pair(body: str) -> None:
    assert found(body) == []


UNBALANCED = {
    "never waited for": (
        'T.set_flag("mte2", "v", 0)',
        "`mte2` -> `v` 0 is set once more than it is waited for",
        'T.set_flag("mte2", "v", 0)',
    ),
    "another event": (
        """
        T.set_flag("mte2", "v", 0)
        T.wait_flag("mte2", "v", 1)
        """,
        "`mte2` -> `v` 0 is set once more than it is waited for",
        'T.set_flag("mte2", "v", 0)',
    ),
    "the other way round": (
        """
        T.set_flag("mte2", "v", 0)
        T.wait_flag("v", "mte2", 0)
        """,
        "`mte2` -> `v` 0 is set once more than it is waited for",
        'T.set_flag("mte2", "v", 0)',
    ),
    "in every turn": (
        """
        T.set_flag("v", "mte2", 0)
        for i in T.serial(n):
            T.wait_flag("v", "mte2", 0)
        """,
        "`v` -> `mte2` 0 is waited for more often than it is set",
        'T.wait_flag("v", "mte2", 0)',
    ),
    "where data say so": (
        """
        T.set_flag("mte2", "v", 0)
        T.wait_flag("mte2", "v", 0)
        if O[0, 0] > 0:
            T.set_flag("mte2", "v", 0)
        """,
        "`mte2` -> `v` 0 is set more often than it is waited for",
        'T.set_flag("mte2", "v", 0)',
    ),
    "a slot too many": (
        """
        for s in T.serial(3):
            T.set_flag("v", "mte2", s)
        for i in T.serial(n):
            T.wait_flag("v", "mte2", i % 3)
            T.set_flag("v", "mte2", i % 3)
        T.wait_flag("v", "mte2", 0)
        T.wait_flag("v", "mte2", 1)
        """,
        "`v` -> `mte2` 2 is set once more than it is waited for",
        'T.set_flag("v", "mte2", s)',
    ),
    "slots that are not known": (
        """
        count = T.if_then_else(cid < 3, n, first)
        for i in T.serial(count):
            T.wait_flag("m", "mte1", i % 2)
        """,
        "`m` -> `mte1` is waited for more often than it is set",
        'T.wait_flag("m", "mte1", i % 2)',
    ),
}


@pytest.mark.parametrize(("body", "message", "line"), UNBALANCED.values(), ids=UNBALANCED)
def test_flags_that_do_not_pair(body: str, message: str, line: str) -> None:
    assert message in [item.message.removeprefix("the flag ").partition(",")[0] for item in found(body)]
    assert line in lines(body)


def test_a_turn_that_a_shorter_loop_does_not_have() -> None:
    body = """
        T.set_flag("mte1", "mte2", 0)
        for k in T.serial(n):
            T.wait_flag("mte1", "mte2", 0)
            for kk in T.serial(T.ceildiv(deep, block)):
                if kk == 3:
                    T.set_flag("mte1", "mte2", 0)
        T.wait_flag("mte1", "mte2", 0)
    """
    (item,) = found(body)
    assert not item.certain
    assert "only in iteration 3 of `kk`: it must run more than 3 times" in item.message
    assert lines(body) == ['T.set_flag("mte1", "mte2", 0)']
    assert found(body.replace("kk == 3", "kk == 0")) == []
    assert found(body.replace("T.ceildiv(deep, block)", "4")) == []


def test_sizes_that_are_known_decide() -> None:
    """Two events for three slots."""
    body = """
        T.set_flag("v", "mte2", 0)
        T.set_flag("v", "mte2", 1)
        for i in T.serial(n):
            T.wait_flag("v", "mte2", i % S)
            T.set_flag("v", "mte2", i % S)
        T.wait_flag("v", "mte2", 0)
        T.wait_flag("v", "mte2", 1)
    """
    (located,) = file_of(source(body, args=ARGS)).located
    kernel = located.read()
    assert imbalances(kernel, located.evaluator) == []
    assert imbalances(kernel, located.evaluator, {"S": 2}) == []
    # a third slot is waited for before it was ever set, and the counts agree: what is counted is no order
    assert imbalances(kernel, located.evaluator, {"S": 3}) == []
    four = textwrap.dedent(body).replace('T.set_flag("v", "mte2", i % S)', 'T.set_flag("v", "mte2", (i + 1) % S)')
    (located,) = file_of(source(four, args=ARGS)).located
    assert imbalances(located.read(), located.evaluator, {"S": 3, "n": 4})


def test_flags_in_macros() -> None:
    module = """
        @T.macro
        def begin(event):
            T.set_flag("v", "mte2", event)

        @T.macro
        def end(event):
            T.wait_flag("v", "mte2", event)
    """
    assert found("begin(0)\nbegin(1)\nend(1)\nend(0)", module=module) == []
    (item,) = found("begin(0)\nbegin(1)\nend(1)", module=module)
    assert "`v` -> `mte2` 0 is set once more" in item.message


@pytest.mark.parametrize("hidden", ["raise_flags(A)", "for i in stages(n):\n    T.wait_flag('mte2', 'v', 0)"])
def test_nothing_is_said_where_flags_may_hide(hidden: str) -> None:
    assert found(f'T.set_flag("mte2", "v", 0)\n{hidden}') == []
