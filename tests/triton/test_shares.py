"""Blocks that compute a share of an axis each: tiles are dealt out to them where elements are computed apart."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

LOAD = "        x = tl.load(x_ptr + rows[:, None] * cols + c[None, :], mask=inside, other=0.0)\n"
STORE = "        tl.store(y_ptr + rows[:, None] * cols + c[None, :], x, mask=inside)\n"


def shared(body: str = LOAD + STORE, before: str = "", blocks: str = "3", of: str = "BLOCKS") -> str:
    """Each of three blocks has a third of the rows, in tiles of 4, which do not divide it."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, w_ptr, y_ptr, n, cols, BLOCKS: tl.constexpr, C: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n    c = tl.arange(0, C)\n"
        f"    share = tl.cdiv(n, {of})\n    first = pid * share\n    last = tl.minimum(first + share, n)\n{before}"
        "    for start in range(first, last, 4):\n        rows = start + tl.arange(0, 4)\n"
        "        inside = (rows[:, None] < last) & (c[None, :] < cols)\n"
        f"{body}\n\ndef f(x, w):\n    n, cols = x.shape\n    y = torch.zeros_like(x)\n"
        f"    k[({blocks},)](x, w, y, n, cols, BLOCKS=3, C=64)\n    return y\n\n\n"
        "f(torch.randn(31, 50), torch.randn(64))\n"
    )


def test_every_tile_has_a_block() -> None:
    """31 rows in thirds of 11 are tiles of 4, 4 and 3 rows in each block; in the new kernel 8 blocks have 4 rows."""
    text = to_tilelang(shared()).text
    assert "T.Kernel(T.ceildiv(n, 4)" in text
    assert "T.copy(x_ptr[start * 4, 0], x)" in text


def test_elements_are_placed_on_the_axis() -> None:
    """A mask by the row itself is the same in every tile, one by its place in the tile is not."""
    by_row = "        x = tl.where(rows[:, None] > 5, x, 0.0)\n"
    by_lane = "        x = tl.where(tl.arange(0, 4)[:, None] > 1, x, 0.0)\n"
    assert refusals(shared(LOAD + by_row + STORE)) == []
    assert refusals(shared(LOAD + by_lane + STORE)) == ["TL508"]


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
def test_tiles_that_are_dealt_out_are_computed_alike(tmp_path: Path) -> None:
    body = LOAD + "        x = tl.where(rows[:, None] > 5, x, 0.0) / (1.0 + tl.max(x, axis=1)[:, None])\n" + STORE
    file = tmp_path / "k.py"
    file.write_text(shared(body), encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (LOAD + "        x = x - tl.max(x, axis=0)[None, :]\n" + STORE, ""),  # elements of a tile meet
        (LOAD + "        s += x\n        x = s\n" + STORE, "    s = tl.zeros((4, C), dtype=tl.float32)\n"),
        (LOAD + "        x = x * w\n" + STORE, "    w = tl.load(w_ptr + pid)\n"),  # the block's own factor
        (LOAD + "        x = x * w[:, None]\n" + STORE, "    w = tl.load(w_ptr + tl.arange(0, 4))\n"),  # the lane's
        (LOAD + "        x = x * tl.load(w_ptr + start)\n" + STORE, ""),  # the tile's
    ],
)
def test_tiles_that_matter_stay_where_they_are(body: str, before: str) -> None:
    assert refusals(shared(body, before)) == ["TL508"]


def test_shares_of_another_number_of_blocks() -> None:
    """Of two blocks with a third each nobody computes the last third; a number of the host is asserted to be 3."""
    assert refusals(shared(blocks="2")) == ["TL508"]
    assert refusals(shared(of="4")) == ["TL508"]
    text = shared(blocks="count").replace("def f(x, w):", "def f(x, w, count):").split("\n\n\nf(torch")[0]
    assert "assert count == 3" in to_tilelang(text).text


def test_mask_of_the_smaller_of_two_ends() -> None:
    """``x < min(a, b)`` is two masks: one that every element passes, and the end of the tensor."""
    text = (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, n, B: tl.constexpr):\n    first = tl.program_id(0) * B\n"
        "    count = min(first + B, n) - first\n    i = tl.arange(0, B)\n"
        "    x = tl.load(x_ptr + first + i, mask=i < count)\n"
        "    tl.store(y_ptr + first + i, x + x, mask=i < count)\n\n\n"
        "def f(x):\n    n = x.shape[0]\n    y = torch.empty_like(x)\n    k[(triton.cdiv(n, 64),)](x, y, n, B=64)\n"
        "    return y\n\n\nf(torch.randn(100))\n"
    )
    assert refusals(text) == []
    assert refusals(text.replace("first + B, n)", "first + B, n - 1)")) == ["TL508"]


def test_share_of_whole_tiles_needs_no_other_order() -> None:
    """A share rounded up to whole tiles: no tile reaches into the next share."""
    text = shared().replace("share = tl.cdiv(n, BLOCKS)", "share = tl.cdiv(tl.cdiv(n, BLOCKS), 4) * 4")
    assert refusals(text) == []
    assert refusals(text.replace("4) * 4", "4) * 3")) == ["TL508"]
