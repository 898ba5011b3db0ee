"""``-o``: files that follow others go to another place with them, all or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import repository
from tests.across.test_followers import FACTORY, NEW, script
from tl2npu.cli import cli

FILES = {"ops/__init__.py": "", "ops/k.py": FACTORY, "tests/main.py": script("from ops.k import factory")}


def migrate(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and the output of ``tl2npu migrate``."""
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", *map(str, arguments)])
    return done.exit_code, done.output


def texts(root: Path) -> dict[str, str]:
    """All Python files below a directory."""
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.rglob("*.py"))}


@pytest.mark.parametrize("inside", [True, False])
def test_both_are_there(tmp_path: Path, inside: bool) -> None:
    root = repository(tmp_path / "repo", FILES)
    out = root / "out" if inside else tmp_path / "out"
    before = texts(root)
    for _ in range(1 if inside else 2):
        code, output = migrate(root / "ops", root / "tests", "-o", out)
        assert code == 0, output
        new = texts(out)
        assert set(new) == {"ops/__init__.py", "ops/k.py", "tests/main.py"}
        assert "workspace" not in new["ops/k.py"] + new["tests/main.py"]
        assert NEW in new["tests/main.py"]
    assert {name: text for name, text in texts(root).items() if not name.startswith("out/")} == before


def test_the_whole_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    assert migrate(root, "-o", tmp_path / "out")[0] == 0
    code, output = migrate(root)
    assert code == 0, output
    assert texts(tmp_path / "out") == texts(root)


def test_one_file_alone_keeps_its_parameters(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    out = tmp_path / "k.py"
    _, output = migrate(root / "ops/k.py", "-o", out)
    assert "TL915" in output
    assert "workspace" in out.read_text()
    assert texts(root) == FILES


@pytest.mark.parametrize("there", [True, False])
def test_all_or_none(tmp_path: Path, there: bool) -> None:
    """A place that cannot be written takes the others back, to what was there before."""
    root = repository(tmp_path / "repo", FILES)
    out = tmp_path / "out"
    (out / "tests/main.py").mkdir(parents=True)  # no file can be written here
    if there:
        (out / "ops").mkdir()
        (out / "ops/k.py").write_text("# of before\n")
    code, output = migrate(root, "-o", out)
    assert code == 2
    assert "main.py: error: " in output
    assert "k.py: error: not written, because it goes together with" in output
    if there:
        assert (out / "ops/k.py").read_text() == "# of before\n"
    else:
        assert not (out / "ops/k.py").exists()
    assert (out / "ops/__init__.py").read_text() == ""
    assert texts(root) == FILES
    assert [path for path in out.rglob("*") if path.is_file() and path.suffix != ".py"] == []


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """The tree is kept below the output, so that neither takes the place of the other."""
    main = FILES["tests/main.py"]
    root = repository(tmp_path / "repo", {"ops/k.py": FACTORY, "a/main.py": "x = 1\n", "b/main.py": main})
    out = tmp_path / "out"
    assert migrate(root / "a", root / "b", root / "ops", "-o", out)[0] == 0
    assert (out / "a/main.py").read_text() == "x = 1\n"
    assert NEW in (out / "b/main.py").read_text()
    assert "workspace" not in (out / "ops/k.py").read_text()
