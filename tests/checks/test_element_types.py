"""TL710: what a call can make of a tile whose element type has a name."""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, kernel, warnings

BODY = kernel("c = T.alloc_ub((16, 64), cal)", "T.copy(A[cid * 16, 0], c)", "T.tile.add(c, c, c)")


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("dtype", True),
        ('"float32" if dtype in ["bfloat16", "float16"] else dtype', False),
        ('"float32" if dtype == "bfloat16" else dtype', False),
        ('dtype if dtype not in ("bfloat16",) else "float32"', False),
        ('"float32" if dtype != "bfloat16" else dtype', True),
        ('"float32" if dtype == "float16" else dtype', True),
    ],
)
def test_a_type_that_is_another_for_bfloat16(chosen: str, told: bool) -> None:
    found = warnings(BODY, launch=ONE, args="dtype", factory=f"cal = {chosen}")
    assert ("TL710" in found) is told
