"""Which tiles hold a value that is still wanted."""

from __future__ import annotations

import pytest

from tests.kernel.support import block, read
from tl2npu.kernel.memory.liveness import Liveness, written_while_wanted

TILES = """
x = T.alloc_ub((bm, 64), "float32")
y = T.alloc_ub((bm, 64), "float32")
s = T.alloc_ub((bm,), "float32")
T.tile.fill(x, 1.0)
T.tile.fill(y, 2.0)
T.tile.fill(s, 3.0)
"""


def met(after: str) -> bool:
    """Whether ``y`` is written in front of ``after`` while the value of ``x`` is wanted."""
    body = "\n".join((block(TILES, 0), block(after, 0), "T.copy(x, A[0, 0])\nT.copy(y, O[0, 0])\nT.copy(s, A[0, 0])"))
    kernel = read(body)
    x, y = kernel.buffers["x"], kernel.buffers["y"]
    return any(written_while_wanted(step, y, x) for step in Liveness(kernel).steps)


def in_loop(head: str, body: str) -> str:
    return head + "\n" + block(body, 4)


OVERWRITTEN = "T.tile.fill(x, 4.0)\nT.copy(x, A[0, 0])"
ROWS = "T.tile.fill(x[k, :], 4.0)"


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("", True),
        (OVERWRITTEN, False),
        ("T.tile.fill(x[0, :], 4.0)", True),
        ("T.tile.add(x, x, 1.0)", True),
        (in_loop("if cid > 0:", OVERWRITTEN), True),
        (in_loop("if cid > 0:", OVERWRITTEN) + "\n" + in_loop("else:", OVERWRITTEN), False),
        # a loop that surely runs: for sizes, at least once
        (in_loop("for k in T.serial(4):", OVERWRITTEN), False),
        (in_loop("for k in T.serial(N):", OVERWRITTEN), False),
        (in_loop("for k in T.serial(N):", "T.tile.fill(x, 4.0)"), False),
        # and one that may not
        (in_loop("for k in T.serial(N - 1):", OVERWRITTEN), True),
        (in_loop("for k in T.serial(N - 1):", "T.tile.fill(x, 4.0)"), True),
        (in_loop("while cid > 0:", OVERWRITTEN), True),
        # row by row
        (in_loop("for k in T.serial(bm):", ROWS), False),
        (in_loop("for k in T.serial(bm - 1):", ROWS), True),
        (in_loop("for k in T.serial(1, bm):", ROWS), True),
        # element by element
        (in_loop("for i, j in T.Parallel(bm, 64):", "x[i, j] = s[i]"), False),
        (in_loop("for i, j in T.Parallel(bm, 32):", "x[i, j] = s[i]"), True),
        (in_loop("for i, j in T.Parallel(bm, 64):", "x[i, j] = x[i, j] + s[i]"), True),
        (in_loop("for i, j in T.Parallel(bm, 64):", "x[i, j] = s[i]\nx[i, j] = x[i, j] * 2.0"), False),
        (in_loop("for i, j in T.Parallel(bm, 64):", "x[i, j] = s[i]\nx[i, j] = x[0, j] * 2.0"), True),
    ],
)
def test_a_tile_that_is_written_before_it_is_read_again(after: str, wanted: bool) -> None:
    assert met(after) is wanted


def test_a_range_that_names_no_row_may_be_empty() -> None:
    """``x`` is only written if the other range has a turn."""
    assert not met(in_loop("for k, i, j in T.Parallel(N, bm, 64):", "x[i, j] = s[i]"))
    assert met(in_loop("for k, i, j in T.Parallel(N - 1, bm, 64):", "x[i, j] = s[i]"))


def test_what_a_turn_leaves_is_wanted_by_the_next() -> None:
    """``y`` is filled behind the reading of ``x`` in every turn: is ``x`` wanted there?"""
    turn = "T.copy(x, A[0, 0])\nT.tile.fill(y, 4.0)\nT.copy(y, O[0, 0])"
    for first, wanted in (("", True), ("T.tile.fill(x, 0.0)\n", False)):
        kernel = read(TILES.replace("T.tile.fill(y, 2.0)\n", "") + in_loop("for k in T.serial(4):", first + turn))
        x, y = kernel.buffers["x"], kernel.buffers["y"]
        assert any(written_while_wanted(step, y, x) for step in Liveness(kernel).steps) is wanted
        assert Liveness(kernel).conflicts(x, y) is wanted


@pytest.mark.parametrize(("init", "kept"), [("k == 0", False), ("k == 1", True), ("False", True), ("True", False)])
def test_a_sum_that_begins_anew_in_the_first_turn(init: str, kept: bool) -> None:
    kernel = read(
        f"""
        a = T.alloc_L1((32, 32), "float16")
        b = T.alloc_L1((32, 32), "float16")
        c = T.alloc_L0C((32, 32), "float32")
        for k in T.serial(4):
            T.copy(A[k * 32, 0], a)
            T.copy(A[0, k * 32], b)
            T.gemm_v0(a, b, c, init=({init}))
        T.copy(c, O[0, 0])
        """
    )
    liveness = Liveness(kernel)
    assert {tile.name for tile in liveness.unwritten} == ({"c"} if kept else set())


INSIDE = "for i, j in T.Parallel(bm, 64):"


@pytest.mark.parametrize(
    ("loop", "meet"),
    [
        (in_loop(INSIDE, "x[i, j] = y[i, j] * 2.0"), False),
        (in_loop(INSIDE, "x[i, j] = y[i, 63 - j]"), True),
        (in_loop(INSIDE, "x[i, j] = 0.0\nA[i, j] = y[i, j]"), True),
        (in_loop(INSIDE, "A[i, j] = y[i, j]\nx[i, j] = 0.0"), False),
        (in_loop(INSIDE, "x[i, j] = 0.0\ny[i, j] = x[i, j]"), False),
        # elements that several iterations touch: the next one reads what this one has written
        (in_loop(INSIDE, "A[i, j] = v[i]\ns[i] = x[i, j]"), True),
        (in_loop("for k in T.serial(4):", "T.tile.add(z, y, 1.0)\nT.tile.fill(x, 0.0)"), True),
        (in_loop("for k in T.serial(bm):", "T.tile.add(z[k, :], y[k, :], 1.0)\nT.tile.fill(x[k, :], 0.0)"), False),
    ],
)
def test_the_order_in_a_loop_that_is_one_step(loop: str, meet: bool) -> None:
    """``x`` and ``y``, or ``s`` and ``v``: is one of them written while the other one's value is wanted?"""
    more = TILES.replace("T.tile.fill(x, 1.0)\n", "").replace("T.tile.fill(s, 3.0)\n", "")
    more += 'v = T.alloc_ub((bm,), "float32")\nz = T.alloc_ub((bm, 64), "float32")\nT.tile.fill(v, 3.0)\n'
    kernel = read(more + loop)
    one, other = (kernel.buffers[name] for name in (("s", "v") if "v[i]" in loop else ("x", "y")))
    assert Liveness(kernel).conflicts(one, other) is meet
