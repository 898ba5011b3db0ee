"""Operators under ``threads=2`` (facts 1)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, PLAIN, STORE, TILES, errors, kernel
from tl2npu.options import Options

EXTRA = """
h = T.alloc_ub((32, 64), "float16")
mask = T.alloc_ub((32, 8), "uint8")
s = T.alloc_ub((32,), "float32")
col = T.alloc_ub((64,), "float32")
one = T.alloc_ub((32, 1), "float32")
"""


def split_only(statement: str, **settings: object) -> list[str]:
    """The errors with ``threads=2``, after making sure that ``threads=1`` has none."""
    body = kernel(TILES, EXTRA, LOAD, statement, STORE)
    assert errors(body, launch=ONE, **settings) == []
    return errors(body, **settings)


@pytest.mark.parametrize(
    "statement",
    [
        "T.tile.add(b, a, a)",
        "T.tile.exp(b, a)",
        "T.tile.fill(b, 0.0)",
        "T.tile.axpy(b, a, 2.0)",
        "T.tile.compare(mask, a, b, 'GE')",
        "T.copy(a, h)",
        "T.reduce_max(a, s, dim=-1)",
        "T.reduce_sum(a, s, dim=1)",
        "for i in range(32):\n    T.tile.silu(b[i, :], a[i, :])",
        "for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] * s[i]",
    ],
)
def test_halved_operators(statement: str) -> None:
    assert split_only(statement) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.tile.cast(h, a, 'CAST_RINT', 2048)", ["TL832"]),
        ("T.tile.cast(h, a, 'CAST_RINT', 16 * 64)", []),
        ("T.tile.cast(h, a, 'CAST_RINT', 1000)", ["TL832"]),
        ("T.tile.clamp(b, a, 0.0, 1.0, 1024)", []),
        ("T.tile.sigmoid(b, a)", ["TL832"]),
        ("T.tile.silu(b, a)", ["TL832"]),
        ("T.tile.silu(b[:16, :], a[:16, :])", []),
        ("T.tile.sigmoid(b[:16, :], a[:16, :])", []),
        ("T.tile.sigmoid(b[:16, :], a)", ["TL832"]),
        ("T.tile.clamp(b, a, 0.0, 1.0, 2048)", ["TL832"]),
        ("T.tile.select(b, mask, a, b, 'VSEL_CMPMASK_SPR')", ["TL832"]),
        ("T.tile.broadcast(b, one)", ["TL832"]),
        ("T.tile.broadcast(b, one, axis=1)", ["TL832"]),
        ("T.tile.transpose(b, a)", ["TL837"]),
        ("T.reduce_max(a, col, dim=0)", ["TL833"]),
        ("T.reduce_max(a, col, dim=-2)", ["TL833"]),
        ("total = T.alloc_ub((1,), 'float32')\nT.reduce_sum(s, total, dim=-1)", ["TL834"]),
        ("T.tile.add(b[0, :], a[0, :], a[0, :])", ["TL826"]),
        ("T.tile.atomic_add(O[cid * 32, 0], a)", ["TL836"]),
        ("for i in range(32):\n    T.tile.axpy(b, a, s[i])", ["TL837"]),
        ("total = T.alloc_ub((1,), 'float32')\nfor i in range(32):\n    total[0] += s[i]", ["TL837"]),
        ("total = T.alloc_ub((1,), 'float32')\nfor i in range(32):\n    total[0] = s[i]", []),
    ],
)
def test_operators_of_whole_size(statement: str, found: list[str]) -> None:
    assert sorted(split_only(statement)) == found


def test_newer_compilers_halve_more_operators() -> None:
    newer = Options(ascend_version="2026-09")
    assert split_only("T.tile.cast(h, a, 'CAST_RINT', 2048)", options=newer) == []
    assert split_only("T.tile.cast(h, a, 'CAST_RINT', 1024)", options=newer) == ["TL832"]
    assert split_only("T.tile.sigmoid(b, a)", options=newer) == ["TL832"]


def test_target_pto_takes_sizes_from_the_tiles() -> None:
    assert split_only("T.tile.sigmoid(b, a)", jit="out_idx=[1], target='pto'") == []
    assert split_only("T.tile.transpose(b, a)", jit="out_idx=[1], target='pto'") == ["TL837"]


def test_atomics_of_ub_on_target_pto() -> None:
    body = kernel(TILES, LOAD, "T.tile.atomic_add(O[cid * 32, 0], a)")
    assert errors(body, launch=ONE) == []
    assert errors(body, launch=ONE, jit="out_idx=[1], target='pto'") == ["TL836"]
    assert errors(body, launch=PLAIN, jit="out_idx=[1], target='pto'") == []


def test_compare_of_less_than_a_block() -> None:
    allocs = """
    x = T.alloc_ub((2, 32), "float32")
    mask = T.alloc_ub((2, 4), "uint8")
    T.copy(A[cid * 2, 0], x)
    T.tile.compare(mask, x, 0.0, "GE")
    """
    assert errors(allocs, launch=ONE) == []
    assert errors(allocs) == ["TL830"]
    assert errors(allocs.replace("2, ", "4, ")) == []


THREE = """
c = T.alloc_ub((4, 8, 64), "float32")
d = T.alloc_ub((8, 64), "float32")
sums = T.alloc_ub((4, 8), "float32")
T.tile.fill(c, 1.0)
T.tile.fill(d, 1.0)
T.tile.fill(sums, 1.0)
"""


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("for g in T.serial(4):\n    T.reduce_sum(c[g, :, :], sums[g, :], dim=-1)", ["TL833"]),
        ("for g in T.serial(4):\n    T.copy(d, c[g, :, :])", ["TL838"]),
        ("for g in T.serial(4):\n    T.copy(c[g, :, :], d)", ["TL838"]),
    ],
)
def test_planes_of_tiles_of_three_axes(statement: str, found: list[str]) -> None:
    """The rows of a plane are no rows of the tile: the compiler halves the first axis of every tile."""
    assert split_only(THREE + statement) == found


@pytest.mark.parametrize(
    "statement",
    [
        "T.tile.add(b[0:8, :], a[0:8, :], a[0:8, :])",
        "T.tile.exp(b[8:16, :], a[8:16, :])",
        "T.tile.mul(s[0:8], s[0:8], 2.0)",
    ],
)
def test_a_part_of_the_rows(statement: str) -> None:
    body = kernel(TILES, EXTRA, LOAD, "T.reduce_max(a, s, dim=-1)", statement, STORE)
    assert "TL825" in errors(body)
