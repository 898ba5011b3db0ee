from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from tl2npu.files import collect
from tl2npu.source.ignore import Ignore, PatternError, check_pattern

NAMES = ["a", "b", "ab", "ba", "a.py", "b.py", ".a", "a b", "a-b", "]", "[a", "!a", "#a", "c", "a*"]
PARTS = [
    *("a", "b", "*", "**", "?", "/", "/**/", "[ab]", "[!a]", "[a-z]", "[^b]", "[[:alpha:]]", "\\*", "\\a", ".py"),
    *("!", "#", "\\#", "\\!", " ", "[]a]", "[]-a]", "[a-]", "-", "[", "]", "[z-a]"),
]


def test_as_git_has_it(tmp_path: Path) -> None:
    """Random patterns on random paths."""
    chance = random.Random(7)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for _ in range(40):
        drawn = ["".join(chance.choices(PARTS, k=chance.randint(1, 6))) for _ in range(chance.randint(1, 4))]
        patterns = [line for line in drawn if line.strip("! ")]
        (tmp_path / ".gitignore").write_text("\n".join(patterns) + "\n")
        paths = ["/".join(chance.choices(NAMES, k=chance.randint(1, 4))) for _ in range(60)]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"],
            input="\0".join(paths).encode(),
            capture_output=True,
            check=False,
        )
        ignored = set(done.stdout.decode().split("\0")) - {""}
        ours = Ignore(patterns)
        assert {path for path in paths if ours.verdict(path, False)} == ignored, patterns


def test_directories_and_what_is_in_them() -> None:
    ours = Ignore(["# a comment", "", "out/", "!out/keep.py", "*.log", "!x.log"])
    assert ours.verdict("a/out", True) is True
    assert ours.verdict("a/out", False) is None
    assert ours.verdict("a/out/b/c.py", False) is True
    assert ours.verdict("out/keep.py", False) is True  # nobody comes back from an ignored directory
    assert ours.verdict("a/y.log", False) is True
    assert ours.verdict("a/x.log", False) is False
    assert not Ignore(["# nothing", ""])


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("*" * 200 + "b", "a" * 250),
        ("*a?" * 2000 + "b", "a" * 250),
        ("**/a/" * 30 + "b", "/".join("a" * 1000)),
        ("**/*a*a*a/" * 20 + "b", "/".join(["a" * 50] * 60)),
        ("*[ab]*[!c]" * 40 + "c", "ab" * 120),
        ("**/*" * 40 + "/b", "/".join("a" * 1000)),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    begun = time.process_time()
    assert Ignore([pattern]).verdict(path, False) is None
    assert time.process_time() - begun < 2


def test_a_hostile_gitignore(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*a" * 40 + "b\n!\n[z-a]\n\\\n" + "x" * 9999 + "\nno.py\n", encoding="utf-8")
    for name in ("a" * 200 + ".py", "no.py"):
        (tmp_path / name).write_text("")
    assert [found.path.name for found in collect([tmp_path])] == ["a" * 200 + ".py"]


@pytest.mark.parametrize("line", ["!", "/", "a\\", "[a", "[z-a]", "[[:no:]]", "a" * 5000])
def test_what_is_no_pattern(line: str) -> None:
    with pytest.raises(PatternError):
        check_pattern(line)
    assert not Ignore([line])
