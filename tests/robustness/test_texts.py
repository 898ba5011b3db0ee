"""Files whose text is unusual, or no Python."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pytest

from tests.robustness.support import KERNEL, call

pytestmark = pytest.mark.thorough

AFTER: dict[str, str] = {}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def migrated(text: str) -> str:
    """The kernel, migrated as a plain file once."""
    if not AFTER:
        path = Path("plain_of_test.py")
        path.write_bytes(KERNEL.encode())
        assert call("migrate", path, "--no-cache").exit_code == 0
        AFTER["kernel"] = path.read_bytes().decode()
        path.unlink()
    assert KERNEL in text
    return text.replace(KERNEL, AFTER["kernel"])


HEAD = "# \u00e4\u00f6\u00fc \u00a7\n"
GOOD = {
    "byte order mark": (codecs.BOM_UTF8, KERNEL, "utf-8"),
    "latin-1 with a coding line": (b"", "# -*- coding: latin-1 -*-\n" + HEAD + KERNEL, "latin-1"),
    "utf-8 without a coding line": (b"", HEAD + KERNEL, "utf-8"),
    "shift-jis": (b"", "# coding: shift_jis\n# \u30ab\u30fc\u30cd\u30eb\n" + KERNEL, "shift_jis"),
    "form feeds and other separators": (b"", "x = 1\n\x0c\n# \x1c \x85 \u2028\n" + KERNEL, "utf-8"),
    "tabs elsewhere": (b"", "if True:\n\tx = 1\n\tif x:\n\t\ty = 2\n" + KERNEL, "utf-8"),
    "trailing blanks": (b"", "x = 1   \n\t\n   \n" + KERNEL + "\n\n\n", "utf-8"),
    "escapes that Python warns of": (b"", "x = '\\d'\n" + KERNEL, "utf-8"),
}


@pytest.mark.parametrize("name", GOOD)
def test_texts_that_are_migrated(name: str) -> None:
    mark, text, encoding = GOOD[name]
    Path("k.py").write_bytes(mark + text.encode(encoding))
    done = call("migrate", "k.py")
    assert done.exit_code == 0, done.output
    assert Path("k.py").read_bytes() == mark + migrated(text).encode(encoding)
    assert Path("k.py.orig").read_bytes() == mark + text.encode(encoding)
    assert call("migrate", "k.py", "--check").exit_code == 0


@pytest.mark.parametrize(
    ("newline", "end"),
    [("\r\n", True), ("\n", False), ("\r\n", False), ("\r", True)],
    ids=["crlf", "no end", "both", "cr"],
)
def test_line_ends(newline: str, end: bool) -> None:
    text = KERNEL if end else KERNEL.removesuffix("\n")
    Path("k.py").write_bytes(text.replace("\n", newline).encode())
    done = call("migrate", "k.py")
    assert done.exit_code == 0, done.output
    after = migrated(KERNEL)
    after = after if end else after.removesuffix("\n")
    assert Path("k.py").read_bytes() == after.replace("\n", newline).encode()


def test_mixed_line_ends_stay_on_the_lines_that_stay() -> None:
    lines = KERNEL.split("\n")
    mixed = "".join(line + ("\r\n" if number % 2 else "\n") for number, line in enumerate(lines[:-1]))
    Path("k.py").write_bytes(mixed.encode())
    assert call("migrate", "k.py").exit_code == 0
    new = Path("k.py").read_bytes().decode()
    assert new.replace("\r\n", "\n") == migrated(KERNEL)
    kept = set(mixed.splitlines(keepends=True)) & {line for line in new.splitlines(keepends=True) if line.strip()}
    assert {line for line in kept if line.endswith("\r\n")}
    assert {line for line in kept if not line.endswith("\r\n")}


def test_a_kernel_indented_with_tabs() -> None:
    text = KERNEL.replace("    ", "\t")
    Path("k.py").write_bytes(text.encode())
    assert call("migrate", "k.py").exit_code == 0
    assert Path("k.py").read_bytes().decode() == migrated(KERNEL).replace("    ", "\t")


HEADER = b"import tilelang\n# prim_func\n"
BAD = {
    "syntax error": (HEADER + b"def f(:\n", "line 3: syntax error: "),
    "tabs and blanks mixed": (HEADER + b"if 1:\n        x = 1\n\ty = 2\n", "line 5: syntax error: "),
    "python 2": (HEADER + b"print 'x'\n", "line 3: syntax error: "),
    "undecodable bytes": (HEADER + b"x = '\xff\xfe'\n", "line 3: cannot decode as utf-8"),
    "unknown coding line": (b"# coding: nonsense\n" + HEADER, "cannot decode: "),
    "NUL bytes": (HEADER + b"x = '\0'\n", "line 3: file contains NUL bytes"),
    "utf-16": ("import tilelang, prim_func\n".encode("utf-16"), ""),
    "a carriage return at the end only": (HEADER + b"x = 1\r", "the last line ends with a carriage return, and"),
    "unfinished string": (HEADER + b"x = '''\n", "line 3: syntax error: "),
    "deep nesting of brackets": (HEADER + b"x = " + b"(" * 9000 + b")" * 9000 + b"\n", ""),
    "deep nesting of blocks": (HEADER + b"".join(b" " * n + b"if x:\n" for n in range(150)) + b" " * 150 + b"y\n", ""),
    "deep nesting of lambdas": (HEADER + b"x = " + b"lambda: " * 30000 + b"0\n", ""),
    "a long sum": (HEADER + b"x = " + b"1 + " * 60000 + b"1\n", ""),
    "a long chain of attributes": (HEADER + b"x" + b".y" * 60000 + b"\n", ""),
    "a long chain of else if": (HEADER + b"if x: pass\n" + b"elif x: pass\n" * 20000, ""),
}


@pytest.mark.parametrize("name", BAD)
def test_texts_that_are_errors(name: str) -> None:
    """One clear line, exit code 2, the file as it was, and the others done."""
    data, message = BAD[name]
    Path("bad.py").write_bytes(data)
    Path("good.py").write_bytes(KERNEL.encode())
    done = call("migrate", "bad.py", "good.py")
    assert done.exit_code == 2
    (line,) = [line for line in done.output.splitlines() if line.startswith("bad.py")]
    plain = re.sub(r"^bad\.py:(\d+):\d+ error TL901 unparsable-file: ", r"bad.py: error: line \1: ", line)
    plain = plain if message.startswith("line ") else plain.replace("error: line 1: ", "error: ")
    assert plain.startswith(f"bad.py: error: {message}")
    assert "internal error" not in line
    assert len(line) < 200
    assert Path("bad.py").read_bytes() == data
    assert Path("good.py").read_bytes() == migrated(KERNEL).encode()
    assert not Path("bad.py.orig").exists()


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"# only a comment", b"\x0c", b"\r"])
def test_files_with_nothing_in_them(data: bytes) -> None:
    Path("k.py").write_bytes(data)
    done = call("migrate", "k.py")
    assert (done.exit_code, Path("k.py").read_bytes()) == (0, data)
    assert "0 files changed" in done.output
