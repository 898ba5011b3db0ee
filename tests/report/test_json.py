from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.report.support import RUN, hostile, many, report
from tl2npu.report.build import build
from tl2npu.report.json import render, schema
from tl2npu.report.load import load
from tl2npu.report.model import Report, ReportError, Run

EMPTY = build(RUN, [])


def test_the_whole_object() -> None:
    text = render(report())
    assert text.isascii()
    assert text.endswith("}\n")
    content = json.loads(text)
    files = content.pop("files")
    assert content == {
        "version": 1,
        "tool": {"name": "tl2npu", "version": "1.2.3"},
        "run": {
            "task": "migrate",
            "written": False,
            "exit_code": 1,
            "shard": None,
            "options": {"device": "A2", "select": []},
        },
        "summary": {
            "files": 2,
            "changed": 1,
            "failed": 1,
            "skipped": 1,
            "kernels": {"migrated": 1, "partial": 0, "refused": 1, "unchanged": 0},
            "with_errors": 0,
            "diagnostics": {"error": 1, "warning": 1, "info": 1},
        },
        "skipped": [{"path": "g.py", "reason": "@generated"}],
    }
    assert files[1] == {
        "path": "c.py",
        "changed": False,
        "beside": None,
        "error": "no such file",
        "kernels": [],
        "diagnostics": [],
        "changes": [],
        "diff": "",
    }
    assert files[0]["kernels"][0] == {
        "name": "f.main",
        "cell": None,
        "line": 4,
        "file_line": None,
        "source": "expert",
        "target": "developer",
        "disposition": "migrated",
        "reason": "because",
        "codes": ["TL201", "TL210"],
        "verified": {"backend": "sim", "calls": 2, "max_error": 0.5},
        "errors": [],
        "checked": {"equal": True, "why": "", "sizes": "M=64"},
        "pipes": [{"pipe": "vector", "cycles": 30.5}],
        "effort": {"minutes": 6, "level": "low"},
    }
    assert files[0]["diagnostics"][0] == {
        "code": "TL801",
        "name": "memory-capacity",
        "severity": "warning",
        "safety": "display-only",
        "cell": None,
        "line": 5,
        "file_line": None,
        "column": 2,
        "end_line": 6,
        "kernel": "f.main",
        "message": "too `much` of it",
        "help": "take less",
        "excerpt": ["\twith T.Scope('C'):", "\t\tT.copy(a, b)"],
    }
    assert files[0]["changes"][1] == {
        "code": "TL210",
        "cell": None,
        "line": 6,
        "kernel": "f.main",
        "safety": "unsafe",
        "message": "indented",
    }
    assert files[0]["diff"].startswith("diff --git a/a/b.py b/a/b.py\n--- a/a/b.py\n+++ b/a/b.py\n@@ -2,6 +2,5 @@\n")


def every_report() -> list[Any]:
    sharded = Report(Run("1", "check", True, 0, {}, (2, 3)))
    named = {"full": report(), "empty": EMPTY, "hostile": hostile(), "many": many(1000), "sharded": sharded}
    return [pytest.param(item, id=name) for name, item in named.items()]


@pytest.mark.parametrize("item", every_report())
def test_it_keeps_the_schema(item: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json.loads(schema()))
    jsonschema.Draft202012Validator(json.loads(schema())).validate(json.loads(render(item)))


@pytest.mark.parametrize("item", every_report())
def test_what_is_written_can_be_read(item: Report) -> None:
    text = render(item)
    assert load(text, "r.json") == item
    assert load(text.encode(), "r.json") == item


def test_the_schema_names_every_key_and_no_other() -> None:
    named: set[str] = set()
    required: set[str] = set()

    def gather(value: object) -> None:
        if isinstance(value, dict):
            named.update(value.get("properties", {}))
            required.update(value.get("required", []))
            for item in value.values():
                gather(item)

    gather(json.loads(schema()))
    assert named == required == keys(json.loads(render(report())))


def test_every_key_is_documented(request: pytest.FixtureRequest) -> None:
    page = (Path(request.config.rootpath) / "docs" / "json.md").read_text(encoding="utf-8")
    page = page[: page.index("## The report of verify")]
    rows = re.findall(r"^\| (`.*?) \|(.*)", page, re.MULTILINE)
    first = set(re.findall(r"`(\w+)`", " ".join(row[0] for row in rows)))
    anywhere = first | set(re.findall(r"`(\w+)`", " ".join(row[1] for row in rows)))
    assert first <= keys(json.loads(render(report()))) <= anywhere


def keys(value: object) -> set[str]:
    """Every key but those of the options and of the counts."""
    if isinstance(value, dict):
        inner = {k for name, v in value.items() if name not in ("options",) for k in keys(v)}
        return set(value) | inner
    return {k for item in value for k in keys(item)} if isinstance(value, list) else set()


def broken(path: str, value: object) -> str:
    """A report in which the value at a path is another, or missing."""
    content = json.loads(render(report()))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place = content
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a report of tl2npu: it is not an object"),
        ("{}", "not a report of tl2npu: version is missing"),
        (broken("version", 2), "its version is 2, this tl2npu reads 1"),
        (broken("run", None), "run is missing"),
        (broken("run/written", 1), "run.written is not true or false"),
        (broken("run/shard", [3, 2]), "run.shard is 3 of 2"),
        (broken("run/task", "x"), "run.task is 'x', not one of migrate, check, verify"),
        (broken("files/0/kernels/1/line", 0), "files[0].kernels[1].line is not positive"),
        (broken("files/0/kernels/1/line", True), "files[0].kernels[1].line is not an integer"),
        (broken("files/0/kernels/0/codes", [1]), "files[0].kernels[0].codes is not a list of strings"),
        (broken("files/0/kernels/0/verified/max_error", "0"), "files[0].kernels[0].verified.max_error is not a number"),
        (broken("files/0/diagnostics/0/severity", "bad"), "files[0].diagnostics[0].severity is 'bad'"),
        (broken("files/0/diff", "@@ -1 +1 @@\nnonsense\n"), "files[0].diff: not a line of a diff: 'nonsense'"),
        (broken("skipped/0", "x"), "skipped[0] is not an object"),
    ],
)
def test_what_is_no_report_is_an_error_of_one_line(text: str, message: str) -> None:
    with pytest.raises(ReportError) as caught:
        load(text, "r.json")
    assert str(caught.value).startswith("r.json: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_keys_of_newer_versions_are_left_out() -> None:
    assert load(broken("files/0/kernels/0/colour", "red"), "r.json") == report()
