"""Cores and blocks, over all combinations of the flags between them: a formula says which are right."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.machine.launch import Deadlock

X = np.random.default_rng(0).standard_normal((80, 16)).astype(np.float32)
H = X.astype(np.float16)
BOTH = (False, True)


@pytest.fixture(scope="module")
def kernels(watch: Any) -> Any:
    return watch("cross_core")


def attempt(kernels: Any, factory: str, *arrays: Any, **arguments: Any) -> None:
    """Run; a deadlock ends the run and is a finding."""
    with contextlib.suppress(Deadlock):
        kernels.run(factory, *arrays, **arguments)


@pytest.mark.parametrize(("set_flag", "wait_flag"), list(itertools.product(BOTH, repeat=2)))
def test_cube_to_vector(kernels: Any, set_flag: bool, wait_flag: bool) -> None:
    attempt(kernels, "cube_to_vector", H[:32], H[:16], set_flag=set_flag, wait_flag=wait_flag)
    assert bool(kernels.kinds()) == (not (set_flag and wait_flag))
    assert ("RAW" in kernels.kinds()) == (not wait_flag)
    assert ("unpaired-flag" in kernels.kinds()) == (set_flag and not wait_flag)
    assert ("deadlock" in kernels.kinds()) == (wait_flag and not set_flag)


def test_both_lines_are_named(kernels: Any) -> None:
    kernels.run("cube_to_vector", H[:32], H[:16], set_flag=False, wait_flag=False)
    (hazard,) = kernels.report.errors
    assert hazard.memory == "GM"
    assert hazard.buffer == "workspace"
    assert hazard.count == 4
    first, second = hazard.first, hazard.second
    assert (first.core, first.pipe, first.action) == ("aic", "FIX", "Write")
    assert (second.core, second.pipe, second.action) == ("aiv0", "MTE2", "Read")
    assert first.site.line == kernels.line("# cube_to_vector: write")
    assert second.site.line == kernels.line("# cube_to_vector: read")


@pytest.mark.parametrize(("first", "second", "wait_flag"), list(itertools.product(BOTH, repeat=3)))
def test_vector_to_cube(kernels: Any, first: bool, second: bool, wait_flag: bool) -> None:
    attempt(kernels, "vector_to_cube", H[:16], first=first, second=second, wait_flag=wait_flag)
    assert bool(kernels.kinds()) == (not (first and second and wait_flag))
    assert ("deadlock" in kernels.kinds()) == (wait_flag and not (first and second))


@pytest.mark.parametrize(
    ("forward", "backward", "slots", "lag"), list(itertools.product(BOTH, BOTH, (1, 2, 3), (1, 2, 3)))
)
def test_two_way(kernels: Any, forward: bool, backward: bool, slots: int, lag: int) -> None:
    attempt(kernels, "two_way", H, H[:16], forward=forward, backward=backward, slots=slots, lag=lag)
    assert bool(kernels.kinds()) == (not (forward and backward and lag <= slots))
    if forward and not kernels.kinds() - {"WAR"}:
        assert ("WAR" in kernels.kinds()) == (not backward or lag > slots)


@pytest.mark.parametrize("among", ["none", "block", "grid", "all"])
def test_barriers(kernels: Any, among: str) -> None:
    kernels.run("neighbours", X[:48], among=among)
    lines = {h.second.site.line for h in kernels.report.errors} | {h.first.site.line for h in kernels.report.errors}
    # a barrier in the block orders the two vector cores of it, one over the grid all of them
    assert (kernels.line("# neighbours: twin") in lines) == (among == "none")
    assert (kernels.line("# neighbours: next") in lines) == (among in ("none", "block"))


@pytest.mark.parametrize("form", ["same", "twins", "update", "blocks", "overlap"])
def test_duplicates(kernels: Any, form: str) -> None:
    """Equal values from both vector cores are how kernels that ignore vid work; between blocks they are a note."""
    factory = "in_place" if form == "update" else "duplicates"
    arrays = (X[:16], X[:16].copy()) if form == "update" else (X[:16],)
    kernels.run(factory, *arrays, form=form)
    expected = {"same": set(), "blocks": set(), "twins": {"WAW"}, "update": {"RAW", "WAR", "WAW"}, "overlap": {"WAW"}}
    assert kernels.kinds() <= expected[form]
    assert bool(kernels.kinds()) == bool(expected[form])
    assert {h.kind for h in kernels.report.hazards if h.severity == "note"} == ({"WAW"} if form == "blocks" else set())


@pytest.mark.parametrize("own", BOTH)
def test_reading_back_after_the_twin_has_written(kernels: Any, own: bool) -> None:
    """Both have written the same when a core reads: its own write comes before it, the twin's does not."""
    kernels.run("twins_read_back", X[:16], own=own)
    assert kernels.kinds() == (set() if own else {"RAW"})


@pytest.mark.parametrize("plain", BOTH)
def test_atomics_are_not_in_conflict_with_each_other(kernels: Any, plain: bool) -> None:
    kernels.run("atomics", X[:32], X[:16].copy(), plain=plain)
    assert kernels.kinds() == ({"RAW", "WAR"} if plain else set())


def test_deadlock_names_every_core(kernels: Any) -> None:
    with pytest.raises(SimulatorError, match="deadlock"):
        kernels.run("stuck", X[:16], what=0)
    (hazard,) = kernels.report.hazards
    assert hazard.kind == "deadlock"
    cube, vector = kernels.line("# stuck: cube"), kernels.line("# stuck: vector")
    assert hazard.message == (
        f"deadlock: cube core of block 0 waits for cross flag 3 at {kernels.path}:{cube}; "
        f"vector core 0 of block 0 waits for cross flag 4 at {kernels.path}:{vector}; "
        f"vector core 1 of block 0 waits for cross flag 4 at {kernels.path}:{vector}"
    )


@pytest.mark.parametrize(("sets", "flag"), [(16, 0), (17, 0), (1, 10), (1, 11), (1, 15), (1, 16)])
def test_limits_of_flags(kernels: Any, sets: int, flag: int) -> None:
    kernels.run("many", X[:16], sets=sets, flag=flag)
    assert kernels.kinds() == ({"flag-range"} if flag > 15 else set())
    assert {h.kind for h in kernels.report.hazards} == ({"flag-range"} if sets > 16 or flag > 10 else set())


@pytest.mark.parametrize("place", ["outside", "vector", "nowhere"])
def test_barrier_of_all_cores(kernels: Any, place: str) -> None:
    """Outside of a scope it is on both kinds of cores, and waits for all pipes."""
    kernels.run("barrier_of_all", H[:32], H[:16], place=place)
    assert ("RAW" in kernels.kinds()) == bool(kernels.kinds()) == (place != "outside")
