"""Pipelined loops with hand-overs (facts 2, E23)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import LANDING, STEP, STORE, TWO_WAY, check, loop


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("for k in T.Pipelined(4, num_stages=2):", []),
        ("for k in T.Pipelined(4, num_stages=4):", []),
        ("for k in T.Pipelined(4, num_stages=3):", ["TL875"]),
        ("for k in T.Pipelined(3, num_stages=2):", ["TL875"]),
        ("for k in T.Pipelined(3, num_stages=1):", []),
        ("for k in T.Pipelined(3):", []),
        ("for k in T.Pipelined(1, 5, num_stages=2):", ["TL875"]),
        ("for k in T.Pipelined(1, 5, num_stages=1):", []),
        ("for k in T.Pipelined(cid + 1, num_stages=2):", ["TL876"]),
        ("for k in T.Pipelined(cid + 1, num_stages=1):", []),
        ("for k in T.Pipelined(n, num_stages=2):", []),
    ],
)
def test_steps_and_stages(head: str, found: list[str]) -> None:
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE, args="n") == found


@pytest.mark.parametrize(
    ("call", "found"), [("factory(6, 2)", []), ("factory(6, 4)", ["TL875"]), ("factory(6, s)", [])]
)
def test_steps_and_stages_of_a_call(call: str, found: list[str]) -> None:
    head = "for k in T.Pipelined(n, num_stages=depth):"
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE, args="n, depth", tail=call) == found


def test_a_remainder_is_harmless_where_only_the_cube_works() -> None:
    cube = "T.copy(A[cid * 32, 0], l)\nT.gemm_v0(l, r, c, init=(k == 0))"
    body = ("T.copy(B[0, 0], r)", loop(cube, "for k in T.Pipelined(5, num_stages=2):"))
    assert check(*body, "T.copy(c, x)\nT.tile.exp(y, x)", STORE) == []


def test_one_cross_core_pipeline() -> None:
    head = "for k in T.Pipelined(4, num_stages=2):"
    second = STEP
    for name in ("c", "x", "h", "p", "o", "z2"):
        second = second.replace(f"({name},", f"({name}_,").replace(f", {name})", f", {name}_)")
        second = second.replace(f", {name},", f", {name}_,")
    copies = """
    c_ = T.alloc_fragment((32, 64), "float32")
    o_ = T.alloc_fragment((32, 64), "float32")
    x_ = T.alloc_ub((32, 64), "float32")
    z2_ = T.alloc_ub((32, 64), "float32")
    h_ = T.alloc_ub((32, 64), "float16")
    p_ = T.alloc_shared((32, 64), "float16")
    """
    both = (loop(STEP, head), loop(second, head))
    assert check(TWO_WAY, LANDING, copies, *both, STORE) == ["TL878"]
    assert check(TWO_WAY, LANDING, copies, both[0], loop(second), STORE) == []


def test_state_that_two_stages_start_from() -> None:
    head = "for k in T.Pipelined(4, num_stages=2):"
    state = STEP.replace("T.tile.exp(z, x)", "T.tile.add(z, x, y)")
    assert check(TWO_WAY, LANDING, loop(state, head), STORE) == ["TL877"]
    assert check(TWO_WAY, LANDING, loop(state), STORE) == []


def test_what_no_step_changes_is_no_state() -> None:
    """Two stages read ``w``, which was filled before the loop: every copy of it holds the same."""
    head = "for k in T.Pipelined(4, num_stages=2):"
    reads = STEP.replace("T.tile.exp(z, x)", "T.tile.add(z, x, w)") + "T.tile.add(y, y, w)\n"
    tile = 'w = T.alloc_ub((32, 64), "float32")\nT.tile.fill(w, 1.0)\n'
    assert check(TWO_WAY, LANDING, tile, loop(reads, head), STORE) == []
    assert check(TWO_WAY, LANDING, tile, loop(reads + "T.tile.add(w, w, y)\n", head), STORE) == ["TL877"]
