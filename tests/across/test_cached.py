"""Results that were remembered: what they rest on in other files, and files that follow others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import kernel, library
from tests.across.test_followers import FACTORY, NEW, script
from tl2npu.cli import cli

IMPORTS = "from ops.lib import ROWS, make_add, scaled"


def cached(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and the output of ``tl2npu migrate``, which remembers results."""
    done = CliRunner().invoke(cli, ["migrate", "-j", "1", *map(str, arguments)])
    return done.exit_code, done.output


def move(root: Path, name: str) -> Callable[[], None]:
    """Take a file of the repository away; what is returned puts it back."""
    shutil.move(root / name, root / "away")
    return lambda: shutil.move(root / "away", root / name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("imports", "prefix", "missing"),
    [
        (IMPORTS, "", "ops/lib.py"),
        ("from .lib import ROWS, make_add, scaled", "", "ops/lib.py"),
        ("from . import lib", "lib.", "ops/lib.py"),
        ("from ops import lib", "lib.", "ops/lib.py"),
        ("import ops.lib as lib", "lib.", "ops/lib.py"),
        ("from .names import *", "", "ops/names.py"),
        ("from .names import *", "", "ops/lib.py"),
        (IMPORTS, "", "ops/sizes.py"),
    ],
)
def test_a_module_that_comes_later(tmp_path: Path, imports: str, prefix: str, missing: str) -> None:
    names = "from .lib import ROWS, make_add\nfrom .lib import scaled\n"
    root = library(tmp_path, {"ops/k.py": kernel(imports, prefix), "ops/names.py": names})
    put_back = move(root, missing)
    without = cached("--diff", root)
    assert "threads=2)" not in without[1]
    assert cached("--diff", root) == without
    put_back()
    found = cached("--diff", root)
    assert "threads=2)" in found[1]
    assert found == cached("--diff", "--no-cache", root)
    move(root, missing)
    assert cached("--diff", root) == without


def test_a_broken_module_that_is_mended(tmp_path: Path) -> None:
    root = library(tmp_path, {"ops/k.py": kernel(IMPORTS)})
    good = (root / "ops/lib.py").read_text()
    (root / "ops/lib.py").write_text(good + "def (")
    assert "TL903" in cached("--check", root / "ops/k.py")[1]
    (root / "ops/lib.py").write_text(good)
    assert "TL903" not in cached("--check", root / "ops/k.py")[1]


def test_a_module_that_comes_before_another(tmp_path: Path) -> None:
    """Beside the file is where the interpreter looks first."""
    text = kernel("from ops.lib import make_add, scaled\nfrom wide import ROWS")
    root = library(tmp_path, {"deep/k.py": text, "wide.py": "ROWS = 32\n"})
    assert "threads=2)" in cached("--diff", root / "deep/k.py")[1]
    (root / "deep/wide.py").write_text("ROWS = 7\n")
    assert "threads=2)" not in cached("--diff", root / "deep/k.py")[1]


def _with_followers(root: Path) -> Path:
    files = {
        "ops/k.py": FACTORY,
        "main.py": script("from ops.k import factory"),
        "mixed.py": kernel("from ops.lib import ROWS, make_add, scaled").replace("def factory", "def local")
        + "\n"
        + script("from ops.k import factory"),
    }
    return library(root, files)


def test_followers_that_were_remembered(tmp_path: Path) -> None:
    root = _with_followers(tmp_path / "one")
    plain = cached("--diff", "--no-cache", root)
    first = cached("--diff", root)
    assert first == plain
    assert any((root / ".tl2npu_cache").glob("*/*.json"))
    assert cached("--diff", root) == plain
    assert cached(root)[0] == 0
    for name in ("main.py", "mixed.py"):
        new = (root / name).read_text()
        assert NEW in new
        assert "workspace" not in new
    assert "scaled(" not in (root / "mixed.py").read_text()  # what was remembered of it, and what follows
    fresh = _with_followers(tmp_path / "two")
    assert cached("--no-cache", fresh)[0] == 0
    for name in ("main.py", "mixed.py", "ops/k.py"):
        assert (root / name).read_text() == (fresh / name).read_text()
    assert cached("--check", root)[0] == 0


def test_a_remembered_file_that_cannot_follow_any_more(tmp_path: Path) -> None:
    root = _with_followers(tmp_path)
    assert cached("--diff", root)[0] == 0
    (root / "late.py").write_text("from ops.k import factory\n\nprint(factory)\n")
    output = cached(root)[1]
    assert "late.py:3:1 warning TL915" in output
    assert (root / "ops/k.py").read_text() == FACTORY
    assert "run(a, b, workspace)" in (root / "mixed.py").read_text()
    assert "scaled(" not in (root / "mixed.py").read_text()  # its own kernel is migrated all the same
    (root / "late.py").unlink()
    assert cached(root)[0] == 0
    assert "workspace" not in (root / "ops/k.py").read_text()
    assert NEW in (root / "mixed.py").read_text()
