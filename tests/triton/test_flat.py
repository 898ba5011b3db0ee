"""Tensors whose accesses fit no shape of theirs: they are read and written row by row, as they lie in memory."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

RAGGED = f"""{HEAD}@triton.jit
def k(x_ptr, start_ptr, y_ptr, n, heads, C: tl.constexpr, B: tl.constexpr):
    seq = tl.program_id(0)
    head = tl.program_id(1)
    first = tl.load(start_ptr + seq)
    length = tl.load(start_ptr + seq + 1) - first
    at = tl.program_id(2) * B + tl.arange(0, B)
    if tl.program_id(2) * B >= length:
        return
    c = tl.arange(0, C)
    place = ((first + at) * heads + head)[:, None] * n + c[None, :]
    mask = (at < length)[:, None] & (c < n)[None, :]
    x = tl.load(x_ptr + place, mask=mask, other=5.0)
    tl.store(y_ptr + place, x * 2.0 + tl.sum(x, axis=1)[:, None], mask=mask)


def f(x, starts):
    y = torch.zeros_like(x)
    k[(starts.numel() - 1, 3, 2)](x, starts, y, 50, 3, C=64, B=8)
    return y


f(torch.randn(20, 3, 50), torch.tensor([0, 9, 9, 20], dtype=torch.int32))
"""
"""Rows of 50 elements of which 64 are read, so that nobody may write behind them."""

ENDS = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, places, n, step, B: tl.constexpr):
    row = tl.load(places + tl.program_id(0))
    at = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + row * step + at * 2, mask=at < n, other=0.0)
    tl.store(y_ptr + tl.program_id(0) * (n + 3) + at, x + 1.0, mask=at < n)


def f(x, y, places):
    k[(4, 3)](x, y, places, 37, x.stride(0), B=16)
    return y


f(torch.randn(9, 80), torch.zeros(4 * 40), torch.randint(0, 9, (4,), dtype=torch.int32))
"""
"""Every second element of a row; rows of 37 elements in steps of 40."""

PLACED = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, n, C: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.arange(0, C)
    to = tl.where(at >= 20, at, (at - at // 5 * 5) * 4 + at // 5)
    x = tl.load(x_ptr + at[:, None] * C + c[None, :], mask=(at < n)[:, None])
    tl.store(y_ptr + to[:, None] * C + c[None, :], x, mask=(at < n)[:, None])


def f(x):
    y = torch.zeros_like(x)
    k[(triton.cdiv(x.shape[0], 8),)](x, y, x.shape[0], C=x.shape[1], B=8)
    return y


f(torch.randn(23, 32))
"""
"""Rows go where a condition on their place says, all but the last three."""

OFFSETS = f"""{HEAD}@triton.jit
def k(x_ptr, end_ptr, y_ptr, C: tl.constexpr, B: tl.constexpr):
    g = tl.program_id(0)
    start = tl.load(end_ptr + g - 1, mask=g > 0, other=0)
    end = tl.load(end_ptr + g)
    c = tl.arange(0, C)
    total = tl.zeros((C,), dtype=tl.float32)
    for first in range(start, end, B):
        at = first + tl.arange(0, B)
        total += tl.sum(tl.load(x_ptr + at[:, None] * C + c[None, :], mask=(at < end)[:, None], other=0.0), axis=0)
    tl.store(y_ptr + g * C + c, total)


def f(x, ends):
    y = torch.zeros(ends.shape[0], x.shape[1])
    k[(ends.shape[0],)](x, ends, y, C=x.shape[1], B=8)
    return y


f(torch.randn(21, 32), torch.tensor([5, 5, 16, 21], dtype=torch.int32))
"""
"""Groups that end at loaded places; the first one starts at 0, in front of which nothing is loaded."""

TEXTS = {"ragged": RAGGED, "rows that end": ENDS, "rows by a condition": PLACED}


@pytest.mark.parametrize("name", TEXTS)
def test_what_fits_no_shape_is_moved_as_it_lies_in_memory(name: str) -> None:
    assert refusals(TEXTS[name]) == ["TL508"]
    assert ".view(-1)" in to_tilelang(TEXTS[name]).text


def test_the_text_of_rows_that_end() -> None:
    text = to_tilelang(ENDS).text
    assert "T.min(B, n - B * by)" in text  # not a whole tile: behind it lies the next row


@pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs triton and torch")
@pytest.mark.parametrize("text", [*TEXTS.values(), OFFSETS])
def test_it_computes_the_same(text: str, tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(text, encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]


def test_an_integer_in_front_of_the_tensor_is_not_loaded() -> None:
    assert refusals(OFFSETS) == []
    assert "end_ptr[g * T.min(1, T.max(0, g)) - T.min(1, T.max(0, g))]" in to_tilelang(OFFSETS).text


HOLES = ENDS.replace("x + 1.0, mask=at < n", "x + 1.0, mask=(at < n) & (at % 3 == 0)")
CROSSED = RAGGED.replace("c[None, :]\n", "c[None, :] * 2\n")


@pytest.mark.parametrize("text", [HOLES, CROSSED])
def test_other_masks_and_tiles_without_rows_are_refused(text: str) -> None:
    assert refusals(text)[0] in ("TL520", "TL521", "TL522")
