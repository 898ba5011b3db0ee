"""Hand-overs between the cores: what the compiler rejects, what hangs, which text order is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.kernels import developer, outputs
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import For
from tl2npu.simulator.lowering.cross_sync import meeting
from tl2npu.simulator.machine.launch import Deadlock

M, N = 32, 64
GENERATOR = np.random.default_rng(3)
L = GENERATOR.standard_normal((M, M)).astype(np.float16)
R = GENERATOR.standard_normal((M, N)).astype(np.float16)
PRODUCT = L.astype(np.float32) @ R.astype(np.float32)
SIGNATURE = 'L: T.Tensor((M, M), "float16"), R: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float32")'
BUFFERS = """
l = T.alloc_L1((M, M), "float16")
r = T.alloc_L1((M, N), "float16")
h = T.alloc_ub((M, M), "float16")
p = T.alloc_L0C((M, N), "float32")
q = T.alloc_L0C((M, N), "float32")
x = T.alloc_ub((M, N), "float32")
y = T.alloc_ub((M, N), "float32")
z = T.alloc_ub((M, N), "float32")
T.copy(R, r)
T.copy(L, h)
"""


def _run(body: str, reading: str = "actual", threads: int = 2) -> np.ndarray:
    return outputs(developer(SIGNATURE, BUFFERS + body, threads), {"L": L, "R": R}, reading)


FORWARD = """
T.copy(h, l)
T.gemm_v0(l, r, p, init=True)
T.copy(p, x)
T.tile.add(y, x, x)
T.copy(y, C)
"""
GEMM_FIRST = """
T.gemm_v0(l, r, p, init=True)
T.copy(h, l)
T.copy(p, x)
T.tile.add(y, x, x)
T.copy(y, C)
"""
RESULT_FIRST = """
T.gemm_v0(l, r, p, init=True)
T.copy(p, x)
T.tile.add(y, x, x)
T.copy(y, C)
T.copy(h, l)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("reading", ["ideal", "actual"])
@pytest.mark.parametrize("body", [FORWARD, GEMM_FIRST], ids=["operand first", "gemm first (g2_order)"])
def test_text_order_of_the_two_cores_does_not_matter(body: str, reading: str, threads: int) -> None:
    np.testing.assert_allclose(_run(body, reading, threads), PRODUCT * 2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("reading", ["ideal", "actual"])
def test_a_result_that_is_read_before_its_operand_is_made_hangs(reading: str) -> None:
    """g9_rev2: the vector core waits for the cube core, which waits for the vector core; both lines are named."""
    with pytest.raises(Deadlock, match=r"(?s)cube core.*waits for cross flag.*vector core.*waits for cross flag"):
        _run(RESULT_FIRST, reading)


HELD = GEMM_FIRST.replace("T.gemm_v0", "T.copy(L, l)\nT.gemm_v0")
HELD = HELD.replace("T.copy(h, l)", "T.tile.mul(h, h, 2.0)\nT.copy(h, l)")


def test_what_the_tile_held_before() -> None:
    """The author means ``L``; the compiler loads twice that in front of the gemm (seen in its output)."""
    np.testing.assert_allclose(_run(HELD, "ideal"), PRODUCT * 2, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(_run(HELD), PRODUCT * 4, rtol=1e-3, atol=1e-3)


TWO_DESTINATIONS = FORWARD.replace("T.copy(p, x)", "T.copy(p, x)\nT.copy(p, z)")
TWO_SOURCES = FORWARD.replace("T.copy(p, x)", "T.copy(p, x)\nT.gemm_v0(l, r, q, init=True)\nT.copy(q, x)")
SAME_PAIR = FORWARD.replace("T.copy(p, x)", "T.copy(p, x)\nT.copy(p, x)")


@pytest.mark.parametrize("body", [TWO_DESTINATIONS, TWO_SOURCES, SAME_PAIR], ids=["two_dst", "two_src", "same_pair"])
def test_a_buffer_in_two_hand_overs_is_rejected(body: str) -> None:
    with pytest.raises(SimulatorError, match="in two hand-overs"):
        _run(body)


UNREAD = """
T.copy(h, l)
T.gemm_v0(l, r, p, init=True)
T.copy(p, x)
for i in T.serial(M):
    for j in T.serial(N):
        y[i, j] = x[i, j]
T.copy(y, C)
"""


PASSED_ON = """
T.copy(h, l)
s = T.alloc_L1((M, N), "float16")
g = T.alloc_ub((M, N), "float16")
T.gemm_v0(l, r, p, init=True)
T.copy(p, g)
T.copy(g, s)
{}
T.gemm_v0(l, s, q, init=True)
T.copy(q, C)
"""


def test_a_result_that_goes_on_to_the_cube_core_is_never_brought_back() -> None:
    """The copy to L1 is a store to a workspace when the compiler looks for a reader."""
    twice = L.astype(np.float32) @ PRODUCT.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(_run(PASSED_ON.format(""), "ideal"), twice, rtol=1e-2, atol=1e-2)
    with pytest.raises(SimulatorError, match="Mismatch in sync points"):
        _run(PASSED_ON.format(""))


def test_a_result_that_only_scalars_read_is_never_brought_back() -> None:
    """2.4: only whole-tile calls count as readers; then the numbers of writers and readers differ."""
    with pytest.raises(SimulatorError, match="Mismatch in sync points"):
        _run(UNREAD)
    np.testing.assert_allclose(_run(UNREAD, "ideal"), PRODUCT, rtol=1e-3, atol=1e-3)


def _nest(counts: list[int]) -> list[For]:
    return [For(Var(f"i{n}"), 0, count, []) for n, count in enumerate(counts)]


@given(st.lists(st.integers(2, 4), max_size=4), st.lists(st.integers(2, 4), max_size=4))
def test_flags_are_set_as_often_as_they_are_waited_for(cube: list[int], vector: list[int]) -> None:
    """Where the loops of both sides have a common number of turns, the flags stand there."""
    left, right = meeting(_nest(cube), _nest(vector))
    assert np.prod(cube[:left], dtype=int) == np.prod(vector[:right], dtype=int)


@given(st.lists(st.integers(2, 4), max_size=4), st.lists(st.integers(2, 4), max_size=4))
def test_flags_stand_as_deep_as_possible(cube: list[int], vector: list[int]) -> None:
    left, right = meeting(_nest(cube), _nest(vector))
    products = [{int(np.prod(side[:n], dtype=int)) for n in range(len(side) + 1)} for side in (cube, vector)]
    common = max(products[0] & products[1])
    assert int(np.prod(cube[:left], dtype=int)) == common
    assert int(np.prod(vector[:right], dtype=int)) == common


def test_a_loop_of_unknown_length_has_to_be_shared() -> None:
    n = Var("n")
    shared = For(Var("k"), 0, n, [])
    assert meeting([shared], [For(Var("k"), 0, n, [])]) == (1, 1)
    with pytest.raises(SimulatorError, match="not constant"):
        meeting([shared], [For(Var("other"), 0, n, [])])


def test_loops_are_shared_by_the_name_that_the_source_gives_them() -> None:
    """Two loops over `k` in one kernel have variables of their own, but the compiler compares names."""
    n = Var("n")
    first, second = (For(Var(name, hint="k"), 0, n, []) for name in ("k", "k_1"))
    assert meeting([first], [second]) == (1, 1)
    with pytest.raises(SimulatorError, match="over k whose"):
        meeting([first], [For(Var("k_1", hint="k_1"), 0, n, [])])
