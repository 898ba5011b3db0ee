"""A fixed sample of the mutants: each is caught by ``verify`` together with ``check``, or equivalent for a reason.

``python -m tests.mutations`` verifies all of them.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.fixture_case import Case, load_all
from tests.mutations.equivalent import program, reason
from tests.mutations.mutants import KINDS, Mutant, mutants
from tests.mutations.survivors import SURVIVORS
from tests.mutations.trial import Trial

pytestmark = pytest.mark.thorough

CASES = {case.name: case for case in load_all()}
SAMPLE = {
    "gpu/online_softmax": 17,
    "gpu/add_tiles": 7,
    "gpu/gemm_bias_relu": 11,
    "gpu/rms_norm": 13,
    "expert/vec_center_rows_cast": 7,
    "vid/softmax_rows": 8,
    "workspace/gemm_leaky_relu": 17,
}
"""Fixture -> each how many mutants one is verified."""


@pytest.mark.parametrize("name", SAMPLE)
def test_mutants_are_caught(name: str) -> None:
    case = CASES[name]
    trial = Trial(case)
    chosen = mutants(case.after)[:: SAMPLE[name]]
    passed = [m for m in chosen if not trial.of(m).caught]
    trial.close()
    unknown = [m.name for m in passed if not reason(case, m) and (name, m.name) not in SURVIVORS]
    assert unknown == []
    assert len(chosen) - len(passed) > len(chosen) // 2


def test_the_file_itself_is_right() -> None:
    """Or everything would be caught."""
    case = CASES["gpu/online_softmax"]
    trial = Trial(case)
    comment = Mutant("a comment", "dropped", 1, case.after + "# nothing\n")
    assert not trial.of(comment).caught
    trial.close()


def test_every_kind_is_made() -> None:
    made = Counter(m.kind for name in SAMPLE for m in mutants(CASES[name].after))
    assert set(made) >= KINDS.keys() - {"comparison", "grid", "tail"}
    for name in SAMPLE:
        found = mutants(CASES[name].after)
        assert [m.name for m in found] == [m.name for m in mutants(CASES[name].after)]
        assert len({m.text for m in found}) == len({m.name for m in found}) == len(found)
        assert all(ast.parse(m.text) for m in found)


def test_survivors_are_mutants() -> None:
    """A survivor that is none any more is struck off the list."""
    for name in {name for name, _ in SURVIVORS}:
        known = {mutant.name for mutant in mutants(CASES[name].after)}
        assert {text for case, text in SURVIVORS if case == name} <= known


@pytest.mark.parametrize(
    ("text", "by", "same"),
    [("T.ceildiv(M, rows)", "M // rows", True), ("clear=True", "clear=False", False), ("is_npu=True", "", False)],
)
def test_programs(text: str, by: str, same: bool) -> None:
    case: Case = CASES["gpu/online_softmax"]
    assert text in case.after
    found = program(case, case.after.replace(text, by, 1))
    assert (found == program(case, case.after)) is same
