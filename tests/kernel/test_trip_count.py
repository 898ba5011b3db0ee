"""Whether a loop certainly runs, held against every block of every small size."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.model import Loop
from tl2npu.kernel.ranges.trip_count import TripCounts
from tl2npu.source.index import Index

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def make(S, M, N, W, causal):
    @T.prim_func
    def main(A: T.Tensor((S, 16), "float16"), n: T.int32):
        with T.Kernel({grid}, 3, threads=128) as (bx, by):
            x = T.alloc_shared((M, 16), "float16")
            st = {start}
            ed = {stop}
            for k in T.serial(st, ed):
                T.copy(A[k, 0], x)
    return main
"""
GRIDS = {"T.ceildiv(S, M)": "-(-S // M)", "S // M": "S // M"}


def runs(grid: str, start: str, stop: str) -> bool:
    """What is proved of the loop."""
    (located,) = FileKernels(Index.parse(KERNEL.format(grid=grid, start=start, stop=stop))).located
    kernel = located.read()
    (loop,) = (stmt for stmt in kernel.walk() if isinstance(stmt, Loop))
    return TripCounts(kernel, located.evaluator).runs(loop)


class _T:
    """The functions of a kernel's numbers, in Python."""

    ceildiv = staticmethod(lambda a, b: -(-a // b))
    floordiv = staticmethod(lambda a, b: a // b)
    min, max = staticmethod(min), staticmethod(max)
    if_then_else = staticmethod(lambda c, a, b: a if c else b)


def always(grid: str, start: str, stop: str) -> bool:
    """Whether it has a turn in every block of every size up to 9."""
    for size, rows, columns, causal, n in itertools.product(
        range(1, 10), (1, 2, 3, 4), (1, 2, 3), (True, False), (0, 5)
    ):
        known: dict[str, Any] = {"S": size, "M": rows, "N": columns, "causal": causal, "n": n, "W": n + 1, "T": _T}
        for bx, by in itertools.product(range(eval(GRIDS[grid], {}, known)), range(3)):
            here = {**known, "bx": bx, "by": by}
            if eval(start, {}, here) >= eval(stop, {}, here):
                return False
    return True


PROVED = [
    ("0", "T.ceildiv(S, N)"),
    ("T.floordiv(bx * M, N) if causal else 0", "T.ceildiv(S, N)"),
    ("bx * M // N", "T.ceildiv(S, N)"),
    ("0", "T.ceildiv((bx + 1) * M, N) if causal else T.ceildiv(S, N)"),
    ("0", "T.min(T.ceildiv(S, N), T.ceildiv((bx + 1) * M, N))"),
    ("T.if_then_else(causal, bx * M // N, 0)", "T.ceildiv(S, N)"),
    ("T.max(0, bx * M // N)", "T.ceildiv(S, N)"),
    ("by", "3"),
    ("bx * M", "S"),
    ("bx * M // N", "T.min(T.ceildiv((bx + 1) * M + W, N), T.ceildiv(S, N)) if causal else T.ceildiv(S, N)"),
    ("bx * M // N", "(bx * M + N) // N"),
]
MORE = ("bx", "T.ceildiv(S, M)")  # as many turns as blocks, or fewer
OPEN = [
    ("(bx + 1) * M // N", "T.ceildiv(S, N)"),
    ("bx * M // N", "S // N"),
    ("bx * N // M", "T.ceildiv(S, N)"),
    ("bx * M // N", "(bx * M + W) // N"),
    ("bx * M // N", "(bx * M + M - 2) // N + 1"),
    ("by", "2"),
    ("bx * M // N", "T.ceildiv(S, N) if causal else 1"),
    ("n", "T.ceildiv(S, N)"),
    ("0", "n"),
    ("by * M // N", "T.ceildiv(S, N)"),
    ("T.max(bx * M // N, 2)", "T.ceildiv(S, N)"),
    ("0", "T.ceildiv(S, N) - 1"),
    ("0", "S - 1"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("grid", "start", "stop"), [*((grid, *bounds) for grid in GRIDS for bounds in PROVED), ("T.ceildiv(S, M)", *MORE)]
)
def test_it_runs(grid: str, start: str, stop: str) -> None:
    assert always(grid, start, stop)
    assert runs(grid, start, stop)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("start", "stop"), OPEN)
def test_it_may_not_run(grid: str, start: str, stop: str) -> None:
    assert not always("T.ceildiv(S, M)", start, stop)
    assert always(grid, start, stop) or not runs(grid, start, stop)
