"""Fixtures in other spellings: the same verdict, and the same results when both are executed.

A run takes every fifth fixture in one spelling, another for each; ``TL2NPU_SPELLINGS=all`` takes all fixtures in all
spellings (half an hour).
"""

from __future__ import annotations

import ast
import dataclasses
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixture_case import Case, load_all
from tests.respelled.spellings import SPELLINGS, respelled
from tests.test_fixtures import migrate, run_both, short

pytestmark = pytest.mark.thorough

NOT_YET = {
    ("mma/two_source_scores", "negated"): "the load of the first rounds is looked for in the first branch",
}
"""Spellings that are not understood: refused, or left in another form, and never wrong."""


def chosen(case: Case) -> Iterator[str]:
    """The spellings that find something to change in a fixture, in an order of its own."""
    order = sorted(SPELLINGS, key=lambda name: zlib.crc32(f"{case.name} {name}".encode()))
    return (name for name in order if applies(name, case))


def applies(name: str, case: Case) -> bool:
    """The names of tensors stay where a case gives inputs by them."""
    return not (name == "renamed" and case.inputs) and SPELLINGS[name](ast.parse(case.before))


ALL = os.environ.get("TL2NPU_SPELLINGS") == "all"
CASES = load_all()[:: 1 if ALL else 5]
PAIRS = [(case, name) for case in CASES for name in (chosen(case) if ALL else [""])]  # to choose takes seconds


@pytest.mark.parametrize(("case", "name"), PAIRS, ids=[f"{case.name}-{name}".strip("-") for case, name in PAIRS])
def test_another_spelling_is_the_same_kernel(case: Case, name: str, tmp_path: Path) -> None:
    name = name or next(chosen(case))
    text = respelled(name, case.before)
    result = migrate(case, text, tmp_path)
    assert result.error is None, name
    found = [(short(kernel.name), kernel.disposition, kernel.target) for kernel in result.kernels]
    expected = [(kernel.name, kernel.disposition, kernel.target) for kernel in case.kernels]
    if (case.name, name) in NOT_YET:
        assert found != expected, name
    else:
        assert found == expected, name
    if any(not kernel.checked or not kernel.checked.equal for kernel in result.kernels) and (
        result.changed and not case.name.startswith("refused/") and not is_same(result.new_text or "", case.after)
    ):
        ran = run_both(dataclasses.replace(case, before=text), result.new_text or "")
        assert ran.ok, (name, [(d.code, d.message) for d in ran.diagnostics])


def is_same(text: str, other: str) -> bool:
    """The same program; what it computes is tested with the fixture itself."""
    return ast.dump(ast.parse(text)) == ast.dump(ast.parse(other))
