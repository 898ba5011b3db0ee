"""``tl2npu report`` as a user calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

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
