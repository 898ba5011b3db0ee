"""Two processes with counting flags: which synchronisation orders what."""

from __future__ import annotations

import itertools

import pytest

from tests.kernel.support import read
from tl2npu.kernel.flags.order import UNROLL, Event, Outcome, events, run
from tl2npu.kernel.model import Side, Stmt, Sync


def program(text: str) -> list[Event]:
    """``w`` / ``r`` a hand-over, ``+1`` / ``-1`` set / wait a flag, ``|`` a barrier."""
    kinds = {"+": "set", "-": "wait", "w": "write", "r": "read", "|": "barrier"}
    return [Event(kinds[word[0]], word[1:] or None) for word in text.split()]  # type: ignore[arg-type]


def outcome(cube: str, vector: str) -> Outcome:
    return run(program(cube), program(vector))


def clean(found: Outcome, key: str) -> bool:
    """Every read of the hand-over sees its own write, and the programs end."""
    verdict = found.verdicts[key]
    return not (found.deadlock or verdict.unordered or verdict.overtaken or verdict.unmatched)


def safe(found: Outcome, key: str) -> bool:
    """And no write comes before the read of the value that it destroys."""
    return clean(found, key) and not found.verdicts[key].overwritten


BITS = (False, True)


@pytest.mark.parametrize(("has_set", "has_wait"), list(itertools.product(BITS, BITS)))
def test_one_hand_over(has_set: bool, has_wait: bool) -> None:
    found = outcome("wX" + " +0" * has_set, "-0 " * has_wait + "rX")
    assert found.deadlock == (has_wait and not has_set)
    assert clean(found, "X") == (has_set and has_wait)


@pytest.mark.parametrize("forward", list(itertools.product(BITS, BITS)))
@pytest.mark.parametrize("back", list(itertools.product(BITS, BITS)))
@pytest.mark.parametrize("primed", BITS)
def test_a_one_way_loop(forward: tuple[bool, bool], back: tuple[bool, bool], primed: bool) -> None:
    """``wait free; write; set full`` against ``wait full; read; set free``, four times; ``primed``: free at first."""
    cube = ("-1 " * back[0] + "wX " + "+0 " * forward[0]) * 4
    vector = "+1 " * primed + ("-0 " * forward[1] + "rX " + "+1 " * back[1]) * 4
    found = outcome(cube, vector)
    starved = back[0] and (not back[1] or (forward[1] and not primed))
    stuck = (forward[1] and not forward[0]) or starved
    assert found.deadlock == stuck
    if not stuck:
        assert clean(found, "X") == all(forward)
        assert safe(found, "X") == (all(forward) and all(back) and primed)


@pytest.mark.parametrize("bits", list(itertools.product(BITS, repeat=4)))
def test_a_two_way_loop(bits: tuple[bool, ...]) -> None:
    """Cube writes X and reads Y, vector reads X and writes Y: the cycle is its own back pressure."""
    set_x, wait_x, set_y, wait_y = bits
    cube = ("wX " + "+0 " * set_x + "-1 " * wait_y + "rY ") * 4
    vector = ("-0 " * wait_x + "rX wY " + "+1 " * set_y) * 4
    found = outcome(cube, vector)
    assert found.deadlock == ((wait_x and not set_x) or (wait_y and not set_y))
    if not found.deadlock:
        assert clean(found, "X") == (set_x and wait_x)
        assert clean(found, "Y") == (set_y and wait_y)
        assert (safe(found, "X") and safe(found, "Y")) == all(bits)


def test_the_vector_reads_its_result_before_it_makes_the_operand() -> None:
    found = outcome("-1 rY wX +0 " * 2, "-0 rX wY +1 " * 2)
    assert found.deadlock


@pytest.mark.parametrize("order", list(itertools.permutations(["wX", "+0", "-1"])))
def test_orders_of_one_core(order: tuple[str, ...]) -> None:
    """A flag that is set before the write orders nothing."""
    found = outcome(" ".join(order), "+1 -0 rX")
    assert not found.deadlock
    assert clean(found, "X") == (order.index("wX") < order.index("+0"))


def test_a_flag_counts() -> None:
    assert safe(outcome("wX +0 +0", "-0 -0 rX"), "X")
    assert outcome("wX +0", "-0 -0 rX").deadlock
    assert not outcome("wX +0 +0", "-0 rX").deadlock


def test_flags_of_two_numbers_do_not_mix() -> None:
    assert outcome("wX +0", "-1 rX").deadlock


def test_a_core_does_not_hear_its_own_flag() -> None:
    assert outcome("wX +0 -0", "rX").deadlock


def test_a_read_of_a_later_value() -> None:
    found = outcome("wX wX +0", "-0 rX rX").verdicts["X"]
    assert found.overtaken
    assert not found.unordered


def test_a_read_of_the_value_of_the_iteration_before() -> None:
    """A flag that was set once at the start shifts every wait: read i is ordered after write i - 1 only."""
    found = outcome("+0 " + "wX +0 " * 3, "-0 rX " * 3)
    assert found.verdicts["X"].unordered


def test_reads_and_writes_of_different_number() -> None:
    assert outcome("wX +0 wX +0", "-0 -0 rX").verdicts["X"].unmatched
    assert outcome("wX +0", "-0 rX rX").verdicts["X"].unmatched


def test_barriers_order_both_ways() -> None:
    assert safe(outcome("wX | wX |", "| rX | rX"), "X") is False
    assert safe(outcome("wX | | wX | |", "| rX | | rX |"), "X")
    assert outcome("wX | |", "| rX").deadlock


def test_ordering_is_transitive_over_other_hand_overs() -> None:
    """X is read behind the wait for Y, which was set behind the write of X."""
    found = outcome("wX wY +0", "-0 rY rX")
    assert clean(found, "X")
    assert clean(found, "Y")


@pytest.mark.parametrize("key", ["X", "Y"])
def test_a_missing_core(key: str) -> None:
    found = outcome("wX wY", "")
    assert found.verdicts[key].unmatched


# events of a kernel --------------------------------------------------------------------------------------------------


def flags(stmt: Stmt, side: Side) -> list[Event]:
    return [Event("set", stmt.text("flag") or stmt.text("pipe"))] if isinstance(stmt, Sync) and side else []


def unrolled(body: str, side: Side = Side.CUBE) -> int:
    return len(events(read(body).body, side, flags))


FLAG = 'T.set_cross_flag("FIX", 0)'


def test_loops_are_unrolled_a_few_times() -> None:
    assert unrolled(f"for i in range(100):\n    {FLAG}") == UNROLL
    assert unrolled(f"for i in range(2):\n    {FLAG}") == 2
    assert unrolled(f"for i in range(0):\n    {FLAG}") == 0
    assert unrolled(f"for i in range(M):\n    for j in range(2):\n        {FLAG}") == 2 * UNROLL


def test_a_scope_of_the_other_core_is_left_out() -> None:
    body = f'with T.Scope("C"):\n    {FLAG}\nwith T.Scope("V"):\n    {FLAG}\n    {FLAG}'
    assert unrolled(body, Side.CUBE) == 1
    assert unrolled(body, Side.VECTOR) == 2


def test_both_sides_of_a_branch_and_macros_count() -> None:
    assert unrolled(f"if cid:\n    {FLAG}\nelse:\n    {FLAG}") == 2
    kernel = read("signal()\nsignal()", factory=f"@T.macro\ndef signal():\n    {FLAG}")
    assert len(events(kernel.body, Side.CUBE, flags)) == 2


@pytest.mark.parametrize(
    ("turns", "condition", "count"),
    [
        ("4", "k > 0", 2),  # three turns stand for all
        ("n", "k >= 1", 2),
        ("n", "0 != k", 2),
        ("n", "k == 0", 1),
        ("2", "k == 1", 1),
        ("2", "k < 0", 0),
        ("3", "k % 2 == 0", 2),
        ("n", "k % 2 == 0", 3),  # not known of later turns: both arms
        ("n", "k == 100", 3),
        ("n", "k < n - 1", 3),
        ("n", "A[0, k] > 0", 3),
    ],
)
def test_a_branch_that_the_turn_decides_is_taken_where_it_holds(turns: str, condition: str, count: int) -> None:
    body = f"for k in range({turns}):\n    if {condition}:\n        {FLAG}"
    assert len(events(read(body).body, Side.CUBE, flags)) == count
