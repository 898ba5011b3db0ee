from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tl2npu.report.json import render
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult, Skipped

FILES = (
    FileResult(
        "a/b.py",
        "old",
        "new",
        None,
        (KernelResult("f.main", 3, "vid", "developer", "migrated", "because", ("TL201", "TL220")),),
        (Diagnostic("TL220", "vid-as-task", "error", 7, "wrong ü", "do this", 5, 8, "f.main"),),
        (Change("TL201", 4, "changed", "f.main", "unsafe"),),
    ),
    FileResult("c.py", error="no such file"),
)


def test_the_whole_object() -> None:
    text = render(FILES, [Skipped("g.py", "@generated")])
    assert text.isascii()
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "version": 1,
        "files": [
            {
                "path": "a/b.py",
                "changed": True,
                "error": None,
                "kernels": [
                    {
                        "name": "f.main",
                        "line": 3,
                        "source": "vid",
                        "target": "developer",
                        "disposition": "migrated",
                        "codes": ["TL201", "TL220"],
                        "verified": None,
                    }
                ],
                "diagnostics": [
                    {
                        "code": "TL220",
                        "name": "vid-as-task",
                        "severity": "error",
                        "safety": "display-only",
                        "line": 7,
                        "column": 5,
                        "end_line": 8,
                        "kernel": "f.main",
                        "message": "wrong ü",
                        "help": "do this",
                    }
                ],
                "changes": [{"code": "TL201", "line": 4, "kernel": "f.main", "safety": "unsafe", "message": "changed"}],
            },
            {
                "path": "c.py",
                "changed": False,
                "error": "no such file",
                "kernels": [],
                "diagnostics": [],
                "changes": [],
            },
        ],
        "skipped": [{"path": "g.py", "reason": "@generated"}],
    }


def test_every_key_is_documented(request: pytest.FixtureRequest) -> None:
    page = (Path(request.config.rootpath) / "docs" / "json.md").read_text(encoding="utf-8")
    page = page[: page.index("## Proof")]  # what follows are the reports of verify and run
    documented = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    keys: set[str] = set()

    def gather(value: object) -> None:
        if isinstance(value, dict):
            keys.update(value)
            for item in value.values():
                gather(item)
        elif isinstance(value, list):
            for item in value:
                gather(item)

    gather(json.loads(render(FILES, [Skipped("g.py", "x")])))
    assert keys - {"path", "reason"} == documented - {"path"}
