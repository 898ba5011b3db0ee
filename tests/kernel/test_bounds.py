"""Proofs that an expression is not negative."""

from __future__ import annotations

import itertools

import pytest

from tl2npu.kernel.ranges.bounds import EITHER, Bounds
from tl2npu.kernel.symbolic import Sym, ceildiv, const, opaque, var

M, N, BM, BN, HEADS, BATCH, GROUP = (var(name) for name in ("M", "N", "BM", "BN", "HEADS", "BATCH", "GROUP"))
CID, K = var("cid@1"), var("k@2")
ROWS, COLUMNS = ceildiv(M, BM), ceildiv(N, BN)


def grid(extent: Sym, **ranges: tuple[Sym, Sym]) -> dict[str, tuple[Sym, Sym]]:
    return {"cid@1": (const(0), extent - 1), **{f"{name}@2": pair for name, pair in ranges.items()}}


def loop(extent: Sym) -> tuple[Sym, Sym]:
    return const(0), extent - 1


@pytest.mark.parametrize(
    ("goal", "ranges"),
    [
        (M - 1 - CID * BM, grid(ROWS)),
        (M - 1 - CID // COLUMNS * BM, grid(ROWS * COLUMNS)),
        (N - 1 - CID % COLUMNS * BN, grid(ROWS * COLUMNS)),
        (N - 1 - CID // HEADS % COLUMNS * BN, grid(HEADS * COLUMNS * BATCH)),
        (M - 1 - K * BM, grid(const(8), k=loop(opaque("min", ROWS, CID + 1)))),
        (M - 1 - (CID + 24 * K) * BM, {"cid@1": (const(0), const(23)), "k@2": loop(ceildiv(ROWS - CID, const(24)))}),
        (M - 1 - K * BM, grid(const(8), k=loop(opaque(EITHER, ROWS, M // BM)))),
        (M - 1 - CID * BM, grid(M // BM)),
        (const(99) - CID * 32, grid(const(4))),
        (opaque("min", ROWS - GROUP * (CID // (GROUP * COLUMNS)), GROUP) - 1, grid(ROWS * COLUMNS)),
    ],
    ids=str,
)
def test_inside(goal: Sym, ranges: dict[str, tuple[Sym, Sym]]) -> None:
    assert Bounds(ranges).is_not_negative(goal)


@pytest.mark.parametrize(
    ("goal", "ranges"),
    [
        (M - 1 - CID * BM, grid(ROWS + 1)),
        (M - 2 - CID * BM, grid(ROWS)),
        (M - 1 - CID // COLUMNS * BN, grid(ROWS * COLUMNS)),
        (M - 1 - K * BN, grid(ROWS, k=loop(ceildiv((CID + 1) * BM, BN)))),
        (M - 1 - K * BM, grid(const(8), k=loop(opaque("max", ROWS, CID + 1)))),
        (M - 1 - K * BM, grid(const(8), k=loop(opaque(EITHER, ROWS, CID + 1)))),
        (const(95) - CID * 32, grid(const(4))),
        (CID - 1, grid(const(4))),
        (M - N, grid(const(4))),
        (ROWS - GROUP * (CID // (GROUP * COLUMNS)) - 2, grid(ROWS * COLUMNS)),
        (ROWS - GROUP * (CID // (GROUP * COLUMNS)) - 1, grid(ROWS * COLUMNS + 1)),
        (GROUP * (CID // (GROUP * COLUMNS)) - CID // COLUMNS, grid(ROWS * COLUMNS)),
    ],
    ids=str,
)
def test_not_proved(goal: Sym, ranges: dict[str, tuple[Sym, Sym]]) -> None:
    assert not Bounds(ranges).is_not_negative(goal)


def test_conditions() -> None:
    goal = M - 1 - CID * BM - K
    assert not Bounds(grid(ROWS, k=loop(BM))).is_not_negative(goal)
    assert Bounds(grid(ROWS, k=loop(BM)), (M - 1 - CID * BM - K,)).is_not_negative(goal)
    assert Bounds(grid(ROWS, k=loop(BM)), (M - 3 - CID * BM - K,)).is_not_negative(goal)
    assert not Bounds(grid(ROWS, k=loop(BM)), (M - CID * BM - K,)).is_not_negative(goal)


def test_a_condition_with_a_choice() -> None:
    rows = opaque("max", const(0), opaque("min", BM, M - CID * BM))
    assert Bounds(grid(ROWS + 5, k=loop(BM)), (rows - 1 - K,)).is_not_negative(M - 1 - CID * BM - K)
    assert not Bounds(grid(ROWS + 5, k=loop(BM)), (rows - K,)).is_not_negative(M - 1 - CID * BM - K)


def test_names_for_other_expressions() -> None:
    bounds = Bounds(grid(const(8), k=loop(var("last@3"))), values={"last@3": opaque("min", ROWS, CID)})
    assert bounds.is_not_negative(M - 1 - K * BM)


@pytest.mark.parametrize(
    "goal", [M - 1 - CID // COLUMNS * BM, N - 1 - CID % COLUMNS * BN, CID // BN * BN - CID + BN - 1]
)
def test_what_is_proved_is_true(goal: Sym) -> None:
    for m, n, bm, bn in itertools.product((1, 5, 9), (3, 8), (2, 4), (3, 5)):
        values = {"M": m, "N": n, "BM": bm, "BN": bn}
        ranges = grid(ROWS * COLUMNS)
        assert Bounds(ranges).is_not_negative(goal)
        last = ranges["cid@1"][1].evaluate(values)
        assert last is not None
        for cid in range(last + 1):
            found = goal.evaluate({**values, "cid@1": cid})
            assert found is not None
            assert found >= 0
