from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.support import FILES, NEW, OLD, RUN, hostile, kernel, many, report
from tl2npu.report import sarif
from tl2npu.report.build import build
from tl2npu.report.model import Report
from tl2npu.results import Diagnostic, FileResult
from tl2npu.rules import load_rules

SCHEMA = Path(__file__).with_name("sarif") / "sarif-2.1.0-rtm.5.json"


def log(item: Report) -> dict[str, Any]:
    """The only run."""
    content = json.loads(sarif.render(item))
    assert (content["version"], len(content["runs"])) == ("2.1.0", 1)
    return dict(content["runs"][0])


@pytest.mark.parametrize(
    "item", [report(), build(RUN, []), hostile(), many(1000)], ids=["full", "empty", "hostile", "many"]
)
def test_it_keeps_the_schema_of_the_standard(item: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    errors = [error.message for error in validator.iter_errors(json.loads(sarif.render(item)))]
    assert errors == []


def test_findings_are_results() -> None:
    result = log(report())["results"][0]
    assert result["ruleId"] == "TL801"
    assert result["level"] == "warning"
    assert result["message"]["text"] == "too `much` of it. Help: take less."
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a/b.py", "uriBaseId": "%SRCROOT%"},
                "region": {
                    "startLine": 5,
                    "endLine": 6,
                    "startColumn": 2,
                    "snippet": {"text": "\twith T.Scope('C'):\n\t\tT.copy(a, b)"},
                },
            },
            "logicalLocations": [{"name": "main", "fullyQualifiedName": "f.main", "kind": "function"}],
        }
    ]
    assert log(report())["columnKind"] == "unicodeCodePoints"


def test_rules_are_those_of_the_results_with_their_pages() -> None:
    run = log(report())
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TL184", "TL201", "TL801", "TL904"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert rules[0]["help"]["markdown"] == load_rules()["TL184"].text
    assert rules[0]["name"] == "thread-level-code"
    assert all(len(rule["properties"]["tags"]) <= 20 for rule in rules)


def test_the_address_of_a_rule_is_that_of_the_published_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all("helpUri" not in rule for rule in log(report())["tool"]["driver"]["rules"])
    monkeypatch.setattr(sarif, "documentation_site", lambda: "https://docs.example")
    rules = log(report())["tool"]["driver"]["rules"]
    assert rules[0]["helpUri"] == "https://docs.example/rules/gpu/TL184-thread-level-code/"


def test_failures_and_skipped_files_are_notifications() -> None:
    invocation = log(report())["invocations"][0]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 1)
    notes = invocation["toolExecutionNotifications"]
    assert [(note["level"], note["message"]["text"]) for note in notes] == [
        ("error", "no such file"),
        ("note", "g.py was skipped: @generated"),
    ]
    assert notes[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "c.py"


def fixed(old: str, new: str) -> str:
    """The old text with the replacements of the log, applied as the standard says."""
    run = log(build(RUN, [FileResult("k.py", old, new, None, (kernel("f", 1),))]))
    (fix,) = run["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    lines = old.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = old
    for replacement in reversed(change["replacements"]):
        region = replacement["deletedRegion"]
        begin = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        assert begin <= end <= len(old)
        text = text[:begin] + replacement.get("insertedContent", {"text": ""})["text"] + text[end:]
    return text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW),
        ("a\n", "b\n"),
        ("a", "b"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\n", "x\na\ny\n"),
        ("a\r\nb\r\n", "b\r\n"),
    ],
)
def test_fixes_make_the_new_text(old: str, new: str) -> None:
    assert fixed(old, new) == new


def test_fixes_make_any_new_text() -> None:
    draw = random.Random(7)
    for _ in range(300):
        old, new = (
            "\n".join(draw.choice(["a", "b", "ü", ""]) for _ in range(draw.randrange(1, 20))) + draw.choice(["", "\n"])
            for _ in range(2)
        )
        if old != new:
            assert fixed(old, new) == new


def test_one_fix_a_file_and_none_for_what_is_written() -> None:
    file = replace(FILES[0], kernels=(kernel("f.main", 4), kernel("g", 6), kernel("h", 7, "refused")))
    results = log(build(RUN, [file]))["results"]
    moved = [result for result in results if "can be migrated" in result["message"]["text"]]
    assert ["fixes" in result for result in moved] == [True, False]
    written = log(build(replace(RUN, written=True), [file]))["results"]
    assert len(written) == len(results) - 2
    assert not any("fixes" in result for result in written)


def test_a_fingerprint_stays_when_lines_move_and_tells_findings_apart() -> None:
    def prints(text: str) -> list[str]:
        lines = [n for n, line in enumerate(text.split("\n"), 1) if "bad" in line]
        items = tuple(Diagnostic("TL801", "memory-capacity", "error", n, f"line {n}") for n in lines)
        results = log(build(RUN, [FileResult("k.py", text, text, diagnostics=items)]))["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    before = prints("bad = 1\nbad = 2\nbad = 1\n")
    assert len(set(before)) == 3
    assert prints("# more\n\nif x:\n    bad = 1\n    bad = 2\n    bad = 1\n") == before


def test_paths_are_uris() -> None:
    paths = ["a b/ü%.py", "/tmp x/k.py", "../k.py", "c:d.py", "\udcff.py", "\ud800.py"]
    results = log(build(RUN, [FileResult(path, error="x") for path in paths]))["invocations"][0]
    notes = results["toolExecutionNotifications"]
    places = [note["locations"][0]["physicalLocation"]["artifactLocation"] for note in notes]
    assert [place["uri"] for place in places] == [
        "a%20b/%C3%BC%25.py",
        "file:///tmp%20x/k.py",
        "../k.py",
        "c%3Ad.py",
        "%FF.py",
        "%5Cud800.py",
    ]
    assert ["uriBaseId" in place for place in places] == [True, False, True, True, True, True]


def test_the_limits_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 3)
    run = log(many(8))
    assert [result["level"] for result in run["results"]] == ["error"] * 3
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert notes == ["9 results left out, the mildest first"]
    monkeypatch.setattr(sarif, "MAX_RESULTS", 25_000)
    monkeypatch.setattr(sarif, "MAX_COMPRESSED", 1000)
    run = log(many(8))
    assert not any("fixes" in result for result in run["results"])
    assert "fixes are left out" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_shards_have_categories_of_their_own() -> None:
    assert log(build(replace(RUN, shard=(2, 4)), []))["automationDetails"]["id"] == "tl2npu/migrate/shard-2-of-4/"


def test_a_code_of_a_newer_version_has_a_rule_too() -> None:
    item = Diagnostic("TL099", "new", "error", 1, "x")
    rules = log(build(RUN, [FileResult("k.py", "", "", diagnostics=(item,))]))["tool"]["driver"]["rules"]
    assert rules == [{"id": "TL099"}]
