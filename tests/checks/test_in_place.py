"""Operators whose result must not lie on their operand (#1657, #1658)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, errors, kernel
from tl2npu.options import Options


@pytest.mark.parametrize(
    ("statement", "ascendc", "pto"),
    [
        ("T.tile.silu(a, a)", True, True),
        ("T.tile.silu(dst=a, src=a)", True, True),
        ("T.tile.silu(a[0:16, :], a[0:16, :])", True, True),
        ("for k in T.serial(2):\n    T.tile.silu(a, a)", True, True),
        ("T.tile.sigmoid(a, a)", False, True),
        ("T.tile.silu(b, a)", False, False),
        ("T.tile.sigmoid(b, a)", False, False),
        ("T.tile.sigmoid(b, a)\nT.tile.mul(b, b, a)", False, True),
        ("T.tile.silu(b, a)\nfor i, j in T.Parallel(32, 64):\n    b[i, j] = b[i, j] + a[i, j]", False, True),
        ("for k in T.serial(2):\n    T.tile.sigmoid(b, a)", False, True),
        ("T.tile.mul(b, a, a)\nT.tile.sigmoid(b, a)", False, False),
        ("T.tile.sigmoid(b, a)\nT.tile.fill(a, 0.0)", False, False),
        ("T.tile.pow(b, a, a)", False, True),
        ("T.tile.pow(b, a, b)\nT.tile.mul(b, b, a)", False, True),
        ("T.tile.pow(b, a, b)", False, False),
        ("T.tile.pow(a, a, b)", False, False),
        ("T.copy(a[0:31, :], a[1:32, :])", False, True),
        ("T.copy(a[1:32, :], a[0:31, :])", False, False),
        ("T.copy(a[0:16, :], a[16:32, :])", False, False),
        ("T.copy(a[:, 0:8], a[:, 8:16])", False, False),
        ("for k in T.serial(31):\n    T.copy(a[k, :], a[k + 1, :])", False, False),
        ("T.tile.relu(a, a)", False, False),
        ("T.tile.exp(a, a)", False, False),
    ],
)
def test_operators_in_place(statement: str, ascendc: bool, pto: bool) -> None:
    body = kernel(TILES, LOAD, statement, STORE)
    for version in ("2026-06", "2026-09"):
        options = Options(ascend_version=version)
        assert ("TL750" in errors(body, launch=ONE, options=options)) == ascendc
        assert ("TL750" in errors(body, launch=ONE, jit="out_idx=[1], target='pto'", options=options)) == pto
