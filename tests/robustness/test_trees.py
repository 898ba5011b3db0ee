"""Directories with more in them than files that can be read and written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.robustness.support import ROOT, call, contents
from tl2npu import files, migration
from tl2npu.options import Options
from tl2npu.results import FileResult

pytestmark = pytest.mark.thorough

TEXT = b"import tilelang\n# prim_func\nold\n"


def fake(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
    return FileResult(path, text, text.replace("old", "new"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "migrate_text", fake)
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("d/a.py").write_bytes(TEXT)
    Path("d/z.py").write_bytes(TEXT)


def both_done() -> bool:
    return all(Path(name).read_bytes() == TEXT.replace(b"old", b"new") for name in ("d/a.py", "d/z.py"))


def test_links_that_go_round_in_circles() -> None:
    Path("d/loop").symlink_to(Path("d").absolute())
    Path("d/self.py").symlink_to("self.py")
    Path("d/one.py").symlink_to("two.py")
    Path("d/two.py").symlink_to("one.py")
    done = call("migrate", "d")
    assert done.exit_code == 0
    assert done.output.count("skipped (a link to nothing)") == 3
    assert both_done()
    done = call("migrate", "d/self.py")
    assert done.exit_code == 2
    assert done.output.startswith("d/self.py: error: ")


def test_links_to_files() -> None:
    Path("elsewhere.py").write_bytes(TEXT)
    Path("d/away.py").symlink_to(Path("elsewhere.py").absolute())
    Path("d/m.py").symlink_to("a.py")
    Path("d/nothing.py").symlink_to("gone.py")
    Path("d/folder.py").symlink_to(".")
    done = call("migrate", "d")
    assert done.exit_code == 0
    assert "d/away.py: skipped (a link to a file elsewhere)" in done.output
    assert "d/nothing.py: skipped (a link to nothing)" in done.output
    assert "2 files changed" in done.output
    assert Path("elsewhere.py").read_bytes() == TEXT
    assert Path("d/m.py").is_symlink()
    assert both_done()
    assert call("migrate", "d/away.py").exit_code == 0  # that is what was asked for
    assert Path("elsewhere.py").read_bytes() != TEXT
    assert Path("d/away.py").is_symlink()


def test_what_is_no_file() -> None:
    os.mkfifo("d/pipe.py")
    Path("d/dir.py").mkdir()
    Path("d/dir.py/inner.py").write_bytes(TEXT)
    done = call("migrate", "d")
    assert done.exit_code == 0
    assert "d/pipe.py: skipped (not a regular file)" in done.output
    assert "3 files changed" in done.output
    for name in ("d/pipe.py", "/dev/zero", "/dev/null"):
        done = call("migrate", name)
        assert (done.exit_code, done.output.splitlines()[0]) == (2, f"{name}: error: is not a regular file")


def test_read_only_files_and_directories() -> None:
    Path("d/ro.py").write_bytes(TEXT)
    Path("d/ro.py").chmod(0o444)
    done = call("migrate", "d")
    assert done.exit_code == 2
    assert "d/ro.py: error: file is read-only" in done.output
    assert Path("d/ro.py").read_bytes() == TEXT
    assert both_done()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to become somebody else")
def test_without_the_rights_for_it() -> None:
    """As somebody to whom nothing belongs: root may read and write everything."""
    place = Path("/var/tmp") / f"tl2npu-test-{os.getpid()}"
    try:
        for name in ("shut", "fixed", "open"):
            (place / "d" / name).mkdir(parents=True)
            (place / "d" / name / "k.py").write_bytes(TEXT)
        (place / "d" / "open" / "secret.py").write_bytes(TEXT)
        for path in (place, *place.rglob("*")):
            os.chown(path, 65534, 65534)
        (place / "d" / "open" / "secret.py").chmod(0)
        (place / "d" / "shut").chmod(0)
        (place / "d" / "fixed").chmod(0o555)
        code = (
            f"import sys, os; sys.path[:0] = [{str(ROOT)!r}]\n"
            "from tl2npu import migration\nfrom tl2npu.cli import main\nfrom tl2npu.results import FileResult\n"
            "migration.migrate_text = lambda text, path, options, leave=None, together=False: "
            "FileResult(path, text, text.replace('old', 'new'))\n"
            # Everything is imported first: whose Python this is may not be allowed to see it afterwards.
            "from click.testing import CliRunner\nfrom tl2npu.cli import cli\n"
            "import tl2npu.languages, tl2npu.source.inplace, tempfile\n"
            "assert CliRunner().invoke(cli, ['migrate', 'd', '--check', '--no-cache']).exit_code in (1, 2)\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "main()\n"
        )
        run = [sys.executable, "-c", code, "migrate", "d"]
        done = subprocess.run(run, cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert done.stdout.splitlines()[:3] == [
            "d/fixed/k.py: error: cannot write: Permission denied",
            "d/open/secret.py: error: cannot read: Permission denied",
            "d/shut: error: cannot read the directory: Permission denied",
        ]
        assert (place / "d" / "open" / "k.py").read_bytes() == TEXT.replace(b"old", b"new")
        assert sorted(contents(place / "d" / "fixed")) == ["k.py"]
        assert (place / "d" / "fixed" / "k.py").read_bytes() == TEXT
    finally:
        shutil.rmtree(place)


def test_files_that_vanish_after_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("d/sub").mkdir()
    Path("d/sub/k.py").write_bytes(TEXT)
    real = files.collect

    def collect(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        shutil.rmtree("d/sub")
        return found

    monkeypatch.setattr(files, "collect", collect)
    done = call("migrate", "d")
    assert done.exit_code == 2
    assert "d/sub/k.py: error: no such file" in done.output
    assert both_done()


def test_files_that_vanish_or_change_while_they_are_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def vanishing(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
        if "m.py" in path:
            shutil.rmtree(Path(path).parent)
        if "n.py" in path:
            Path(path).write_bytes(b"somebody else was here\n")
        return fake(text, path, options)

    monkeypatch.setattr(migration, "migrate_text", vanishing)
    Path("d/sub").mkdir()
    Path("d/sub/m.py").write_bytes(TEXT)
    Path("d/n.py").write_bytes(TEXT)
    done = call("migrate", "d")
    assert done.exit_code == 2
    assert "d/sub/m.py: error: cannot write: No such file or directory" in done.output
    assert "d/n.py: error: file has changed on disk meanwhile" in done.output
    assert Path("d/n.py").read_bytes() == b"somebody else was here\n"
    assert not Path("d/sub").exists()
    assert both_done()


def test_a_directory_that_vanishes_while_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("d/sub").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("sub"):
            shutil.rmtree(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    done = call("migrate", "d")
    assert done.exit_code == 2
    assert "d/sub: error: cannot read the directory: No such file or directory" in done.output
    assert both_done()


def test_a_tree_deeper_than_calls_may_be_nested() -> None:
    start = Path.cwd()
    for _ in range(1200):
        Path("n").mkdir()
        os.chdir("n")
    os.chdir(start)
    try:
        assert call("migrate", ".").exit_code == 0
        assert both_done()
    finally:
        subprocess.run(["rm", "-rf", "n"], check=True)  # too deep for Python's own


def test_names_that_are_not_utf_8() -> None:
    name = os.fsencode("d") + b"/\xff\xfe k.py"
    Path(os.fsdecode(name)).write_bytes(TEXT)
    done = call("migrate", "d", "--diff")
    assert done.exit_code == 0
    assert call("migrate", "d").exit_code == 0
    assert Path(os.fsdecode(name)).read_bytes() == TEXT.replace(b"old", b"new")
