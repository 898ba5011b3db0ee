from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.support import FILES, RUN, hostile, many, report
from tl2npu.report.build import build
from tl2npu.report.markdown import COMMENT_LIMIT, MARKER, render
from tl2npu.results import FileResult


def test_the_whole_comment() -> None:
    assert render(report()) == Path(__file__).with_name("comment.md").read_text(encoding="utf-8")
    assert render(report()).startswith(MARKER)


def test_an_empty_run() -> None:
    text = render(build(RUN, []))
    assert "0 files would change; no kernels" in text
    assert "<details>" not in text


@pytest.mark.parametrize("count", [30, 500, 1500])
def test_it_fits_and_says_what_was_left_out(count: int) -> None:
    text = render(many(count))
    assert len(text.encode()) <= COMMENT_LIMIT
    left = re.search(r"\*\*Cut:\*\* ([\d,]+) items left out, GitHub takes 65,536 characters", text)
    shown = len(re.findall(r"^(\| <code>|- error|- <code>|<details><summary><code>)", text, re.MULTILINE))
    items = (count - sum(n % 4 == 3 for n in range(count))) + count + 2 * sum(n % 2 == 0 for n in range(count))
    assert shown + (int(left.group(1).replace(",", "")) if left else 0) == items  # kernels, findings, reviews and diffs
    assert (left is None) == (count == 30)
    assert text.count("<details>") == text.count("</details>")


def test_a_file_that_is_too_large_makes_room_for_the_others() -> None:
    big = FileResult("big.py", "a\n" * 40_000, "b\n" * 40_000)
    text = render(build(RUN, [big, FILES[0]]))
    assert "**Cut:** 1 item left out" in text
    assert "-\twith T.Scope('C'):" in text


def test_hostile_texts_are_inert() -> None:
    text = render(hostile())
    outside = re.sub(r"^(`{3,})diff\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert outside.count("```") == 0  # every fence was closed by its own
    tags = set(re.findall(r"<[^>]*>", outside))
    assert tags == {MARKER, "<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"}
    assert not re.search(r"(?<!<)@team|[^&]#1\b", re.sub(r"<code>.*?</code>", "", outside))
    rows = [line for line in outside.split("\n") if line.startswith("| <code>")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [8]
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_fence_in_the_source_does_not_end_the_diff() -> None:
    old = 's = """\n````\nx\n````\n"""\n'
    text = render(build(RUN, [FileResult("k.py", old, old.replace("x", "y"))]))
    assert "\n`````diff\n" in text
    assert text.count("\n`````\n") == 1


def test_a_check_has_no_ledger() -> None:
    text = render(replace(report(), run=replace(RUN, task="check")))
    assert text.startswith(f"{MARKER}\n## tl2npu check\n")
    assert "### Kernels" not in text
    assert "3 findings" in text
