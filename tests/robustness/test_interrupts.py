"""Runs that are ended from outside, and runs that meet."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.robustness.support import alive, contents, interrupt, processes, start, told, wait_until

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups"),
]

TEXT = b"import tilelang\n# prim_func\nold\n"
NEW = TEXT.replace(b"old", b"new")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Five files that are quick, then ones that take a minute."""
    place = tmp_path / "tree"
    place.mkdir()
    for number in range(5):
        (place / f"a{number}.py").write_bytes(TEXT + b"#" * 99)
    for number in range(4):
        (place / f"b{number}.py").write_bytes(TEXT + b"# slow\n")
    return place


def whole(place: Path) -> int:
    """How many files are new; every other one is as it was, and nothing else is there."""
    new = 0
    for name, data in contents(place).items():
        if name.startswith((".tl2npu_cache/", ".git/")) or name == "pyproject.toml":
            continue
        assert name.endswith((".py", ".orig")), name
        if name.endswith(".orig"):
            assert data.startswith(TEXT)
            assert (place / name.removesuffix(".orig")).read_bytes() in (data, data.replace(b"old", b"new"))
        else:
            new += data.startswith(NEW)
            assert data.startswith((NEW, TEXT))
    return new


def new_ones(place: Path) -> int:
    """While a run goes on."""
    return sum(path.read_bytes().startswith(NEW) for path in place.glob("*.py"))


@pytest.mark.parametrize("jobs", ["1", "2", "3"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_interrupted(tree: Path, jobs: str, number: signal.Signals) -> None:
    run = start(tree, "migrate", ".", "-j", jobs)
    wait_until(lambda: "b" in told(tree).read_text() and new_ones(tree) == 5)
    begun = time.monotonic()
    interrupt(run, number) if number == signal.SIGINT else run.send_signal(number)
    out, err = run.communicate(timeout=30)
    assert time.monotonic() - begun < 15  # seconds; the files take a minute
    assert run.returncode == 130
    assert err == "tl2npu: interrupted after 5 files, 5 of them changed\n"
    assert out == ""
    assert whole(tree) == 5
    assert 1 <= len(processes(tree)) <= int(jobs)
    assert not [process for process in processes(tree) if alive(process)]


def test_kill_leaves_whole_files_and_no_processes(tree: Path) -> None:
    run = start(tree, "migrate", ".", "-j", "2")
    wait_until(lambda: "b" in told(tree).read_text())
    run.kill()
    run.communicate(timeout=30)  # its processes would hold the pipes open
    wait_until(lambda: not [process for process in processes(tree) if alive(process)], 30)
    whole_or_left_behind(tree)
    for path in tree.glob("b*.py"):
        path.write_bytes(TEXT)
    again = start(tree, "migrate", ".", "-j", "2")
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert whole_or_left_behind(tree) == 9


def test_killed_at_any_time(tmp_path: Path) -> None:
    """Whatever was going on: each file is old or new, and the next run finishes the work, with the same cache."""
    place = tmp_path / "tree"
    place.mkdir()
    (place / "pyproject.toml").write_text("")
    for number in range(60):
        (place / f"a{number}.py").write_bytes(TEXT + b"# %d\n" % number)
    seen: set[int] = set()
    for wait in (0, 5, 20):
        run = start(place, "migrate", ".", "-j", "2", "--allow-dirty", NAP="0.01")
        wait_until(lambda wait=wait: len(processes(place)) > 0 and len(list(place.glob("*.orig"))) > wait)
        run.kill()
        run.communicate(timeout=30)  # its processes would hold the pipes open
        seen.add(whole_or_left_behind(place))
    assert max(seen) < 60
    last = start(place, "migrate", ".", "-j", "2", "--allow-dirty")
    last.communicate(timeout=60)
    assert last.returncode == 0
    assert whole_or_left_behind(place) == 60


def whole_or_left_behind(place: Path) -> int:
    """As :func:`whole`; a process that is killed cannot take away what it was writing: a hidden file or a copy."""
    for path in place.glob(".*.tmp"):
        path.unlink()
    for path in place.glob("*.orig*"):
        copy = path.read_bytes()
        original = place / path.name.partition(".orig")[0]
        assert copy.startswith(TEXT) or original.read_bytes().startswith(TEXT)
        path.unlink()
    return whole(place)


def test_two_runs_at_once(tmp_path: Path) -> None:
    place = tmp_path / "tree"
    place.mkdir()
    for number in range(40):
        (place / f"a{number}.py").write_bytes(TEXT + b"# %d\n" % number)
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    git = ["git", "-C", str(place), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "old"], check=True)
    runs = [start(place, "migrate", ".", "-j", "2", NAP="0.01") for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=120)
        assert err == ""
        assert run.returncode in (0, 2)
        errors = [line for line in out.splitlines() if ": error: " in line]
        assert all("file has changed on disk meanwhile" in line or "uncommitted changes" in line for line in errors)
        assert (run.returncode == 2) == bool(errors)
    assert whole(place) == 40
    assert not list(place.glob("*.orig"))
