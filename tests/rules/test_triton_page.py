"""``docs/triton.md``, ``docs/a5.md``, ``docs/gpu.md``: the example is what the tool writes; refusals have rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tl2npu.codes import CODES
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.rules import load_rules
from tl2npu.triton.result import migrate_triton

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {"triton": "softmax", "a5": "product"}
"""Group of rules and name of the page -> name of the file in its example."""


def text(name: str) -> str:
    """A page of the documentation."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def fence(name: str, tag: str) -> str:
    """The text of the only fence with this tag."""
    found: list[str] = re.findall(rf"^```{tag}\n(.*?)^```$", text(name), flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(("name", "file"), PAGES.items())
def test_example_is_what_the_tool_writes(name: str, file: str) -> None:
    result = migrate_triton(fence(name, "python before"), f"{file}.py", Options())
    assert result.error is None
    assert result.beside == f"{file}_tilelang.py"
    assert result.new_text == fence(name, "python after")


def test_the_attention_of_the_page_about_gpu_kernels_is_what_the_tool_writes() -> None:
    result = migrate_text(fence("gpu", "python before"), "attention.py", Options())
    assert result.new_text == fence("gpu", "python after")


def test_one_row_per_program_takes_one_vector_core() -> None:
    assert "threads=1" in fence("triton", "python after")


@pytest.mark.parametrize("name", PAGES)
def test_every_refusal_is_in_the_table(name: str) -> None:
    group = [page for page in load_rules().values() if page.group == name]
    refusals = [page for page in group if page.severity == "error"]
    expected = [
        f"| [{page.code}](../rules/{name}/{page.path.name}) | {page.summary[:-1]} | {CODES[page.code].remedy} |"
        for page in refusals
    ]
    assert re.findall(r"^\| \[TL.*$", text(name), flags=re.MULTILINE) == expected
    notes = {page.code for page in group if page not in refusals} - {"TL501"}
    assert notes <= set(re.findall(r"TL\d+", text(name)))
