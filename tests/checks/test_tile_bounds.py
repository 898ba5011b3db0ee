"""Statements that go past the end of a tile (TL789)."""

from __future__ import annotations

import pytest

from tests.checks.support import PLAIN, errors

TILES = """
x = T.alloc_ub((4, 64), "float32")
y = T.alloc_ub((64,), "float32")
z = T.alloc_ub((2, 4, 64), "float32")
"""


def found(body: str, args: str = "") -> list[str]:
    """The errors of a kernel of vectors."""
    text = f"{TILES}\n{body}\nT.copy(x, O[cid * 4, 0])"
    return errors(text, launch=PLAIN, keys=("AUTO_SYNC", "MEMORY_PLANNING"), args=args)


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("for i in T.serial(4):\n    T.copy(A[i, 0], x[i, :])", []),
        ("for i in T.serial(5):\n    T.copy(A[i, 0], x[i, :])", ["TL789"]),
        ("for i in T.serial(4):\n    T.copy(A[i, 0], x[i + 1, :])", ["TL789"]),
        ("for i in T.serial(1, 5):\n    T.copy(A[i, 0], x[i - 1, :])", []),
        ("for i in T.serial(8):\n    T.copy(A[i, 0], x[i % 4, :])", []),
        ("for i in T.serial(8):\n    if i < 4:\n        T.copy(A[i, 0], x[i, :])", []),  # not looked at
        ("T.tile.exp(x[4, :], y)", ["TL789"]),
        ("T.tile.exp(x[3, :], y)", []),
        ("T.tile.exp(z[2, :, :], x)", ["TL789"]),
        ("T.tile.exp(z[vid, :, :], x)", []),
        ("T.tile.exp(z[vid + 1, :, :], x)", ["TL789"]),
        ("for i in T.serial(65):\n    y[i] = 1.0", ["TL789"]),
        ("for i in T.serial(64):\n    y[i] = 1.0", []),
        ("T.tile.exp(x[rows - 1, :], y)", []),
    ],
)
def test_turns(body: str, codes: list[str]) -> None:
    assert found(body, args="rows=4") == codes


def test_sizes_of_calls() -> None:
    assert found("T.tile.exp(x[rows, :], y)", args="rows=4") == ["TL789"]
    assert found("T.tile.exp(x[rows, :], y)", args="rows") == []
