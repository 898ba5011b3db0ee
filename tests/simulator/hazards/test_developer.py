"""Hand-overs in Developer mode: which loops the compiler's flags make safe was measured (compiler-facts 2, g9_*)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((96, 32)).astype(np.float16)


@pytest.fixture(scope="module")
def kernels(watch: Any) -> Any:
    return watch("developer")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("form", "right"), [("cube to vector", False), ("vector to cube", False), ("both", True), ("after", True)]
)
def test_loops_with_hand_overs(kernels: Any, form: str, right: bool, threads: int) -> None:
    """A loop with hand-overs one way only writes its workspace again before the other side has read it."""
    kernels.run("loop", X, X[:32], form=form, threads=threads)
    # which of the two came first in the run, and so the name, depends on how far one side was ahead
    assert kernels.kinds() <= {"RAW", "WAR"}, list(kernels.report.lines())
    assert bool(kernels.kinds()) == (not right)
    for hazard in kernels.report.errors:
        assert hazard.buffer.startswith("workspace_")


@pytest.mark.parametrize("turns", [1])
def test_one_turn_is_safe(kernels: Any, turns: int) -> None:
    for form in ("cube to vector", "vector to cube"):
        kernels.run("loop", X[:32], X[:32], form=form, turns=turns)
        assert not kernels.report.hazards
