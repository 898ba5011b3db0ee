"""Loads whose mask leaves out what lies below the tensor: shifts, and convolutions that look back."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

HOST = (
    "\n\ndef f(x):\n    n, cols = x.shape\n    y = torch.empty(n, cols)\n"
    "    k[(triton.cdiv(n, 8),)](x, y, n, C=cols, B=8)\n    return y\n\n\nf(torch.randn(21, 64))\n"
)
STORE = "    tl.store(y_ptr + r[:, None] * C + c[None, :], x, mask=(r < n)[:, None])\n"


def rows(body: str) -> str:
    """21 rows of 64 columns in blocks of 8."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, n, C: tl.constexpr, B: tl.constexpr):\n"
        f"    r = tl.program_id(0) * B + tl.arange(0, B)\n    c = tl.arange(0, C)\n{body}{STORE}{HOST}"
    )


LOAD = "    x = tl.load(x_ptr + (r - 3)[:, None] * C + c[None, :], mask={}[:, None], other={})\n"
TEXTS = {
    "rows": rows(LOAD.format("((r >= 3) & (r < n))", 0.0)),
    "another value": rows(LOAD.format("((r - 3 >= 0) & (r < n))", -2.0)),
    "strictly": rows(LOAD.format("((2 < r) & (r < n))", 0.0)),
    "further up": rows(LOAD.format("((r >= 5) & (r < n))", 0.0)),
    "in turns": rows(
        "    x = tl.zeros((B, C), dtype=tl.float32)\n    for s in tl.static_range(4):\n        at = r - 3 + s\n"
        "        x += tl.load(x_ptr + at[:, None] * C + c[None, :], mask=((at >= 0) & (at < n))[:, None], other=0.0)\n"
    ),
    "elements": rows(
        "    v = tl.load(x_ptr + r - 3, mask=(r >= 3) & (r < n), other=1.0)\n    x = c[None, :] * 1.0 + v[:, None]\n"
    ),
}


@pytest.mark.parametrize("spelling", TEXTS)
def test_rows_above_the_start_are_read_one_by_one(spelling: str) -> None:
    assert refusals(TEXTS[spelling]) == []


def test_the_text() -> None:
    assert (
        "            for row in T.serial(B):\n"
        "                if row + B * bx >= 3 and row + B * bx < n:\n"
        "                    at = row + B * bx - 3\n"
        "                    T.copy(x_ptr[at, :], x[row, :])\n"
    ) in to_tilelang(TEXTS["rows"]).text


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
@pytest.mark.parametrize("spelling", TEXTS)
def test_the_same_values(spelling: str, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(TEXTS[spelling], encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]


@pytest.mark.parametrize("mask", ["(r < n)", "((r >= 2) & (r < n))", "((r >= 3) | (r < n))"])
def test_masks_that_let_a_row_below_in(mask: str) -> None:
    assert refusals(rows(LOAD.format(mask, 0.0))) == ["TL521"]
