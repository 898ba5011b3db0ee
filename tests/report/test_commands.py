"""``tl2npu report`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import tl2npu
from tests.report.support import RUN, report
from tl2npu.cli import cli
from tl2npu.report.build import build
from tl2npu.report.json import render, schema
from tl2npu.report.text import TextReport
from tl2npu.results import FileResult


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(render(report()), encoding="utf-8")
    second = replace(RUN, exit_code=0)
    Path("b.json").write_text(render(build(second, [FileResult("b.py", "x", "x")])), encoding="utf-8")


def call(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli, ["report", *arguments], input=stdin)


def test_the_schema_is_printed() -> None:
    assert call("schema").stdout == schema()


def test_a_report_is_shown_in_another_format() -> None:
    done = call("render", "a.json")
    assert (done.exit_code, done.stdout) == (0, TextReport().render(report()))
    assert call("render", "-", stdin=Path("a.json").read_bytes()).stdout == done.stdout
    assert call("render", "a.json", "-o", "out/c.json").exit_code == 0
    assert Path("out/c.json").read_text(encoding="utf-8") == Path("a.json").read_text(encoding="utf-8")
    assert "\x1b[" in call("render", "a.json", "--color", "always").stdout


def test_reports_are_joined_and_the_exit_code_is_that_of_the_whole() -> None:
    done = call("merge", "b.json", "a.json")
    assert done.exit_code == 1
    assert [file["path"] for file in json.loads(done.stdout)["files"]] == ["a/b.py", "b.py", "c.py"]
    assert call("merge", "b.json").exit_code == 0
    text = call("merge", "a.json", "b.json", "--format", "text", "-o", "out.json")
    assert (text.exit_code, text.stdout) == (1, "")
    assert Path("out.json").read_text(encoding="utf-8").startswith("a/b.py:4 f.main: migrated")


def test_missing_shards_are_said() -> None:
    Path("s.json").write_text(render(build(replace(RUN, exit_code=0, shard=(2, 3)), [])), encoding="utf-8")
    done = call("merge", "s.json")
    assert (done.exit_code, json.loads(done.stdout)["run"]["exit_code"]) == (2, 2)
    assert done.stderr == "tl2npu: the reports of these shards are missing: 1, 3\n"


def test_shards_of_a_run_make_the_report_of_the_whole() -> None:
    Path("src").mkdir()
    for number in range(7):
        Path(f"src/{number}.py").write_text(
            "import tilelang  # T.prim_func\n" + "x = (" * (number == 3), encoding="utf-8"
        )
    Path("src/made.py").write_text("# @generated\n", encoding="utf-8")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["migrate", "--check", "--no-cache", "-q", "src", *arguments])

    assert run("--report", "whole.json").exit_code == 2
    codes = [run("--shard", f"{n}/3", "--report", f"{n}.json").exit_code for n in (1, 2, 3)]
    assert sorted(codes) == [0, 0, 2]
    assert call("merge", "3.json", "1.json", "2.json", "-o", "merged.json").exit_code == 2
    whole, merged = (json.loads(Path(name).read_text(encoding="utf-8")) for name in ("whole.json", "merged.json"))
    assert len(whole["files"]) == 7
    assert whole == merged


def test_the_stream_and_several_files() -> None:
    done = CliRunner().invoke(
        cli, ["migrate", "--check", "--format", "github", "--report", "r.html", "--report", "r.sarif", "nothing.py"]
    )
    assert done.exit_code == 2
    assert done.stdout.startswith("::error file=nothing.py,title=tl2npu::no such file\n")
    assert Path("r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(Path("r.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    done = CliRunner().invoke(
        cli, ["check", "--format", "json", "--report", "r.md", "--report", "x/r.txt", "nothing.py"]
    )
    last = "0 errors, 0 warnings; no kernels in 1 file; 1 file failed"
    assert done.stdout == f"nothing.py: error: no such file\n{last}\n"
    assert Path("r.md").read_text(encoding="utf-8").startswith("<!-- tl2npu report -->")
    assert json.loads(Path("x/r.txt").read_text(encoding="utf-8"))["run"]["task"] == "check"
    done = CliRunner().invoke(cli, ["check", "--report", "a.json/r.md", "nothing.py"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("Error: cannot write a.json/r.md: ")
    assert "no such file" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("columns", "widest"), [(60, 60), (80, 80), (300, 120), (20, 60)])
def test_a_terminal_has_colours_and_lines_that_fit(columns: int, widest: int) -> None:
    import fcntl
    import pty
    import struct
    import termios

    name = "directory/" * 3 + "file.py is not there and its name is long " * 8
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")}
    command = [sys.executable, "-m", "tl2npu", "check", name]
    environment["PYTHONPATH"] = str(Path(tl2npu.__file__).parent.parent)
    subprocess.run(command, stdout=side, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(side)
    text = os.read(main, 100_000).decode().replace("\r\n", "\n")
    os.close(main)
    assert "\x1b[31m" in text
    lengths = [len(line) for line in click.unstyle(text).split("\n")]
    assert widest - 30 < max(lengths) <= widest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["merge"], "Missing argument"),
        (["merge", "a.json", "no.json"], "cannot read no.json: No such file or directory"),
        (["merge", "a.json", "a.json"], "a/b.py is in a.json and in a.json"),
        (["render", "bad.json"], "bad.json: not JSON"),
        (["render", "a.json", "-o", "a.json/b.json"], "cannot write a.json/b.json"),
        (["render", "a.json", "--format", "pdf"], "Invalid value for '--format'"),
    ],
)
def test_errors_are_one_line(arguments: list[str], message: str) -> None:
    Path("bad.json").write_bytes(b"\xff\xfe")
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
