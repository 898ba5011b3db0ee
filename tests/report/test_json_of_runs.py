"""docs/json.md names every key of the reports of verify and run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tl2npu.report import run, verify
from tl2npu.results import Verified
from tl2npu.verified import Comparison, Fault, KernelVerdict, LaunchReport, RunResult, ScriptCheck, VerifyResult

VERDICT = KernelVerdict("f.main", 3, "verified", "", Verified("sim", 1, 0.0))
COMPARISON = Comparison("f.main", "f(M=2)", ("C",), 0.0, (("TL907", "differs"),))
VERIFIED = VerifyResult(
    "a.py",
    None,
    "sim",
    "precise",
    kernels=(VERDICT,),
    comparisons=(COMPARISON,),
    scripts=(ScriptCheck("old", 0, "ok"),),
)
FAULT = Fault("RAW", "unordered", details={"memory": "GM"})
RAN = RunResult("a.py", 0, "A2", "precise", (LaunchReport("f.main", {"M": 2}, {"A": "float16[2]"}, 0.1),), (FAULT,))


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        inner = {k for name, v in value.items() if name not in ("arguments", "tensors") for k in _keys(v)}
        return set(value) | inner
    return {k for item in value for k in _keys(item)} if isinstance(value, list) else set()


@pytest.mark.parametrize("text", [verify.as_json(VERIFIED), run.as_json(RAN)], ids=["verify", "run"])
def test_every_key_is_documented(text: str, request: pytest.FixtureRequest) -> None:
    page = (Path(request.config.rootpath) / "docs" / "json.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page[page.index("## Proof") :]))
    assert len(_keys(json.loads(text))) > 8
    assert _keys(json.loads(text)) <= named


def test_a_script_that_fails_does_not_read_like_success() -> None:
    assert run.text(RAN).endswith("a.py: 1 launch, 1 hazard on the simulator (A2)\n")
    failed = run.text(replace(RAN, exit_code=1, launches=(), faults=()))
    assert failed == "a.py: failed with exit code 1, after 0 launches, 0 hazards on the simulator (A2)\n"


def test_a_run_that_launched_nothing_says_so() -> None:
    note, last, _ = run.text(replace(RAN, launches=(), faults=())).split("\n")
    assert note.startswith("note: nothing launched a kernel")
    assert last == "a.py: 0 launches, 0 hazards on the simulator (A2)"


@pytest.mark.parametrize(
    ("arithmetic", "code", "said"),
    [
        ("precise", 1, ""),
        ("algebraic", 0, ""),
        ("algebraic", 1, "computes with stand-ins that only say whether two kernels agree: comparisons with torch may"),
        ("structure", 1, "computes no values: comparisons with torch may fail"),
    ],
)
def test_a_script_that_fails_as_its_values_are_no_numbers(arithmetic: str, code: int, said: str) -> None:
    told = run.text(RunResult("k.py", code, "A2", arithmetic, (), ()))
    assert ("may fail" in told) == bool(said)
    assert said in told
