"""What the author indents and ends lines with is what the migration does, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source.text import with_line_ends

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TEXTS = [
    (FIXTURES / name / "before.py").read_text(encoding="utf-8")
    for name in ("workspace/gemm_relu", "gpu/clamp_where", "expert/macro_signals")
]


def migrated(text: str) -> str:
    result = migrate_text(text, "k.py", Options())
    assert result.changed
    assert result.new_text is not None
    return result.new_text


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_tabs_stay_tabs(text: str) -> None:
    with_tabs = re.sub(r"^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), text, flags=re.M)
    new = migrated(with_tabs)
    assert "pass_configs" in new
    assert re.findall(r"^\t* {4}.*", new, flags=re.M) == []


@pytest.mark.parametrize("every", [3, 7])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_mixed_line_ends_do_not_spread(text: str, every: int) -> None:
    """The first line, which LibCST goes by, has the rarer one; lines that stay keep theirs, others get the usual."""
    lines = text.splitlines()
    mixed = "".join(line + ("\n" if number % every else "\r\n") for number, line in enumerate(lines))
    new = migrated(mixed)
    assert new.replace("\r\n", "\n") == migrated(text)
    assert 0 < new.count("\r\n") <= mixed.count("\r\n")
    assert all(line in lines for line in re.findall(r"(.*)\r\n", new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
        ("a\r\nb\nc\n", "a\r\nx\r\nb\nc\n", "a\r\nx\nb\nc\n"),
        ("a\nb\r\nc\r\n", "x\nc\r\n", "x\r\nc\r\n"),
        ("a\rb\nc\n", "a\rb\nd", "a\rb\nd"),
        ("a\r\nb\nc", "a\r\nc\r\nd\r\n", "a\r\nc\nd\n"),  # as many of one kind as of the other
        ("a\r\nb\nb\nc", "c\r\nd", "c\nd"),
    ],
)
def test_line_ends(old: str, new: str, expected: str) -> None:
    assert with_line_ends(old, old) == old
    assert with_line_ends(old, new) == expected
