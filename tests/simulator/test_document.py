"""docs/simulator.md: every row of what is modelled names a test file that is there and has tests in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
MODELLED, _, NOT_MODELLED = TEXT.partition("## What is not modelled")
ROWS = [line for line in MODELLED.splitlines() if line.startswith("| ") and not line.endswith(("--- |", "| test |"))]


def test_there_are_rows() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:50])
def test_every_row_names_a_test(row: str) -> None:
    links = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", row)
    assert links, row
    for link in links:
        assert "def test_" in (ROOT / link).read_text(encoding="utf-8")


def test_what_is_not_modelled_says_what_happens_instead() -> None:
    rows = [line for line in NOT_MODELLED.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 4
    assert all(len([cell for cell in row.split("|")[1:-1] if cell.strip()]) == 2 for row in rows)
