"""Where memory is short, conditions that bound the columns of a row are one comparison, as each makes its tile anew."""

from __future__ import annotations

import random

import pytest

from tests.passes.gpu.support import agree
from tests.passes.gpu.test_elementwise import M, N, kernel, values
from tl2npu.passes.gpu.elementwise.places import Temporaries
from tl2npu.passes.job import Job

COLUMNS = [
    "bx * 32 + i >= k * 16 + j",
    "j < 40",
    "j - k * 8 >= 5",
    "i + 7 > j",
    "3 * i - 20 <= j",
    "k * 16 + j < bx * 8 + 30",
]
ROWS = ["bx * 32 + i < 50", "i >= 3", "2 * i > k + 9", "5 <= i"]
OTHERS = ["x[i, j] > 0.5", "j == 4", "i + j < 60", "bx > 0"]


@pytest.fixture(autouse=True)
def _memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    plenty = Temporaries.__init__

    def short(self: Temporaries, job: Job) -> None:
        plenty(self, job)
        self.tight = True

    monkeypatch.setattr(Temporaries, "__init__", short)


def migrated(condition: str) -> str:
    """The new kernel, which computes what the old one does, from its second loop on."""
    body = f"""
        for k in T.serial(2):
            for i, j in T.Parallel({M}, {N}):
                o[i, j] = T.if_then_else({condition}, x[i, j], z[i, j])
    """
    return agree(kernel(body), values(), threads="1").split("for k in", 1)[1]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(24))
def test_random_chains(seed: int) -> None:
    draw = random.Random(seed)
    parts = [draw.choice(COLUMNS), *(draw.choice(draw.choice([COLUMNS, ROWS, ROWS, OTHERS])) for _ in range(3))]
    draw.shuffle(parts)
    first, second = draw.choice([("and", "or"), ("or", "and"), ("and", "and"), ("or", "or")])
    inner = f"({parts[1]} {second} {parts[2]})"
    migrated(f"{parts[0]} {first} {f'not {inner}' if draw.random() < 0.3 else inner} {first} {parts[3]}")


@pytest.mark.parametrize(
    ("condition", "bound", "mode"),
    [
        (
            "bx * 32 + i < k * 16 + j or bx * 32 + i >= 50 or k * 16 + j >= 20",
            "T.min(T.min(bx * 32 + i - k * 16 + 1, 20 - k * 16), (50 - bx * 32 - i) * 64)",
            "GE",
        ),
        ("j <= i and j < 20 and i < 9", "T.min(T.min(i + 1, 20), (1 - (i - 9 + 1)) * 64)", "LT"),
        ("j > i and j >= 20", "T.max(i + 1, 20)", "GE"),
        ("j < i or j < 20", "T.max(i, 20)", "LT"),
    ],
)
def test_one_comparison(condition: str, bound: str, mode: str) -> None:
    new = migrated(condition)
    assert f"column_bound = {bound}\n" in new.replace("\n" + " " * 24, " ").replace("( ", "(").replace(" )", ")")
    assert new.count("T.tile.compare") == new.count("T.tile.select") == 1
    assert f'0.0, "{mode}")' in new


@pytest.mark.parametrize("condition", ["j < i and j >= 3", "i >= 9 or i < 4", "j < i and j < 20.5"])
def test_what_is_not_one_bound_stays(condition: str) -> None:
    """Two directions; no column; a number that is not an integer."""
    assert "column_bound" not in migrated(condition)


@pytest.mark.parametrize(
    ("condition", "row"),
    [
        ("i >= 3", "T.tile.fill(index_tile[i, :], T.float32(i))"),
        ("bx * 32 + i // 4 > 3", "T.tile.fill(index_tile[i, :], T.float32(i // 4))"),
        ("j < 40", "T.tile.sub(index_tile[i, :], column_index, 0.0)"),
        ("i + j < 60", "T.tile.sub(index_tile[i, :], column_index, T.float32(-i))"),
        ("bx * 32 + i >= k * 16 + j", "T.tile.sub(index_tile[i, :], column_index, T.float32(i))"),
    ],
)
def test_one_instruction_makes_a_row(condition: str, row: str) -> None:
    new = migrated(condition)
    assert row in new
    assert "T.Parallel" not in new.split("T.tile.select")[0]
