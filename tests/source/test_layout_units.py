from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import black
import pytest

from tl2npu.source.layout import relayout
from tl2npu.source.layout_plain import is_plain
from tl2npu.source.layout_units import cut, laid_out, new_in, unusual

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
        numbers = unusual(after, new_in(after, before), MODE.line_length)
        done = laid_out(after, numbers, formatted, MODE.line_length)
        assert done is not None
        result = dict(zip(numbers, done, strict=True))
        assert "".join(result.get(number, unit.text) for number, unit in enumerate(after)) == formatted(loose)


def test_each_branch_of_a_long_chain_needs_each_one_before_it_once() -> None:
    arms = "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(60))
    units = cut("if x:\n    y = 1\n" + arms)
    assert all(len(set(unit.needs)) == len(unit.needs) for unit in units)


def test_plain_lines_are_left_alone_by_black() -> None:
    found = sorted({line.strip() for text in TEXTS for line in text.split("\n") if is_plain(line + "\n", 80)})
    lines = [f"    {line}\n        pass\n" if line.endswith(":") else f"    {line}\n" for line in found]
    text = "def f():\n" + "".join(line for line in lines if _is_whole(line))
    assert len(found) > 300
    assert formatted(text).replace("\n\n", "\n") == text  # heads of functions and imports get blank lines around them


def _is_whole(line: str) -> bool:
    """Whether it is a statement, and no part of one, such as ``else:`` or a line of an expression in brackets."""
    try:
        compile(f"def f():\n{line}", "line", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    "line",
    [
        "f(a , b)",
        "x = a ** 2",
        "x = a.b(c)**2",
        "x[f(a):b]",
        "x = [(a)]",
        "for i, in x:",
        "f(\n    a, b\n)",
        "f(\n    a,\n    b=(1),\n)",
        "@f(\n    a\n)\ndef g():",
        "def f(a: int=1):",
        "def f(a,b):",
        "f( a)",
        "f(a) # why",
        "f(a)  #why",
        "f(a)  # type: ignore",
        "f('a')",
        "x = (a)",
        "return (a)",
        "x=1",
        "f(a = 1)",
        "f(a,)",
        "x[a : b]",
        "x[a+1:b]",
        "x[a + 1:b]",
        "x[a : b, c + 1]",
        "x[a :, b]",
        "x = not(a)",
        "for i in(1, 2):",
        "x = 0XF",
        "x =  1",
        'x = "a" "b" if f(\'c\') else d',
        "f(a);g(b)",
        "x = 1E5",
        "x = - 1",
        "f(" + "a, " * 40 + "a)",
    ],
)
def test_lines_that_black_might_change_are_not_plain(line: str) -> None:
    assert not is_plain(line + "\n", 88)
    assert not is_plain("    " + line + "\n", 88)


def test_a_file_with_lines_that_black_would_split_is_not_blacks(tmp_path: Path) -> None:
    long = "f(" + ", ".join(f"argument_{n}" for n in range(9)) + ")\n"
    assert relayout(long + "x = 1\n", long + "x = f( 1)\n", tmp_path / "x.py") == long + "x = f( 1)\n"


def test_a_statement_that_was_not_blacks_is_not_laid_out(tmp_path: Path) -> None:
    assert relayout(OLD + "x = f( 1)\n", OLD + "x = f( 2)\n", tmp_path / "x.py") == OLD + "x = f( 2)\n"


def test_switches_are_respected(tmp_path: Path) -> None:
    text = "# fmt: off\nx = [ 1]\n# fmt: on\ny = 1\n"
    assert relayout(text, text + "y=2\nx = [ 2]\n", tmp_path / "x.py") == text + "y = 2\nx = [2]\n"


def test_black_is_not_imported_for_what_it_would_leave_alone(tmp_path: Path) -> None:
    code = f"""
import sys
from tl2npu.source.layout import relayout
old = {OLD!r}
assert relayout(old, old.replace("h(b)", "h(b, a)").replace("import os\\n", "import os\\n\\n\\nx = 1\\n"), sys.argv[1])
assert "black" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.py")], check=True)
