"""Kernels of which only the plan is there: loops, scopes and flags, and nothing that a core would do."""

from __future__ import annotations

import textwrap

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options

PLAN = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def factory(M, N, bm):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M // bm, is_npu=True) as (cid, vid):
            for i in T.serial(4):
                with T.Scope("C"):
                    # TODO: the product
                    T.set_cross_flag("FIX", 0)
                with T.Scope("V"):
                    T.wait_cross_flag(0)
                    row = cid * bm + vid
{body}

    return main
"""


def outcome(body: str) -> tuple[str, str, bool]:
    text = PLAN.format(body=textwrap.indent(body, " " * 20))
    result = migrate_text(text, "k.py", Options())
    (kernel,) = result.kernels
    return kernel.disposition, kernel.reason or "", result.new_text in (None, text)


@pytest.mark.parametrize(
    "body",
    ["pass", "_ = A\n_ = row", "# TODO: the epilogue\n_ = (A, B)", "x = T.alloc_ub((8, 64), 'float32')", "print(M)"],
)
def test_a_plan_stays_as_it_is(body: str) -> None:
    assert outcome(body) == ("unchanged", "it has no statement for a core", True)


@pytest.mark.parametrize(
    "body", ["T.copy(A[row, 0], B[row, 0])", "x = T.alloc_ub((1, 64), 'float32')\nT.tile.fill(x, 0.0)"]
)
def test_one_statement_is_something(body: str) -> None:
    assert outcome(body)[1] != "it has no statement for a core"
