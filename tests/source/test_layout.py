from __future__ import annotations

from pathlib import Path

import pytest

from tl2npu.source import layout
from tl2npu.source.layout import relayout

LONG = "f(" + ", ".join(f"argument_{n}" for n in range(9)) + ")\n"  # 108 characters
WRAPPED = "f(\n" + "".join(f"    argument_{n},\n" for n in range(9)) + ")\n"


def at(tmp_path: Path, project: str | None) -> Path:
    (tmp_path / "deep").mkdir()
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    return tmp_path / "deep" / "x.py"


def test_a_black_file_is_laid_out_again(tmp_path: Path) -> None:
    path = at(tmp_path, "")
    assert relayout("x = 1\n", LONG, path) == WRAPPED
    assert relayout("x = 1\n", "x = (1, )\n", path) == "x = (1,)\n"


def test_any_other_file_is_left_alone(tmp_path: Path) -> None:
    path = at(tmp_path, "")
    for old in ("x=1\n", "x = 'a'\n", "x = 1"):
        assert relayout(old, LONG, path) == LONG


@pytest.mark.parametrize(
    ("project", "result"),
    [
        ("[tool.black]\nline-length = 120\n", LONG),
        ("[tool.black]\nline_length = 120\n", LONG),
        ("[tool.black]\npreview = true\n", WRAPPED),
        ("[tool.ruff]\nline-length = 140\n", LONG),
        ("[tool.ruff]\nline-length = 140\n[tool.black]\nline-length = 88\n", WRAPPED),
        ("[tool.ruff]\n", WRAPPED),
        (None, WRAPPED),
    ],
)
def test_the_files_own_configuration_holds(tmp_path: Path, project: str | None, result: str) -> None:
    assert relayout("x = 1\n", LONG, at(tmp_path, project)) == result


def test_quotes_and_magic_commas_follow_the_configuration(tmp_path: Path) -> None:
    path = at(tmp_path, "[tool.black]\nskip-string-normalization = true\nskip-magic-trailing-comma = true\n")
    assert relayout("x = 'a'\n", "f('b',)\n", path) == "f('b')\n"


def test_line_ends_stay(tmp_path: Path) -> None:
    path = at(tmp_path, "")
    assert relayout("x = 1\r\n", "f( 1 )\r\n", path) == "f(1)\r\n"
    for mixed in ("x = 1\r\ny = 1\n", "x = 1\ry = 2\n"):
        assert relayout(mixed, mixed + "f( 1 )\n", path) == mixed + "f(1)\n"


@pytest.mark.parametrize("project", ["[tool.black]\ntarget-version = ['py99']\n", "not toml"])
def test_black_never_costs_a_migration(tmp_path: Path, project: str) -> None:
    assert relayout("x = 1\n", "f( 1 )\n", at(tmp_path, project)) == "f( 1 )\n"


def test_text_that_black_cannot_read(tmp_path: Path) -> None:
    assert relayout("x = 1\n", "f( 1 \n", at(tmp_path, "")) == "f( 1 \n"


def test_black_is_not_imported_early() -> None:
    assert not hasattr(layout, "black")


ELSEWHERE = "def f():\n" + "".join(f"    a{i} = [{i}, {i} + 1]\n" for i in range(40))


def test_statements_all_over_the_file_are_asked(tmp_path: Path) -> None:
    black, not_black = ELSEWHERE, ELSEWHERE.replace(" + 1]", "+1]")
    path = at(tmp_path, None)
    for text, result in ((black, "x = [1, 2]\n"), (not_black, "x = [1,2]\n")):
        new = relayout(text + "\n\nx = (1, 2)\n", text + "\n\nx = [1,2]\n", path)
        assert new.endswith(result)


def test_a_statement_below_a_new_one_stays_as_it_is(tmp_path: Path) -> None:
    head = "def f(\n    a, b\n):\n    return a\n"
    old = "import x\n\n\n@x.y(1)\n" + head
    assert head in relayout(old, old.replace("@x.y(1)", "@x.y( 2 )"), at(tmp_path, None))


WIDE = "z = f(" + ", ".join(f"argument_{n} * {n}" for n in range(9)) + ", 'a')\n"  # 151 characters
BROKEN = "z = f(\n" + "".join(f"    argument_{n} * {n},\n" for n in range(9)) + "    'a',\n)\n"


@pytest.mark.parametrize(
    ("old", "before", "after"),
    [
        ("x=1\n", WIDE, BROKEN),
        ("x=1\n", "x=1\n\n" + WIDE + "y=2\n", "x=1\n\n" + BROKEN + "y=2\n"),
        ("x=1\n" + WIDE, WIDE + "y=2\n", WIDE + "y=2\n"),  # the author's own
        ("x=1\n", "if x:\n  " + WIDE, "if x:\n  " + WIDE),  # what black indents in another way
        ("x=1\n", "if x:\n    " + WIDE, "if x:\n" + "".join(f"    {line}\n" for line in BROKEN.splitlines())),
        ("x=1\n", "# " + "wide " * 40 + "\nx=1\n", "# " + "wide " * 40 + "\nx=1\n"),
        ("x=1\n", "x=1  # fmt: skip\n" + WIDE, "x=1  # fmt: skip\n" + WIDE),
        ("x=1\r\n", WIDE.replace("\n", "\r\n"), BROKEN.replace("\n", "\r\n")),
    ],
)
def test_new_statements_that_are_too_wide_are_broken_in_any_file(
    old: str, before: str, after: str, tmp_path: Path
) -> None:
    assert relayout(old, before, at(tmp_path, "")) == after
    assert relayout(old, before, at_width(tmp_path)) == before


def at_width(tmp_path: Path) -> Path:
    """Where lines may be as wide as these."""
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide" / "pyproject.toml").write_text("[tool.black]\nline-length = 160\n")
    return tmp_path / "wide" / "x.py"
