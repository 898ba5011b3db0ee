from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.report.support import RUN, hostile, many, report
from tl2npu.cli import cli
from tl2npu.report.build import build
from tl2npu.report.github import render, step_summary
from tl2npu.report.json import render as as_json
from tl2npu.report.model import Report
from tl2npu.results import Diagnostic, FileResult

COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^:,\r\n]*)(?:,\w+=[^:,\r\n]*)*)::([^\r\n]*)")


def test_errors_come_first_and_the_summary_last() -> None:
    assert render(report()).split("\n") == [
        "::error file=a/b.py,line=7,col=5,title=TL184 thread-level-code::threads%0Ahelp: use tiles",
        "::error file=c.py,title=tl2npu::no such file",
        "::warning file=a/b.py,line=5,endLine=6,col=2,title=TL801 memory-capacity::too `much` of it%0Ahelp: take less",
        "::warning file=a/b.py,line=4,title=tl2npu migrate::f.main can be migrated: expert -> developer",
        "::notice file=a/b.py,line=1,title=TL904 unused-suppression::not needed",
        "1 file would change; 2 kernels: 1 migrated, 1 refused; 1 file failed; 1 skipped",
        "",
    ]
    assert "can be migrated" not in render(build_written())


def build_written() -> Report:
    return replace(report(), run=replace(RUN, written=True))


def test_an_empty_run() -> None:
    assert render(build(RUN, [])) == "0 files would change; no kernels\n"


@pytest.mark.parametrize("item", [hostile(), many(1000)], ids=["hostile", "many"])
def test_every_line_is_one_command_that_reads_back(item: Report) -> None:
    *lines, summary, end = render(item).split("\n")
    assert end == ""
    assert not summary.startswith("::")
    for line in lines:
        found = COMMAND.fullmatch(line)
        assert found is not None, line
        names = [pair.split("=")[0] for pair in found.group(2).split(",")]
        assert len(names) == len(set(names))
        assert set(names) <= {"file", "line", "endLine", "col", "title"}
        assert "\x1b" not in line


def test_escapes_are_those_that_the_runner_undoes() -> None:
    item = Diagnostic("TL801", "a,b:c", "error", 3, "50% of a: b, c")
    line = render(build(RUN, [FileResult("a,b:%.py", "", "", diagnostics=(item,))])).split("\n")[0]
    assert line == "::error file=a%2Cb%3A%25.py,line=3,title=TL801 a%2Cb%3Ac::50%25 of a: b, c"


def test_the_page_of_the_step_is_added_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text(as_json(report()), encoding="utf-8")
    page = tmp_path / "summary.md"
    page.write_text("earlier\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    done = CliRunner().invoke(cli, ["report", "render", "r.json", "--format", "github"])
    assert done.stdout == render(report())
    assert page.read_text(encoding="utf-8") == "earlier\n" + step_summary(report())
    CliRunner().invoke(cli, ["report", "render", "r.json", "--format", "text"])
    assert page.read_text(encoding="utf-8").count("## tl2npu") == 1
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "dir"))
    done = CliRunner().invoke(cli, ["report", "render", "r.json", "--format", "github"])
    assert (done.exit_code, "cannot write the step summary" in done.stderr) == (0, True)


def test_the_page_of_the_step_has_room_for_more() -> None:
    assert 65_536 < len(step_summary(many(1000)).encode()) <= 1024 * 1024
