"""Blocks that compute a share of an axis each: a tile that crosses the end of the share is copied row by row."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import HEAD, refusals

LOAD = "        x = tl.load(x_ptr + rows[:, None] * cols + c[None, :], mask=inside, other=0.0)\n"
STORE = "        tl.store(y_ptr + rows[:, None] * cols + c[None, :], x, mask=inside)\n"


def shared(body: str = LOAD + STORE, before: str = "") -> str:
    """Each of three blocks has a third of the rows, in tiles of 4, which do not divide it."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, w_ptr, y_ptr, n, cols, BLOCKS: tl.constexpr, C: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n    c = tl.arange(0, C)\n"
        f"    share = tl.cdiv(n, BLOCKS)\n    first = pid * share\n    last = tl.minimum(first + share, n)\n{before}"
        "    for start in range(first, last, 4):\n        rows = start + tl.arange(0, 4)\n"
        "        inside = (rows[:, None] < last) & (c[None, :] < cols)\n"
        f"{body}\n\ndef f(x, w):\n    n, cols = x.shape\n    y = torch.zeros_like(x)\n"
        f"    k[(3,)](x, w, y, n, cols, BLOCKS=3, C=64)\n    return y\n\n\n"
        "f(torch.randn(31, 50), torch.randn(64))\n"
    )


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (LOAD + STORE, ""),
        (LOAD + "        x = x - tl.max(x, axis=0)[None, :]\n" + STORE, ""),  # elements of a tile meet
        (LOAD + "        s += x\n        x = s\n" + STORE, "    s = tl.zeros((4, C), dtype=tl.float32)\n"),
        (LOAD + "        x = x * w\n" + STORE, "    w = tl.load(w_ptr + pid)\n"),  # the block's own factor
        (LOAD + "        x = x * w[:, None]\n" + STORE, "    w = tl.load(w_ptr + tl.arange(0, 4))\n"),  # the lane's
        (LOAD + "        x = x * tl.load(w_ptr + start)\n" + STORE, ""),  # the tile's
    ],
)
def test_tiles_stay_where_they_are(body: str, before: str) -> None:
    assert refusals(shared(body, before)) == ["TL508"]


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


def test_share_of_whole_tiles_is_copied_as_tiles() -> None:
    """A share rounded up to whole tiles: no tile reaches into the next share."""
    text = shared().replace("share = tl.cdiv(n, BLOCKS)", "share = tl.cdiv(tl.cdiv(n, BLOCKS), 4) * 4")
    assert refusals(text) == []
    assert refusals(text.replace("4) * 4", "4) * 3")) == ["TL508"]
