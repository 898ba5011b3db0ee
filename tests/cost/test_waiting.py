"""Two cores that hand tiles to each other: how long the busier one waits, worked out by hand."""

from __future__ import annotations

import pytest

from tests.cost.test_estimate import one
from tl2npu.cost.estimate import Schedule, Step

CHAIN = Schedule(
    tuple(Step(10.0, of_cube, part) for part, of_cube in enumerate((True, False, True, False))),
    frozenset({(1, 0), (2, 1), (3, 2)}),
)
"""Cube, vector, cube, vector; each needs what the one before has made, as in attention."""


@pytest.mark.parametrize(
    ("turns", "stages", "cycles"),
    [
        (1, 1, 40),  # one after the other
        (2, 1, 70),  # the first part of the next turn runs beside the last of this one: 30 more
        (100, 1, 40 + 99 * 30),
        (2, 2, 50),  # 0-10-20, 10-20-30, 20-30-40, 30-40-50: each core works without a gap after its start
        (4, 2, 90),
        (100, 2, 50 + 49 * 40),  # as much as a core has to do: 20 a turn
        (100, 4, 90 + 24 * 80),
    ],
)
def test_a_chain_of_four_parts(turns: int, stages: int, cycles: int) -> None:
    assert CHAIN.busiest == 20
    assert CHAIN.cycles(turns, stages) == cycles


def test_a_part_that_needs_nothing_hides_the_wait() -> None:
    """The vector core has 10 cycles of work between handing its tile over and reading the product."""
    steps = (*CHAIN.steps[:2], Step(10.0, False, 1), *CHAIN.steps[2:])
    found = Schedule(steps, frozenset({(1, 0), (3, 1), (4, 3)}))
    assert found.cycles(1, 1) == 40
    assert found.busiest == 30
    assert found.cycles(100, 1) == 40 + 99 * 30


ATTENTION = """
import tilelang
import tilelang.language as T

CONFIGS = dict.fromkeys(("tl.ascend_auto_cv_combine", "tl.ascend_auto_sync"), True)

@tilelang.jit(out_idx=[2], pass_configs=CONFIGS)
def make(N=4096, stages=1):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((N, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as (cid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            s_l0c = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((64, 64), "float32")
            p = T.alloc_shared((64, 64), "float16")
            p_l1 = T.alloc_shared((64, 64), "float16")
            o_l0c = T.alloc_fragment((64, 64), "float32")
            o = T.alloc_shared((64, 64), "float32")
            acc = T.alloc_shared((64, 64), "float32")
            T.copy(A, a)
            T.tile.fill(acc, 0.0)
            for k in T.Pipelined(N // 64, num_stages={stages}):
                T.copy(B[k * 64, 0], b)
                T.gemm_v0(a, b, s_l0c, transpose_B=True, init=True)
                T.copy(s_l0c, s)
                T.tile.exp(s, s)
                T.copy(s, p)
                T.copy(p, p_l1)
                T.gemm_v0(p_l1, a, o_l0c, init=True)
                T.copy(o_l0c, o)
                T.tile.add(acc, acc, o)
            T.copy(acc, C)

    return main

make({call})
"""


def test_stages_of_a_kernel() -> None:
    in_turns = one(ATTENTION.format(stages="0", call=""))
    staged = one(ATTENTION.format(stages="2", call=""))
    assert in_turns.loads == staged.loads
    assert in_turns.waiting is not None
    assert staged.waiting is not None
    assert in_turns.waiting > 0.15 * in_turns.expected
    assert staged.waiting < 0.02 * staged.expected
    assert in_turns.expected == in_turns.serial + in_turns.waiting


def test_a_condition_on_the_sizes_decides() -> None:
    """63 tiles do not come out even in stages of two: such a loop has none."""
    text = ATTENTION.format(stages="2 if N % 128 == 0 else 0", call="{}")
    even, odd = one(text.format(4096)), one(text.format(4096 - 64))
    assert even.waiting is not None
    assert odd.waiting is not None
    assert even.waiting < 0.02 * even.expected
    assert odd.waiting > 0.15 * odd.expected
