"""Pipelined loops over both cores, as the compiler's pass makes them; read off its generated code (95acbd7f)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import developer, outputs
from tl2npu.simulator.errors import SimulatorError

SIDE = 32
TURNS = 4
GENERATOR = np.random.default_rng(3)
Q = GENERATOR.standard_normal((SIDE, SIDE)).astype(np.float16)
K = GENERATOR.standard_normal((TURNS * SIDE, SIDE)).astype(np.float16)
L = np.arange(TURNS, dtype=np.int32)
SIGNATURE = (
    f'Q: T.Tensor(({SIDE}, {SIDE}), "float16"), K: T.Tensor(({TURNS * SIDE}, {SIDE}), "float16"), '
    f'L: T.Tensor(({TURNS},), "int32"), C: T.Tensor(({SIDE}, {SIDE}), "float32")'
)

TILES = """
q = T.alloc_shared((32, 32), "float16")
k = T.alloc_shared((32, 32), "float16")
s_l0c = T.alloc_fragment((32, 32), "float32")
s = T.alloc_ub((32, 32), "float32")
p = T.alloc_ub((32, 32), "float16")
p_l1 = T.alloc_shared((32, 32), "float16")
o_l0c = T.alloc_fragment((32, 32), "float32")
o = T.alloc_ub((32, 32), "float32")
acc = T.alloc_ub((32, 32), "float32")
m = T.alloc_ub((32,), "float32")
now = T.alloc_ub((32,), "float32")
T.copy(Q, q)
T.tile.fill(acc, 0.0)
"""
LOOP = "for i in T.Pipelined(4, num_stages=2):\n"
PRODUCT = """
    T.copy(K[i * 32, 0], k)
    T.gemm_v0(q, k, s_l0c, transpose_B=True, init=True)
    T.copy(s_l0c, s)
"""
HAND_BACK = """
    T.reduce_max(s, m, dim=1)
    T.copy(s, p)
    T.copy(p, p_l1)
    T.gemm_v0(p_l1, k, o_l0c, init=True)
    T.copy(o_l0c, o)
    T.tile.add(acc, acc, o)
"""
BY_ROWS = """
    for h in T.serial(32):
        T.tile.mul(acc[h, :], acc[h, :], m[h])
"""
COPIED = """
    T.copy(m, now)
    for a, b in T.Parallel(32, 32):
        acc[a, b] = acc[a, b] * now[a]
"""
STORE = "T.copy(acc, C)\n"


def formula(turns: int = TURNS, by_row: bool = True) -> np.ndarray:
    """``acc = (acc + half(QK') K) * rowmax(QK')``, turn after turn."""
    acc = np.zeros((SIDE, SIDE), np.float32)
    for turn in range(turns):
        k = K[turn * SIDE : (turn + 1) * SIDE].astype(np.float32)
        s = Q.astype(np.float32) @ k.T
        acc += s.astype(np.float16).astype(np.float32) @ k
        if by_row:
            acc *= s.max(axis=1)[:, None]
    return acc


def run(*parts: str, threads: int = 2) -> np.ndarray:
    text = developer(SIGNATURE, "".join((TILES, *parts, STORE)), threads)
    return outputs(text, {"Q": Q, "K": K, "L": L})


def agrees(found: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(found, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stages", [0, 1, 2, 4])
@pytest.mark.parametrize("rows", [BY_ROWS, COPIED])
def test_the_row_vector_of_a_turn_reaches_the_next_part(rows: str, stages: int, threads: int) -> None:
    """``k`` and ``m`` belong to a turn and are used in two parts: both have a version for each stage."""
    found = run(f"for i in T.Pipelined(4, num_stages={stages}):\n", PRODUCT, HAND_BACK, rows, threads=threads)
    assert agrees(found, formula())


def test_a_vector_that_is_stored_by_elements_at_once() -> None:
    """What ``T.Parallel`` writes has a version too."""
    doubled = "    for a in T.Parallel(32):\n        m[a] = m[a] + m[a]\n"
    halved = COPIED.replace("now[a]", "now[a] * 0.5")
    body = HAND_BACK.replace("    T.copy(s, p)\n", doubled + "    T.copy(s, p)\n")
    assert agrees(run(LOOP, PRODUCT, body, halved), formula())


def test_the_last_turns_are_dropped() -> None:
    found = run("for i in T.Pipelined(4, num_stages=3):\n", PRODUCT, HAND_BACK)
    assert agrees(found, formula(3, by_row=False))


def test_what_is_used_outside_has_one_version() -> None:
    """The second turn of a round overwrites the maxima of the first before they are used."""
    assert agrees(run("T.tile.fill(m, 0.0)\n", LOOP.replace("2)", "1)"), PRODUCT, HAND_BACK, COPIED), formula())
    assert not agrees(run("T.tile.fill(m, 0.0)\n", LOOP, PRODUCT, HAND_BACK, COPIED), formula())


def test_a_sum_that_two_parts_change() -> None:
    """Scaled in the first part, added to in the second: with two stages both scales come before both sums."""
    scaled = HAND_BACK.replace("    T.copy(s, p)\n", "    T.tile.mul(acc, acc, 0.5)\n    T.copy(s, p)\n")
    expected = np.zeros((SIDE, SIDE), np.float32)
    both = np.zeros((SIDE, SIDE), np.float32)
    for turn in range(TURNS):
        k = K[turn * SIDE : (turn + 1) * SIDE].astype(np.float32)
        product = (Q.astype(np.float32) @ k.T).astype(np.float16).astype(np.float32) @ k
        expected = expected * 0.5 + product
        both = (both * 0.25 if turn % 2 == 0 else both) + product
    assert agrees(run(LOOP.replace("2)", "1)"), PRODUCT, scaled), expected)
    assert agrees(run(LOOP, PRODUCT, scaled), both)


@pytest.mark.parametrize(
    ("rows", "stages", "stops"),
    [
        ("for a, b in T.Parallel(32, 32):\n        acc[a, b] = acc[a, b] * m[a]", 1, True),
        ("for a, b in T.Parallel(32, 32):\n        acc[a, b] = acc[a, b] * m[a]", 2, True),
        ("for h in T.serial(32):\n        T.tile.sub(acc[h, :], acc[h, :], m[h])", 1, False),
        ("for h in T.serial(32):\n        T.tile.sub(acc[h, :], acc[h, :], m[h])", 2, True),
        ("for h in T.serial(32):\n        T.tile.div(acc[h, :], acc[h, :], m[h])", 2, True),
        ("for h in T.serial(32):\n        T.tile.add(acc[h, :], acc[h, :], m[h])", 2, False),
    ],
)
def test_elements_of_another_turn(rows: str, stages: int, stops: bool) -> None:
    """Generated: ``m.GetValue(i * 32 + 2 * row)`` of ``T.Parallel``, ``m.GetValue(row)`` of sub and div."""
    parts = (f"for i in T.Pipelined(4, num_stages={stages}):\n", PRODUCT, HAND_BACK, f"    {rows}\n")
    if not stops:
        run(*parts)
        return
    with pytest.raises(SimulatorError, match="elements of m"):
        run(*parts)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("if i > 1:\n        T.tile.mul(s, s, 2.0)", "also outside of it"),
        ("x = L[i]\n    T.tile.mul(s, s, T.float32(x))", "not defined"),
        ("x = T.float32(i)\n    T.tile.mul(s, s, x)", "not defined"),
    ],
)
def test_statements_that_the_pass_does_not_keep(line: str, message: str) -> None:
    with pytest.raises(SimulatorError, match=message):
        run(LOOP, PRODUCT, f"    T.tile.add(s, s, 1.0)\n    {line}\n", HAND_BACK)


def test_a_named_number_is_written_out() -> None:
    named = PRODUCT.replace("T.copy(K[i * 32, 0], k)", "row = i * 32\n    T.copy(K[row, 0], k)")
    assert agrees(run(LOOP, named, HAND_BACK, COPIED), formula())


def test_turns_that_depend_on_the_block() -> None:
    with pytest.raises(SimulatorError, match="multiplies it by the stages"):
        run("for i in T.Pipelined(cid + 4, num_stages=2):\n", PRODUCT, HAND_BACK)


@pytest.mark.parametrize(("stages", "stops"), [(1, False), (2, True)])
def test_a_tile_that_is_loaded_ahead_and_used_outside(stages: int, stops: bool) -> None:
    """Generated: both loads of ``k`` in front of the first product, into one tile; behind it with one stage."""
    turn = "    T.copy(K[i * 32, 0], k)\n    T.gemm_v0(q, k, s_l0c, transpose_B=True, init=(i == 0))\n"
    parts = (f"for i in T.Pipelined(4, num_stages={stages}):\n", turn)
    outside = "T.gemm_v0(q, k, s_l0c, transpose_B=True)\nT.copy(s_l0c, acc)\n"
    if stops:
        run(*parts, "T.copy(s_l0c, acc)\n")
        with pytest.raises(SimulatorError, match="k is used outside of the pipelined loop"):
            run(*parts, outside)
    else:
        total = sum(Q.astype(np.float32) @ K[n * 32 :][:32].astype(np.float32).T for n in (0, 1, 2, 3, 3))
        assert np.allclose(run(*parts, outside), total, atol=1e-2)
