"""``--rows-per-block``: which kernels take several rows, and that rows are still those of Triton's interpreter."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tl2npu.options import Options
from tl2npu.project.one import process
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

HEAD = """import torch
import triton
import triton.language as tl

"""
SOFTMAX = """
@triton.jit
def softmax(y_ptr, x_ptr, w_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n_cols, other=0.0)
    x = tl.load(x_ptr + row * stride + at, mask=at < n_cols, other=-float("inf"))
    top = tl.max(x, axis=0)
    e = tl.exp(x - top) * (row + 1)
    tl.store(y_ptr + row * stride + at, e / tl.sum(e, axis=0) * w, mask=at < n_cols)
"""
MEANS = """
@triton.jit
def means(y_ptr, x_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride + at, mask=at < n_cols, other=0.0)
    tl.store(y_ptr + row, tl.sum(total, axis=0) / n_cols)
"""
HOST = """
x, w = torch.randn(13, 40), torch.randn(40)
y, m = torch.empty_like(x), torch.empty(13)
rows, columns = x.shape
"""
LAUNCH_SOFTMAX = "softmax[(rows,)](y, x, w, x.stride(0), columns, BLOCK=64)\n"
LAUNCH_MEANS = "means[(rows,)](m, x, x.stride(0), columns, BLOCK=16)\n"
TWO = HEAD + SOFTMAX + "\n" + MEANS + HOST + LAUNCH_SOFTMAX + LAUNCH_MEANS


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
def test_thirteen_rows_in_blocks_of_four(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(TWO, encoding="utf-8")
    result = verify_files(file, None, Settings(), Options(rows_per_block=4))
    assert {kernel.name: kernel.status for kernel in result.kernels} == {"softmax": "verified", "means": "verified"}
    result_text = process("migrate", TWO, "k.py", Options(rows_per_block=4), debug=True).new_text
    assert result_text is not None
    assert result_text.count("(4, BLOCK)") > 4


def notes(text: str, rows: int) -> list[str]:
    done = process("migrate", text, "k.py", Options(rows_per_block=rows), debug=True)
    assert {kernel.disposition for kernel in done.kernels} == {"migrated"}
    return [item.message for item in done.diagnostics if item.code == "TL506"]


def test_note_where_the_option_would_apply() -> None:
    assert len(notes(TWO, 1)) == 2
    assert not notes(TWO, 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x_ptr + row * stride", "x_ptr + (row + 1) * stride"),
        ("y_ptr + row * stride", "y_ptr"),
    ],
)
def test_no_help_where_rows_stay_alone(old: str, new: str) -> None:
    """The help is to give the option that was given and does not apply."""
    text = (HEAD + SOFTMAX + HOST + LAUNCH_SOFTMAX).replace(old, new)
    found = process("migrate", text, "k.py", Options(rows_per_block=4), debug=True).diagnostics
    assert [item.help for item in found if item.code == "TL506"] == [""]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x_ptr + row * stride", "x_ptr + (row + 1) * stride", "one whole row of `x_ptr`"),
        ("y_ptr + row * stride", "y_ptr", "`y_ptr` has not one row"),
        ("* (row + 1)", "* tl.load(w_ptr + row * 2)", "one whole row of `w_ptr`"),
    ],
)
def test_rows_that_stay_alone(old: str, new: str, why: str) -> None:
    text = HEAD + SOFTMAX + HOST + LAUNCH_SOFTMAX
    assert old in text
    (message,) = notes(text.replace(old, new), 4)
    assert message.startswith("`--rows-per-block` does not apply: line ")
    assert why in message


def test_rows_that_do_not_fit_stay_one() -> None:
    text = (HEAD + SOFTMAX + HOST + LAUNCH_SOFTMAX).replace("40)", "4000)").replace("BLOCK=64", "BLOCK=4096")
    (message,) = notes(text, 64)
    assert "with 64 rows it is refused: TL801" in message
