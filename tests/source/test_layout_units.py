from __future__ import annotations

from pathlib import Path

import black
import pytest

from tl2npu.source.layout import relayout
from tl2npu.source.layout_units import cut, laid_out, new_in

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*/*/after.py"))[::3]]
MODE = black.Mode()

OLD = '''\
"""Doc."""

import os


@deco
def f(a, b=1):
    """Doc."""
    # why
    with g(a) as (x):
        if a:
            h(a)

            h(b)
        elif b:
            h(1)
        else:
            # nothing
            h(2)

    def inner():
        return 1

    return inner


f(1, [os])
'''


def formatted(text: str) -> str:
    return black.format_str(text, mode=MODE)


def test_the_units_of_a_text_are_the_text() -> None:
    for text in [OLD, "", "\n", "x = 1", "a; b\nif a: b; c\nelse: d\n", *TEXTS]:
        assert "".join(unit.text for unit in cut(text)) == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h(b)\n", "h(b, a)\n"),
        ("            h(1)\n", "            h( 1)\n            h (2)\n"),
        ("            h(2)\n", "            for i in (1,2):\n                h( 1)\n"),
        ("    return inner\n", "    x= 1\n    return inner\n"),
        ("    def inner():\n        return 1\n\n", ""),
        ("def f(a, b=1):", "def f(a, " + ", ".join(f"argument_{n}" for n in range(9)) + ",b=1):"),
        ("f(1, [os])\n", "f( 1, [os])\n\n\n\n"),
        ("import os\n", "import os\nimport sys\nx=  1\n"),
        ("with g(a) as (x):", "with g(a) as (x,y), h( 1):"),
    ],
)
def test_parts_are_laid_out_as_the_whole_would_be(old: str, new: str, tmp_path: Path) -> None:
    assert formatted(OLD) == OLD
    assert old in OLD
    changed = OLD.replace(old, new)
    assert relayout(OLD, changed, tmp_path / "x.py") == formatted(changed)


def test_parts_of_the_fixtures_are_laid_out_as_the_whole_would_be() -> None:
    for text in TEXTS:
        if formatted(text) != text:
            continue
        loose = text.replace("(A", "( A", 5).replace(", ", ",", 3).replace(" = ", "=", 2)
        before, after = cut(text), cut(loose)
        result = laid_out(after, new_in(after, before), formatted)
        assert result is not None
        assert "".join(result.get(number, unit.text) for number, unit in enumerate(after)) == formatted(loose)


def test_each_branch_of_a_long_chain_needs_each_one_before_it_once() -> None:
    arms = "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(60))
    units = cut("if x:\n    y = 1\n" + arms)
    assert all(len(set(unit.needs)) == len(unit.needs) for unit in units)


def test_a_file_with_lines_that_black_would_split_is_not_blacks(tmp_path: Path) -> None:
    long = "f(" + ", ".join(f"argument_{n}" for n in range(9)) + ")\n"
    assert relayout(long + "x = 1\n", long + "x = f( 1)\n", tmp_path / "x.py") == long + "x = f( 1)\n"


def test_a_statement_that_was_not_blacks_is_not_laid_out(tmp_path: Path) -> None:
    assert relayout(OLD + "x = f( 1)\n", OLD + "x = f( 2)\n", tmp_path / "x.py") == OLD + "x = f( 2)\n"


def test_switches_are_respected(tmp_path: Path) -> None:
    text = "# fmt: off\nx = [ 1]\n# fmt: on\ny = 1\n"
    assert relayout(text, text + "y=2\nx = [ 2]\n", tmp_path / "x.py") == text + "y = 2\nx = [2]\n"
