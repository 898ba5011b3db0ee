"""Every row of the table: it is found by its example, says something, and names its source."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.each import each
from tests.errors.page import page
from tl2npu.codes import CODES as RULES
from tl2npu.errors.aicore import BITS, BITS_A5
from tl2npu.errors.entry import KINDS, Entry, Template
from tl2npu.errors.log import explain
from tl2npu.errors.search import search
from tl2npu.errors.table import BY_KEY, CODES, ENTRIES

every_entry = each(ENTRIES, lambda entry: entry.key)


def keys(text: str) -> list[str]:
    return [found.entry.key for found in explain(text).found]


def filled(template: Template) -> str:
    """The message with a word for each placeholder."""
    return re.sub(r"\{\w+\}", "w0rd", template.text).replace("...", " some text ")


@every_entry
def test_an_example_is_explained_by_its_row(entry: Entry) -> None:
    """And by none that is more specific: the row comes first."""
    assert keys(entry.example)[:1] == [entry.key]


@every_entry
def test_every_message_of_a_row_leads_to_it(entry: Entry) -> None:
    for template in entry.says:
        assert entry.key in keys(f"prefix: {filled(template)} and more"), template.text


@every_entry
def test_a_row_is_complete(entry: Entry) -> None:
    assert entry.kind in KINDS
    assert entry.means
    assert entry.do
    assert not entry.means.endswith(".")
    assert not entry.do.endswith(".")
    assert re.search(r"\w+/\w+|\.py|\.cc|measured|clang|torch|Python|CANN|loader|AscendNPU", entry.source), entry.source
    assert set(entry.rules) <= set(RULES)
    assert len(set(entry.rules)) == len(entry.rules)


@every_entry
def test_a_template_is_quick_and_telling(entry: Entry) -> None:
    """One gap at most, so that no line takes long; enough text that it says what it means."""
    for template in entry.says:
        assert template.text.count("...") <= 1
        assert len(template.needle) >= 7, template.text


def test_keys_are_unique_and_there_are_many() -> None:
    assert [key for key, count in Counter(entry.key for entry in ENTRIES).items() if count > 1] == []
    said = sum(len(entry.says) for entry in ENTRIES if entry.key not in CODES)
    assert len(CODES) >= 100
    assert said >= 400


def test_bits_lead_to_rows_of_the_ai_core() -> None:
    for table in (BITS, BITS_A5):
        assert {BY_KEY[key].layer for key in table.values()} == {"AI core"}


def test_a_template_is_no_regular_expression() -> None:
    template = Template("a.b(c)* {name} [d]... e")
    assert template.literals == ("a.b(c)* ", " [d]", " e")
    found = template.pattern.search("x a.b(c)* foo [d] whatever e")
    assert found is not None
    assert found.groupdict() == {"name": "foo"}
    assert template.pattern.search("aXb(c)* foo [d] e") is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("v_thread", ["parallel-left-over"]),
        ("new memory available", ["memory-planning"]),
        ("Memory allocation failed for", ["memory-planning", "planned-conflict"]),
        ("vec instruction align", ["ub-unaligned"]),
        ("has no attribute access_ptr", ["slice-as-operand", "region-as-operand"]),
        ("undeclared identifier 'T'", ["undeclared-template-parameter"]),
        ("illegal instruction align", ["illegal-instruction"]),
        ("ub overflow", ["ub-overflow"]),
        ("the quick brown fox", []),
        ("T", []),
        ("", []),
        ("a b c", []),
    ],
)
def test_words_of_a_message(words: str, expected: list[str]) -> None:
    assert [entry.key for entry in search(words)][: len(expected) or None] == expected


def test_a_search_shows_a_few() -> None:
    assert len(search("errorStr")) == 8


def test_the_page_is_up_to_date() -> None:
    """``python -m tests.errors.page > docs/errors.md``."""
    written = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == page()
