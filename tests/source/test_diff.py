from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tl2npu.source.diff import coloured, unified_diff


def git_applies(directory: Path, patch: bytes) -> None:
    for option in (["--check"], []):
        done = subprocess.run(["git", "apply", *option], cwd=directory, input=patch, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr, patch)


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "config", "core.autocrlf", "false"], cwd=tmp_path, check=True)
    return tmp_path


CONTENTS = {
    "lf": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "crlf": (b"a\r\nb\r\nc\r\n", b"a\r\nc\r\nd\r\n"),
    "mixed": (b"a\r\nb\nc\r\n", b"a\r\nb\r\nc\n"),
    "no end before": (b"a\nb", b"a\nb\n"),
    "no end after": (b"a\nb\n", b"a\nb"),
    "no end at all": (b"a\nb", b"x\nb"),
    "no end, last line": (b"a\nb", b"a\nc"),
    "form feed": (b"a\n\x0cb\nc\n", b"a\n\x0cb\nd\x0c\n"),
    "next line": ("a\n'\x85'\nc\n".encode(), "a\n'\x85'\nd\x85\n".encode()),
    "line separator": ("a\n'\u2028'\nc\n".encode(), "a\n'\u2028'\nd\u2028\n".encode()),
    "latin-1": (b"# coding: latin-1\n'\xe4\x85'\nc\n", b"# coding: latin-1\n'\xe4\x85'\nd\xfc\n"),
    "bom": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nc\n"),
    "far apart": (b"\n".join(b"%d" % n for n in range(99)), b"\n".join(b"%d" % (n % 90) for n in range(99))),
    "emptied": (b"a\n", b""),
    "filled": (b"", b"a\n"),
    "new": (None, b"a\nb\n"),
    "new without end": (None, b"a\nb"),
    "new and empty": (None, b""),
}


@pytest.mark.parametrize("path", ["a.py", "dir/my file.py", 'odd "name"\\.py', "tab\tname.py", "größe.py"])
@pytest.mark.parametrize("content", CONTENTS)
def test_git_takes_it(work_tree: Path, content: str, path: str) -> None:
    old, new = CONTENTS[content]
    file = work_tree / path
    file.parent.mkdir(exist_ok=True)
    if old is not None:
        file.write_bytes(old)
    git_applies(work_tree, unified_diff(old, new, path))
    assert file.read_bytes() == new


def test_several_files_in_one_patch(work_tree: Path) -> None:
    patch = b""
    for number in range(3):
        (work_tree / f"{number}.py").write_bytes(b"a\nb")
        patch += unified_diff(b"a\nb", b"a\nc", f"{number}.py")
    git_applies(work_tree, patch)
    assert all((work_tree / f"{number}.py").read_bytes() == b"a\nc" for number in range(3))


def test_the_text_of_a_patch() -> None:
    assert unified_diff(b"a\nb", b"a\nc\n", "d/x.py") == (
        b"diff --git a/d/x.py b/d/x.py\n--- a/d/x.py\n+++ b/d/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n"
        b"\\ No newline at end of file\n+c\n"
    )
    assert unified_diff(b"a", b"a", "x.py") == b""
    spaced = unified_diff(b"a\n", b"b\n", "my file.py").split(b"\n")  # as `git diff` writes it
    assert spaced[:3] == [b"diff --git a/my file.py b/my file.py", b"--- a/my file.py\t", b"+++ b/my file.py\t"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(*[st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\x0c", "ü"]), max_size=30).map("".join)] * 2)
def test_any_change_applies(work_tree: Path, old: str, new: str) -> None:
    (work_tree / "x.py").write_bytes(old.encode())
    if old != new:
        git_applies(work_tree, unified_diff(old.encode(), new.encode(), "x.py"))
    assert (work_tree / "x.py").read_bytes() == new.encode()


def test_colours_are_those_of_git() -> None:
    patch = unified_diff(b"a\n-- b\n", b"a\n++ c\n", "x.py")
    assert coloured(patch) == (
        b"\x1b[1mdiff --git a/x.py b/x.py\x1b[m\n\x1b[1m--- a/x.py\x1b[m\n\x1b[1m+++ b/x.py\x1b[m\n"
        b"\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n a\n\x1b[31m--- b\x1b[m\n\x1b[32m+++ c\x1b[m\n"
    )
