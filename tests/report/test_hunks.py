from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.report.hunks import Block, block_at, blocks, hunks_of, parse_unified, unified

TEXT = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "\f\n", "- d\n", "@@ -1 +1 @@\n", "e\u2028\n"]), max_size=12
).map("".join)


def applied(old: str, found: list[Block]) -> str:
    """The old text with every block replaced, from the end to the beginning."""
    lines = old.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    for block in reversed(found):
        new = [line + "\n" for line in block.new]
        if new and block.at_end[1]:
            new[-1] = new[-1].removesuffix("\n")
        start = block.line - 1
        expected = [line + "\n" for line in block.old]
        if expected and block.at_end[0]:
            expected[-1] = expected[-1].removesuffix("\n")
        assert lines[start : start + len(block.old)] == expected
        lines[start : start + len(block.old)] = new
    return "".join(lines)


@given(TEXT, TEXT, st.booleans(), st.booleans())
def test_blocks_make_the_new_text(old: str, new: str, old_open: bool, new_open: bool) -> None:
    old, new = old + "end" * old_open, new + "end" * new_open
    found = hunks_of(old, new)
    assert applied(old, list(blocks(found))) == new
    assert parse_unified(unified("k.py", found)) == found
    assert (found == ()) == (old == new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a", "b\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("a\r\nb\n", "a\nb"),
        ("x\n" * 30, "x\n" * 20 + "y\n" * 9),
    ],
)
def test_git_applies_the_patch(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "k l.py"
    path.write_bytes(old.encode())
    patch = unified("k l.py", hunks_of(old, new))
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert path.read_bytes() == new.encode()


def test_the_change_of_a_line() -> None:
    found = hunks_of("a\nb\nc\nd\n", "a\nB\nC\nd\ne\n")
    assert block_at(found, 3) == Block(2, ("b", "c"), ("B", "C"))
    assert block_at(found, 1) is block_at(found, 4) is block_at((), 1) is None


def test_insertions_stand_before_a_line() -> None:
    assert list(blocks(hunks_of("", "a\n"))) == [Block(1, (), ("a",))]
    assert list(blocks(hunks_of("a\nb\n", "a\nx\nb\n"))) == [Block(2, (), ("x",))]
    assert list(blocks(hunks_of("a\nb\n", "a\nx\nb\n", context=0))) == [Block(2, (), ("x",))]


def test_a_broken_patch_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a line of a diff: 'x'"):
        parse_unified("@@ -1 +1 @@\nx\n")
