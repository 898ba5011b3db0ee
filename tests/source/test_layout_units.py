from __future__ import annotations

import ast
import random
import warnings
from pathlib import Path

import black
import pytest

from tl2npu.source.layout import relayout
from tl2npu.source.layout_units import cut, is_certain, laid_out, new_in

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


@pytest.mark.thorough
def test_parts_of_the_fixtures_are_laid_out_as_the_whole_would_be() -> None:
    for text in TEXTS:
        if formatted(text) != text:
            continue
        loose = text.replace("(A", "( A", 5).replace(", ", ",", 3).replace(" = ", "=", 2)
        before, after = cut(text), cut(loose)
        result = laid_out(after, new_in(after, before), formatted)
        assert result is not None
        assert "".join(result.get(number, unit.text) for number, unit in enumerate(after)) == formatted(loose)


def certain(text: str) -> list[int]:
    units = cut(text)
    return [number for number in range(len(units)) if is_certain(units, number, 88)]


WORDS = [*"abc", "x.y", "T.copy", "return", "not", "yield", "12", "1.5", "1e-3", "0x1F", "1E5", '"s"', "'s'", 'f"s"']
OPERATORS = [*"+-*/%@<|&=:", "**", "//", "==", "<<", "->"]


class Drawn:
    """Statements, most of them in black's layout but for one place or two."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def pick(self, usual: str, *others: str) -> str:
        return self.chance.choice(others) if self.chance.random() < 0.04 else usual

    def several(self, depth: int) -> str:
        found = [self.value(depth) for _ in range(self.chance.randrange(4))]
        return self.pick(", ", ",", " , ").join(found) + self.pick("", ",", ", ", " ")

    def value(self, depth: int) -> str:
        kind = self.chance.randrange(11) if depth else 8
        if kind > 8:
            begin, end = (self.chance.choice(["", "a", "b.c", "8", self.value(depth - 1)]) for _ in range(2))
            space = self.chance.choice(["", " "])
            return f"{self.callee()}[{begin}{space}:{space}{end}{self.chance.choice(['', ', :', ', 0'])}]"
        if kind < 2:
            return f"{self.callee()}{self.pick('', ' ')}({self.several(depth - 1)})"
        if kind < 4:
            return f"{self.callee()}{self.pick('', ' ')}[{self.value(depth - 1)}, {self.value(depth - 1)}]"
        if kind < 6:
            space = self.pick(" ", "", "  ")
            return f"{self.value(depth - 1)}{space}{self.chance.choice(OPERATORS)}{space}{self.value(depth - 1)}"
        if kind == 6:
            return self.chance.choice(["(%s)", "[%s]", "f(x=%s)", "-%s", "(a, %s)", "b * (%s)"]) % self.value(depth - 1)
        return self.chance.choice(WORDS if self.chance.random() < 0.2 else WORDS[:5])

    def callee(self) -> str:
        return self.pick(self.chance.choice(WORDS[:5]), "not", "return", "yield")

    def statement(self) -> str:
        value, head = (
            self.value(3),
            self.chance.choice(["", "", "x = ", "x, y = ", "return ", "assert ", "if ", "with ", "for x in ", "a += "]),
        )
        end = self.chance.choice(["", " as y", " as (x, y)", " as (x)"]) if head == "with " else ""
        return head + value + (end + ":\n    pass" if head.startswith(("if", "with", "for")) else "")


def parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("def f():\n    " + text.replace("\n", "\n    "))
    except SyntaxError:
        return False
    return True


def test_black_leaves_alone_what_it_is_not_asked_about() -> None:
    drawn = Drawn(5)
    body = [line for _ in range(6000) if parses(line := drawn.statement())]
    units = cut("def f():\n    x\n" + "".join("    " + line.replace("\n", "\n    ") + "\n    x\n" for line in body))
    kept = [unit.text for n, unit in enumerate(units) if unit.depth == 1 and is_certain(units, n, 88)]
    assert len(set(kept)) > 500
    text = "def f():\n    x\n" + "".join(line + "        x\n" * line.endswith(":\n") for line in dict.fromkeys(kept))
    assert formatted(text) == text


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*/before.py"))[::8], ids=lambda path: path.parent.name)
def test_nor_in_whole_files(path: Path) -> None:
    units = cut(path.read_text(encoding="utf-8"))
    numbers = [number for number in range(len(units)) if is_certain(units, number, 88)]
    assert numbers
    assert laid_out(units, numbers, formatted) == {number: units[number].text for number in numbers}


@pytest.mark.parametrize(
    "text",
    [
        "import a\nx = 1\n",
        '"""Doc."""\nx = 1\n',
        "if a:\n\n\n    x = 1\n",
        "def f():\n    y = 1\nx = 1\n",
        "if a:\n    def f():\n        y = 1\nx = 1\n",
        "try:\n    a\nfinally:\n    def f():\n        y = 1\nx = 1\n",
        "if a:\n  x = 1\n",
        "y = 1\n\n\n\nx = 1\n",
        "y = 1\nx = f(a=1, b= 2)\n",
        "y = 1\nx = (a + b)\n",
        "y = 1\nx = y=1\n",
        "y = 1\nx = f(a, )\n",
        "y = 1\nx = a[b + 1:c]\n",
        "y = 1\nx = a[f(b):c]\n",
        "y = 1\nx = a[b : c]\n",
        "y = 1\nx = f(a, lambda:0, b)\n",
        'y = 1\nx = f("' + "a" * 80 + '", 1)\n',
    ],
)
def test_what_black_may_have_to_do_with_is_not_certain(text: str) -> None:
    assert formatted(text) != text
    units = cut(text)
    assert not any("x = " in units[number].text for number in certain(text))


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
