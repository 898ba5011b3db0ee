from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tl2npu.source import inplace
from tl2npu.source.inplace import InPlace, WriteError


def git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "my kernel.py").write_bytes(b"old\n")
    (root / "other.py").write_bytes(b"other\n")
    (root / ".gitignore").write_text("/ignored/\n*.tmp.py\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "c")
    return root


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_committed_files_are_rewritten_without_a_copy(repository: Path) -> None:
    path = repository / "sub" / "my kernel.py"
    path.chmod(0o755)
    git(repository, "commit", "-qam", "mode")
    assert InPlace().write(path, b"old\n", b"new\r\n") is None
    assert path.read_bytes() == b"new\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert files(path.parent) == {"my kernel.py"}


@pytest.mark.parametrize("staged", [False, True])
def test_uncommitted_changes_are_refused(repository: Path, staged: bool) -> None:
    path = repository / "sub" / "my kernel.py"
    path.write_bytes(b"edited\n")
    if staged:
        git(repository, "add", "-A")
    with pytest.raises(WriteError, match="uncommitted"):
        InPlace().write(path, b"edited\n", b"new\n")
    assert path.read_bytes() == b"edited\n"
    assert InPlace().write(repository / "other.py", b"other\n", b"new\n") is None
    assert InPlace(allow_dirty=True).write(path, b"edited\n", b"new\n") is None
    assert path.read_bytes() == b"new\n"


def test_renamed_and_untracked_files_are_refused(repository: Path) -> None:
    git(repository, "mv", "sub/my kernel.py", "renamed.py")
    (repository / "fresh.py").write_bytes(b"x\n")
    with pytest.raises(WriteError, match="uncommitted"):
        InPlace().write(repository / "renamed.py", b"old\n", b"new\n")
    with pytest.raises(WriteError, match="not tracked"):
        InPlace().write(repository / "fresh.py", b"x\n", b"new\n")


def test_the_old_name_of_a_renamed_file_is_not_a_file(repository: Path) -> None:
    (repository / "no_other.py").write_bytes(b"x\n" * 9)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "c")
    git(repository, "mv", "no_other.py", "z.py")
    InPlace().write(repository / "other.py", b"other\n", b"new\n")
    assert (repository / "other.py").read_bytes() == b"new\n"


def test_ignored_files_keep_their_original_beside(repository: Path) -> None:
    (repository / "ignored" / "deep").mkdir(parents=True)
    for path in (repository / "ignored" / "deep" / "k.py", repository / "k.tmp.py"):
        path.write_bytes(b"x\n")
        saved = InPlace().write(path, b"x\n", b"new\n")
        assert saved == path.with_name(path.name + ".orig")
        assert saved.read_bytes() == b"x\n"


def test_outside_of_a_repository_originals_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_bytes(b"0")
    path.chmod(0o640)
    for number in range(3):
        InPlace().write(path, str(number).encode(), str(number + 1).encode())
    assert path.read_bytes() == b"3"
    assert files(tmp_path) == {"k.py", "k.py.orig", "k.py.orig.1", "k.py.orig.2"}
    assert [(tmp_path / f"k.py.orig{end}").read_bytes() for end in ("", ".1", ".2")] == [b"0", b"1", b"2"]
    assert stat.S_IMODE((tmp_path / "k.py.orig").stat().st_mode) == 0o640


def test_symbolic_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "k.py", tmp_path / "link.py"
    target.write_bytes(b"x")
    link.symlink_to(target)
    assert InPlace().write(link, b"x", b"y") == target.with_name("k.py.orig")
    assert link.is_symlink()
    assert target.read_bytes() == b"y"


def test_read_only_vanished_and_changed_files(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    with pytest.raises(WriteError, match="cannot write: No such file"):
        InPlace().write(path, b"x", b"y")
    path.write_bytes(b"z")
    with pytest.raises(WriteError, match="changed on disk"):
        InPlace().write(path, b"x", b"y")
    path.chmod(0o444)
    with pytest.raises(WriteError, match="read-only"):
        InPlace().write(path, b"z", b"y")
    assert files(tmp_path) == {"k.py"}


def test_a_failing_write_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.py"
    path.write_bytes(b"x")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match="No space"):
        InPlace().write(path, b"x", b"y")
    assert path.read_bytes() == b"x"
    assert files(tmp_path) == {"k.py"}


def test_git_is_asked_once_per_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    real = inplace._git_status
    monkeypatch.setattr(inplace, "_git_status", lambda root: asked.append(root) or real(root))
    writer = InPlace()
    writer.write(repository / "sub" / "my kernel.py", b"old\n", b"new\n")
    writer.write(repository / "other.py", b"other\n", b"new\n")
    assert asked == [repository]


def test_a_broken_repository_is_refused_but_can_be_overridden(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    path = tmp_path / "k.py"
    path.write_bytes(b"x")
    with pytest.raises(WriteError, match="git rev-parse failed: fatal: not a git repository"):
        InPlace().write(path, b"x", b"y")
    assert InPlace(allow_dirty=True).write(path, b"x", b"y") is None


def test_what_killed_runs_left_of_a_file_goes(tmp_path: Path) -> None:
    """A run that is killed cannot clean up; one that still works keeps its file."""
    path = tmp_path / "k.py"
    path.write_bytes(b"x")
    script = (
        "import os, sys; from pathlib import Path; from tl2npu.source.whole import write_whole\n"
        "def wait(temporary): print('ready', flush=True); sys.stdin.read()\n"
        "write_whole(Path(sys.argv[1]), b'y', lasting=True, finish=wait)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
    runs[0].kill()
    runs[0].wait()
    assert len(files(tmp_path)) == 3
    foreign = {".k.py.swp", ".k.py.abcdefgh.tmp", ".other.py.abcdefgh.tl2npu.tmp", "k.py.abcdefgh.tl2npu.tmp"}
    for name in foreign:
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (1, 1))
    foreign.add(".k.py.pipe.tl2npu.tmp")
    os.mkfifo(tmp_path / ".k.py.pipe.tl2npu.tmp")
    time.sleep(0.3)
    InPlace().write(path, b"x", b"z")
    left = files(tmp_path) - foreign - {"k.py", "k.py.orig"}
    assert len(left) == 1
    runs[1].communicate(b"")
    assert runs[1].returncode == 0
    assert files(tmp_path) == {"k.py", "k.py.orig", *foreign}
    assert path.read_bytes() == b"y"
