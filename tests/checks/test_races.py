"""Flags between the cores, run (facts 2: g9_*, g7_*, gx_*)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import LANDING, PRODUCT, STEP, STORE, TWO_WAY, check, loop

ONE_WAY = PRODUCT + "T.copy(c, x)\nT.tile.add(y, y, x)\n"


def test_once_is_safe() -> None:
    assert check("T.tile.fill(y, 0.0)", ONE_WAY, STORE) == []


@pytest.mark.parametrize(
    "head",
    [
        "for k in T.serial(4):",
        "for k in T.serial(2):",
        "for k in T.serial(n):",
        "for k in T.serial(cid + 1):",
        "for k in T.Pipelined(4, num_stages=2):",
    ],
)
def test_cube_to_vector_in_a_loop(head: str) -> None:
    """However long the loop is, it may have a second turn."""
    assert check("T.tile.fill(y, 0.0)", loop(ONE_WAY, head), STORE, args="n") == ["TL848"]


def test_a_loop_of_one_step() -> None:
    assert check("T.tile.fill(y, 0.0)", loop(ONE_WAY, "for k in T.serial(1):"), STORE) == []


def test_vector_to_cube_in_a_loop() -> None:
    step = """
    T.tile.fill(h, 1.0)
    T.copy(h, l)
    T.gemm_v0(l, r, c, init=(k == 0))
    """
    end = "T.copy(c, x)\nT.tile.exp(y, x)"
    assert check("T.copy(B[0, 0], r)", loop(step), end, STORE) == ["TL848"]


def test_an_answer_under_a_condition() -> None:
    """What comes back only where data say so orders nothing where they do not; under the same condition it does."""
    there = "T.tile.fill(h, 1.0)\nT.copy(h, l)\nT.gemm_v0(l, r, c, init=True)\n"
    back = "T.copy(c, x)\nT.tile.add(y, y, x)\n"

    def under(head: str, text: str) -> str:
        return f"{head}\n" + "".join(f"    {line}\n" for line in text.splitlines())

    start = ("T.tile.fill(y, 0.0)", "T.copy(B[0, 0], r)")
    data = "if B[k, 0] > 0:"
    assert check(*start, loop(there + back), STORE) == []
    assert check(*start, loop(there + under(data, back)), STORE) == ["TL848"]
    assert check(*start, loop(under(data, there + back)), STORE) == []
    assert check(*start, loop(there + under("if k > 0:", back)), STORE) == []  # all turns but one


def test_accumulating_in_the_cube_core() -> None:
    step = """
    T.copy(A[cid * 32, 0], l)
    T.copy(B[0, 0], r)
    T.gemm_v0(l, r, c, init=(k == 0))
    """
    assert check(loop(step), "T.copy(c, x)\nT.tile.exp(y, x)", STORE) == []


@pytest.mark.parametrize("head", ["for k in T.serial(4):", "for k in T.Pipelined(4, num_stages=2):"])
def test_attention_goes_both_ways(head: str) -> None:
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE) == []


def test_attention_over_a_length_known_at_run_time() -> None:
    loops = loop(STEP, "for k in T.serial(cid + 1):")
    assert check(TWO_WAY, LANDING, loops, STORE) == []


def test_the_cube_part_may_stand_before_the_vector_part() -> None:
    step = """
    T.copy(B[0, 0], r)
    T.gemm_v0(l, r, c, transpose_B=True, init=True)
    T.copy(c, x)
    T.gemm_v0(p, q, o, init=True)
    T.copy(o, z2)
    T.tile.exp(z, x)
    T.copy(z, h)
    T.copy(h, p)
    T.tile.add(y, y, z2)
    """
    assert check(TWO_WAY, LANDING, loop(step), STORE) == []


def test_waiting_for_each_other() -> None:
    step = """
    T.gemm_v0(p, q, o, init=True)
    T.copy(o, z2)
    T.tile.add(y, y, z2)
    T.tile.exp(z, y)
    T.copy(z, h)
    T.copy(h, p)
    """
    assert check(TWO_WAY, LANDING, loop(step), STORE) == ["TL848"]
    assert check(TWO_WAY, LANDING, step, STORE) == ["TL848"]


def test_a_cycle_that_leaves_one_tile_out() -> None:
    """Each step hands c over and takes p; the second result o is taken only after the next p was made."""
    step = STEP.replace("T.tile.add(y, y, z2)\n", "")
    late = "T.tile.add(y, y, z2)"
    first = check(TWO_WAY, LANDING, loop(late + STEP.replace("T.tile.add(y, y, z2)", "")), STORE)
    assert first == ["TL848"]
    assert check(TWO_WAY, LANDING, loop(step + late), STORE) == []


def test_loops_of_the_two_cores_apart() -> None:
    cube = """
    T.copy(B[0, 0], r)
    T.gemm_v0(l, r, c, transpose_B=True, init=True)
    T.copy(c, x)
    T.gemm_v0(p, q, o, init=True)
    T.copy(o, z2)
    """
    vector = """
    T.tile.exp(z, x)
    T.copy(z, h)
    T.copy(h, p)
    T.tile.add(y, y, z2)
    """
    assert check(TWO_WAY, LANDING, loop(cube), loop(vector), STORE) == []
    dynamic = [loop(cube, "for k in T.serial(cid):"), loop(vector, "for k in T.serial(cid):")]
    assert check(TWO_WAY, LANDING, *dynamic, STORE) == []
    other = [loop(cube, "for k in T.serial(cid):"), loop(vector, "for n in T.serial(cid):")]
    assert check(TWO_WAY, LANDING, *other, STORE) == ["TL867"]


def test_persistent_tiles() -> None:
    tile = STEP.replace("T.copy(B", "T.copy(A[t * 32, 0], l)\nT.copy(B")
    assert check(TWO_WAY, LANDING, loop(tile, "for t in T.serial(6):"), STORE) == []
    once = loop(loop(ONE_WAY, "for k in T.serial(1):"), "for t in T.serial(6):")
    assert check("T.tile.fill(y, 0.0)", once, STORE) == ["TL848"]
