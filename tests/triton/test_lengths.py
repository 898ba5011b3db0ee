"""Lengths that the kernel loads: sequences of several lengths, one behind the other or each in a row of its own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

LEAVES = "    if pid * 16 >= n:\n        return\n"
WHOLE = (
    "    x = tl.load(x_ptr + (start + at)[:, None] * C + c[None, :], mask=(at < n)[:, None], other=0.0)\n"
    "    tl.store(y_ptr + (start + at)[:, None] * C + c[None, :], x * 2.0, mask=(at < n)[:, None])\n"
    "    tl.store(s_ptr + start + at, tl.sum(x, axis=1), mask=at < n)\n"
)
BLOCKS = (
    "    x_block = tl.make_block_ptr(x_ptr + start * C, (n, C), (C, 1), (pid * 16, 0), (16, C), (1, 0))\n"
    "    y_block = tl.make_block_ptr(y_ptr + start * C, (n, C), (C, 1), (pid * 16, 0), (16, C), (1, 0))\n"
    '    x = tl.load(x_block, boundary_check=(0,), padding_option="zero")\n'
    "    tl.store(y_block, x * 2.0, boundary_check=(0,))\n"
)
TURNS = (
    "    for begin in range(0, n, 16):\n        rows = begin + tl.arange(0, 16)\n"
    "        x = tl.load(x_ptr + (start + rows)[:, None] * C + c[None, :], mask=(rows < n)[:, None], other=0.0)\n"
    "        tl.store(y_ptr + (start + rows)[:, None] * C + c[None, :], x * 2.0, mask=(rows < n)[:, None])\n"
)
PADDED = (
    "    x = tl.load(x_ptr + b * L * C + at[:, None] * C + c[None, :], mask=(at < n)[:, None], other=-1.0)\n"
    "    tl.store(y_ptr + b * L * C + at[:, None] * C + c[None, :], x, mask=(at < n)[:, None])\n"
)


def packed(body: str, leaves: str = LEAVES, kind: str = "torch.int32") -> str:
    """Sequences of 5, 18 and 17 rows, behind each other in 40 rows."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, s_ptr, ends_ptr, C: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n    b = tl.program_id(1)\n"
        "    start = tl.load(ends_ptr + b)\n    n = tl.load(ends_ptr + b + 1) - start\n"
        f"{leaves}    at = pid * 16 + tl.arange(0, 16)\n    c = tl.arange(0, C)\n{body}\n\n"
        "def f(x, ends):\n    rows, cols = x.shape\n    y = torch.zeros_like(x)\n    s = torch.zeros(rows)\n"
        "    k[(2, ends.shape[0] - 1)](x, y, s, ends, C=cols)\n    return y, s\n\n\n"
        + (f"f(torch.randn(40, 64), torch.tensor([0, 5, 23, 40], dtype={kind}))\n" if kind else "")
    )


def padded(body: str) -> str:
    """Sequences of 5, 18 and 17 rows, each of which has 20."""
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, n_ptr, L, C: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n    b = tl.program_id(1)\n    n = tl.load(n_ptr + b)\n"
        f"    at = pid * 16 + tl.arange(0, 16)\n    c = tl.arange(0, C)\n{body}\n\n"
        "def f(x, lengths):\n    batch, L, cols = x.shape\n    y = torch.zeros_like(x)\n"
        "    k[(triton.cdiv(L, 16), batch)](x, y, lengths, L, C=cols)\n    return y\n\n\n"
        "f(torch.randn(3, 20, 64), torch.tensor([5, 18, 17], dtype=torch.int32))\n"
    )


TEXTS = {
    "whole": packed(WHOLE),
    "no return": packed(WHOLE, ""),
    "other way round": packed(WHOLE, "    if n <= pid * 16:\n        return\n"),
    "blocks": packed(BLOCKS),
    "turns": packed(TURNS, "    if pid > 0:\n        return\n"),
    "padded": padded(PADDED),
}


@pytest.mark.parametrize("spelling", TEXTS)
def test_rows_are_stored_one_by_one(spelling: str) -> None:
    text = to_tilelang(TEXTS[spelling]).text
    assert refusals(TEXTS[spelling]) == []
    assert "in T.Parallel(16, C):" in text
    assert "        y_ptr[" in text


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
@pytest.mark.parametrize("spelling", TEXTS)
def test_the_same_rows_are_written(spelling: str, tmp_path: Path) -> None:
    """The other rows keep their zeros, which a copy of whole blocks would not leave."""
    file = tmp_path / "k.py"
    file.write_text(TEXTS[spelling], encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]


def test_lengths_of_a_tensor_of_unknown_type_are_integers() -> None:
    """What decides whether a block has work, compared with the number of the block, is taken for a number of rows."""
    text = packed(WHOLE, kind="").replace("\n\n\nf(", "")
    assert refusals(text) == []
    assert 'ends_ptr: T.Tensor((ends_shape_0,), "int32")' in to_tilelang(text).text
    said = [note.message for kernel in to_tilelang(text).kernels for note in kernel.notes if note.code == "TL505"]
    assert "`ends_ptr` is taken for int32: nothing in the file shows its element type" in said


def test_floats_decide_nothing() -> None:
    assert refusals(packed(WHOLE, kind="torch.float32")) != []


def test_columns_and_sums_by_data_are_refused() -> None:
    columns = WHOLE.replace("mask=(at < n)[:, None])", "mask=(c < n)[None, :])")
    assert refusals(packed(columns)) == ["TL508"]
    both = WHOLE.replace("mask=(at < n)[:, None])", "mask=(at < n)[:, None] & (c < n)[None, :])")
    assert refusals(packed(both)) == ["TL508"]
    summed = WHOLE.replace("tl.store(y_ptr", "tl.atomic_add(y_ptr")
    assert refusals(packed(summed)) == ["TL522"]


def test_a_size_of_the_launch_is_no_length_that_is_loaded() -> None:
    """A mask that ends behind the end of a tensor by what the host passes stays refused."""
    text = packed(WHOLE).replace("(at < n)", "(at < 19)").replace("at < n", "at < 19").replace("start + at", "at")
    assert refusals(text) == ["TL508"]
