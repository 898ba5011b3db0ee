"""Findings name the author's tiles, not those that passes add."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.provenance import author_of, buffers_of, in_authors_words

ROOT = Path(__file__).resolve().parents[2]
BUFFERS = {"x", "x_half", "Bias"}
ADDED = {"x_half_tmp", "x_l0c", "bias_tile", "row_index"}


@pytest.mark.parametrize(
    ("name", "author"),
    [("x_l0c", "x"), ("x_half_tmp", "x_half"), ("bias_tile", "Bias"), ("row_index", None), ("xs_tmp", None)],
)
def test_the_longest_name_is_the_authors(name: str, author: str | None) -> None:
    assert author_of(name, BUFFERS) == author


@pytest.mark.parametrize("buffers", [["dQ", "dq"], ["dq", "dQ"]])
def test_of_names_that_differ_in_case_the_repeated_one_counts(buffers: list[str]) -> None:
    assert author_of("dq_part", buffers) == "dq"
    assert author_of("dQ_part", buffers) == "dQ"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("half of `x_half_tmp` is 16 bytes", "half of a tile added for `x_half` is 16 bytes"),
        ("needs all rows of `row_index`", "needs all rows of an added tile"),
        ("`1 / x_l0c[i]` is infinite", "`1 / x[i]` is infinite"),
        ("`x[row_index[i]]` is read", "an added tile is read"),
        ("`x` and x_l0c, `T.x_l0c`", "`x` and x_l0c, `T.x_l0c`"),
    ],
)
def test_what_is_said_of_added_tiles(message: str, said: str) -> None:
    assert in_authors_words(message, ADDED, BUFFERS) == said


def test_buffers_are_allocated_or_given() -> None:
    text = "def f(A: T.Tensor):\n    x = T.alloc_shared((n,), dtype)\n    y = n\n    z = alloc_fragment(n)\n"
    assert buffers_of(cst.parse_module(text)) == {"A", "x", "z"}


def test_findings_name_tiles_of_the_input() -> None:
    """The product lands in a tile of its own in L0C, of 128 x 256 numbers, which is what does not fit."""
    path = ROOT / "fixtures" / "gpu" / "chunk_state" / "before.py"
    text = path.read_text(encoding="utf-8")
    large = text.replace("(1, 128, 2, 64, 64)(", "(1, 128, 2, 128, 512, BK=128, BV=256)(")
    assert large != text
    result = migrate_text(large, str(path), Options())
    assert result.new_text is not None
    assert "h_l0c" in result.new_text
    said = [result.kernels[0].reason, *(item.message for item in result.diagnostics)]
    assert any("a tile added for `h`" in text for text in said)
    assert not any("h_l0c" in text for text in said)
