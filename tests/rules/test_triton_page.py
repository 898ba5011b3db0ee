"""``docs/triton.md``: its example is what the tool writes, its table has every refusal."""

from __future__ import annotations

import re
from pathlib import Path

from tl2npu.codes import CODES
from tl2npu.options import Options
from tl2npu.rules import load_rules
from tl2npu.triton.result import migrate_triton

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "triton.md").read_text(encoding="utf-8")


def fence(tag: str) -> str:
    """The text of the only fence with this tag."""
    found: list[str] = re.findall(rf"^```{tag}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_example_is_what_the_tool_writes() -> None:
    result = migrate_triton(fence("python before"), "softmax.py", Options())
    assert result.error is None
    assert result.beside == "softmax_tilelang.py"
    assert result.new_text == fence("python after")


def test_one_row_per_program_takes_one_vector_core() -> None:
    assert "threads=1" in fence("python after")


def test_every_refusal_is_in_the_table() -> None:
    group = [page for page in load_rules().values() if page.group == "triton"]
    refusals = [page for page in group if page.severity == "error"]
    expected = [
        f"| [{page.code}](../rules/triton/{page.path.name}) | {page.summary[:-1]} | {CODES[page.code].remedy} |"
        for page in refusals
    ]
    assert re.findall(r"^\| \[TL.*$", PAGE, flags=re.MULTILINE) == expected
    notes = {page.code for page in group if page not in refusals} - {"TL501"}
    assert notes <= set(re.findall(r"TL\d+", PAGE))
