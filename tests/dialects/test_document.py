"""The page for readers."""

from __future__ import annotations

from pathlib import Path

from tests.dialects.page_of_ascend import argument, page
from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.catalogue import Param, Role

PAGE = Path(__file__).parents[2] / "docs" / "dialect-ascend.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.dialects.page_of_ascend"


def test_page_names_every_operator() -> None:
    text = page()
    assert [name for name in OPERATORS if f"`{name}`" not in text] == []


def test_every_table_row_has_its_columns() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `tile.")]
    assert len(rows) > 60
    assert {line.replace("\\|", "").count("|") for line in rows} == {8}


def test_arguments() -> None:
    assert argument(Param("src1", Role.READ, scalar=True)) == "<src1?"
    assert argument(Param("dst", Role.ACCUMULATE)) == ">>dst"
    assert argument(Param("blocks", Role.SCALAR, kind="variadic")) == "*blocks"
    assert argument(Param("init", Role.FLAG, "False", "keyword")) == "init=False"
