"""Disks that are full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.support import ROOT, STAND_IN, call, contents
from tl2npu import migration
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.source import inplace

pytestmark = pytest.mark.thorough

TEXT = b"import tilelang\n# prim_func\nold\n"
NEW = TEXT.replace(b"old", b"new")


def fake(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
    """The new text is longer, so that there is no room for it."""
    return FileResult(path, text, text.replace("old", "new") + "#" * 100_000 * ("big" in path))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "migrate_text", fake)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount")
    except OSError:
        pytest.skip("needs mount")
    try:
        yield place
    finally:
        os.chdir(tmp_path)
        subprocess.run(["umount", str(place)], check=True)


def test_a_small_disk(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small_disk)
    for name in ("a.py", "big.py", "z.py"):
        Path(name).write_bytes(TEXT)
    Path("pyproject.toml").write_text("")  # so that there is a cache, which finds no room either
    done = call("migrate", ".")
    assert done.exit_code == 2
    assert done.output.splitlines()[0] == "big.py: error: cannot write: No space left on device"
    left = {name: data for name, data in contents(small_disk).items() if not name.startswith(".tl2npu_cache")}
    assert left == {
        "a.py": NEW, "a.py.orig": TEXT, "big.py": TEXT, "pyproject.toml": b"", "z.py": NEW, "z.py.orig": TEXT,
    }  # fmt: skip
    done = call("migrate", "big.py", "-o", "out/big.py", "--report", "r.json")
    assert done.exit_code == 2
    assert not Path("out/big.py").exists()


def full(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("when", [0, 1], ids=["at the copy of the original", "at the new text"])
def test_no_room_at_any_step(monkeypatch: pytest.MonkeyPatch, when: int) -> None:
    """What was written until then is taken away again."""
    Path("a.py").write_bytes(TEXT)
    calls: list[object] = []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == when + 1:
            full()

    monkeypatch.setattr(inplace.os, "fsync", fsync)
    done = call("migrate", "a.py")
    assert (done.exit_code, len(calls)) == (2, when + 1)
    assert done.output.splitlines()[0] == "a.py: error: cannot write: No space left on device"
    assert contents(Path()) == {"a.py": TEXT}


def test_interrupted_when_the_file_is_new_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the copy of the original must not go, it is the only one."""
    Path("a.py").write_bytes(TEXT)
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        real(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", replace)
    done = call("migrate", "a.py")
    assert done.exit_code == 130
    assert contents(Path()) == {"a.py": NEW, "a.py.orig": TEXT}
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(KeyboardInterrupt))
    Path("b.py").write_bytes(TEXT)
    assert call("migrate", "b.py").exit_code == 130
    assert contents(Path()) == {"a.py": NEW, "a.py.orig": TEXT, "b.py": TEXT}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--diff"], ["--check"], ["--check", "--format", "json"], ["-"]])
def test_standard_output_on_a_full_disk(arguments: list[str]) -> None:
    Path("a.py").write_bytes(TEXT)
    Path("told").touch()
    with Path("/dev/full").open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", STAND_IN, "migrate", *arguments, *(["a.py"] if "-" not in arguments else [])],
            input=TEXT,
            stdout=stream,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TOLD": "told", "PYTHONUNBUFFERED": ""},
            check=False,
        )
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert Path("a.py").read_bytes() == TEXT


def test_a_report_that_finds_no_room() -> None:
    Path("a.py").write_bytes(b"x = 1\n")
    done = call("migrate", "a.py", "--report", "/dev/full")
    assert done.exit_code == 2
    assert "cannot write /dev/full" in done.output
