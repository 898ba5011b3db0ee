"""Pipes of one core, over all combinations of its synchronisation: a formula says which are right."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((96, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def kernels(watch: Any) -> Any:
    return watch("in_core")


@pytest.mark.parametrize("present", list(itertools.product((False, True), repeat=4)))
def test_chain(kernels: Any, present: tuple[bool, ...]) -> None:
    load_set, load_wait, store_set, store_wait = present
    kernels.run(
        "chain", X[:16], **dict(zip(("load_set", "load_wait", "store_set", "store_wait"), present, strict=True))
    )
    assert bool(kernels.kinds()) == (not all(present))
    # a wait without its set hangs the pipe; what comes after it is in order then
    raw = {h.buffer for h in kernels.report.errors if h.kind == "RAW"}
    assert raw == {name for name, wait in (("a", load_wait), ("b", store_wait)) if not wait}
    assert ("deadlock" in kernels.kinds()) == ((load_wait and not load_set) or (store_wait and not store_set))
    assert ("unpaired-flag" in kernels.kinds()) == ((load_set and not load_wait) or (store_set and not store_wait))


def test_wording(kernels: Any) -> None:
    kernels.run("chain", X[:16], load_set=False, load_wait=False, store_set=True, store_wait=True)
    (hazard,) = kernels.report.hazards
    load, add = kernels.line("# chain: load"), kernels.line("# chain: add")
    assert hazard.message == (
        f"Potential RAW hazard at UB: PIPE_MTE2 Write of a at {kernels.path}:{load} in block 0 (aiv0) and "
        f"PIPE_V Read of a at {kernels.path}:{add} in block 0 (aiv0) are not ordered"
    )
    assert hazard.count == 4  # two operands, two cores
    assert hazard.json()["first"] == {
        "file": str(kernels.path),
        "line": load,
        "action": "Write",
        "core": "aiv0",
        "block": 0,
        "pipe": "MTE2",
        "operator": "copy",
    }


NAMES = ("loaded", "stored", "read_free", "write_free", "after_load", "after_add", "at_end")


@pytest.mark.parametrize("present", list(itertools.product((False, True), repeat=len(NAMES))))
def test_loop(kernels: Any, present: tuple[bool, ...]) -> None:
    on = dict(zip(NAMES, present, strict=True))
    kernels.run("loop", X[:48], **on)
    right = {
        ("RAW", "a"): on["loaded"] or on["after_load"],
        ("RAW", "b"): on["stored"] or on["after_add"],
        ("WAR", "a"): on["read_free"] or on["after_add"] or on["at_end"],
        ("WAR", "b"): on["write_free"] or on["at_end"] or on["after_load"],
    }
    assert {(h.kind, h.buffer) for h in kernels.report.errors} == {key for key, value in right.items() if not value}


def test_automatic_sync_needs_no_flags(kernels: Any) -> None:
    result = kernels.run("automatic_loop", X[:48], **dict.fromkeys(NAMES, False))
    assert not kernels.report.hazards
    np.testing.assert_array_equal(result, X[:48] * 2)


@pytest.mark.parametrize(("slots", "ids", "back"), list(itertools.product((1, 2), (1, 2), (False, True))))
def test_event_ids_in_a_loop(kernels: Any, slots: int, ids: int, back: bool) -> None:
    kernels.run("ring", X, slots=slots, ids=ids, back=back)
    # two sets before the loop let the loads run two ahead, so two buffers are needed whatever the event ids are
    assert bool(kernels.kinds()) == (not (back and slots == 2))
    assert kernels.kinds() <= {"WAR", "WAW"}


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_waits_are_needed_in_any_order(kernels: Any, first: int) -> None:
    """The second orders nothing new if the later flag was waited for first; its set needs a wait all the same."""
    kernels.run("ring", X, slots=2, ids=2, back=True, first=first)
    assert not kernels.report.hazards


MATRIX = ("loaded", "moved", "computed", "l1_free", "l0_free", "out_free")


@pytest.mark.parametrize("present", list(itertools.product((False, True), repeat=len(MATRIX))))
def test_matrix(kernels: Any, present: tuple[bool, ...]) -> None:
    on = dict(zip(MATRIX, present, strict=True))
    a = X[:32].astype(np.float16)
    kernels.run("matrix", a, a, **on)
    found = {(h.kind, h.memory) for h in kernels.report.errors}
    right = {
        ("RAW", "L1"): on["loaded"],
        ("RAW", "L0A"): on["moved"],
        ("RAW", "L0B"): on["moved"],
        ("RAW", "L0C"): on["computed"],
        ("WAR", "L1"): on["l1_free"],
        ("WAR", "L0A"): on["l0_free"],
        ("WAR", "L0B"): on["l0_free"],
        ("WAR", "L0C"): on["out_free"],
    }
    assert found == {key for key, value in right.items() if not value}


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("fence", [False, True])
def test_gemm_v0_orders_its_own_pipes(kernels: Any, fence: bool, each: bool) -> None:
    a = X[:48].astype(np.float16)
    kernels.run("product", np.ascontiguousarray(a.T), a, fence=fence, each=each)
    assert not kernels.report.errors
    notes = {h.kind for h in kernels.report.hazards}
    assert notes == ({"redundant-flag"} if fence else set())
    if fence:
        lines = {h.second.site.line for h in kernels.report.hazards}
        assert kernels.line("# product: superfluous") in lines


@pytest.mark.parametrize(("before", "after"), list(itertools.product((False, True), repeat=2)))
def test_scalar_unit(kernels: Any, before: bool, after: bool) -> None:
    kernels.run("scalar", X[0], before=before, after=after)
    # what the scalar unit wrote is there when it hands out the next instruction, so ``after`` is superfluous
    assert bool(kernels.kinds()) == (not before)


@pytest.mark.parametrize("event", [0, 1])
def test_wait_before_its_set(kernels: Any, event: int) -> None:
    kernels.run("late", X[0], event=event)
    assert ("deadlock" in kernels.kinds()) == (event != 0)
    assert not kernels.kinds() - {"deadlock", "unpaired-flag"}


@pytest.mark.parametrize(("primed", "barrier", "early"), list(itertools.product((False, True), repeat=3)))
def test_circle(kernels: Any, primed: bool, barrier: bool, early: bool) -> None:
    """MTE2 waits for MTE3, MTE3 for V, V for MTE2; or V for MTE2 behind a barrier that waits for V."""
    kernels.run("circle", X[:4].reshape(-1), primed=primed, barrier=barrier, early=early)
    right = primed and not (barrier and early)
    assert kernels.kinds() == (set() if right else {"deadlock"})
    if not right:
        (hazard,) = kernels.report.errors
        assert hazard.first.site.line == kernels.line("# circle: early" if primed else "# circle: free")
        assert (f":{kernels.line('# circle: barrier')}, which" in hazard.message) == barrier


@pytest.mark.parametrize("same", [False, True])
def test_equal_values_do_no_harm(kernels: Any, same: bool) -> None:
    kernels.run("constant", X[:32], same=same)
    assert kernels.kinds() == (set() if same else {"WAR"})


@pytest.mark.parametrize("row", [16, 32])
def test_clipped_load(kernels: Any, row: int) -> None:
    """Rows 32 to 39 of 40 into 16: the tile is filled by a vector instruction, ordered after the store before it."""
    kernels.run("clipped", X[:40], row=row)
    found = {(h.kind, h.first.pipe, h.second.pipe) for h in kernels.report.errors}
    late = {("RAW", "MTE2", "V"), ("WAW", "MTE2", "V")}
    assert found - late == (set() if row == 32 else {("WAR", "MTE3", "MTE2")})
    assert found & late  # what was loaded is not waited for
