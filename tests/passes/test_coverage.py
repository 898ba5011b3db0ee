"""Which manual synchronisation may go: only what the automatic passes replace."""

from __future__ import annotations

import itertools

import pytest

from tests.passes.expert import two_way
from tests.passes.support import (
    CONFIGS,
    CV_PARAMS,
    GEMM_SCALE,
    IMPORTS,
    LOAD,
    STORE,
    block,
    developer,
    kernel,
    migrated,
    only,
    refused,
    vector_file,
)
from tl2npu.results import FileResult

FLAGS = (
    'T.set_cross_flag("FIX", 0)',
    "T.wait_cross_flag(0)",
    'T.set_cross_flag("MTE3", 1)',
    "T.wait_cross_flag(1)",
    'T.set_cross_flag("FIX", 2)',
    "T.wait_cross_flag(2)",
)


@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=6)))
def test_every_flag_of_a_two_way_loop_is_needed(present: tuple[bool, ...]) -> None:
    text = two_way()
    for flag, there in zip(FLAGS, present, strict=True):
        assert text.count(flag) == 1
        if not there:
            text = text.replace(flag, "T.barrier_all()")
    result = migrated(text)
    migrates = only(result).target == "developer"
    assert migrates == all(present), only(result).reason
    if not migrates:
        assert only(result).disposition == "refused"
        assert {d.code for d in result.diagnostics} & {"TL309"}
        assert result.new_text == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.wait_cross_flag(2)", "T.wait_cross_flag(0)"),
        ("T.wait_cross_flag(0)", "T.wait_cross_flag(2)"),
        ('T.set_cross_flag("FIX", 2)', 'T.set_cross_flag("FIX", 0)'),
        (
            'T.set_cross_flag("MTE3", 1)\n',
            'T.set_cross_flag("MTE3", 1)\n                    T.set_cross_flag("MTE3", 1)\n',
        ),
    ],
)
def test_wrong_flags(old: str, new: str) -> None:
    text = two_way()
    assert old in text
    refused(text.replace(old, new), "TL309")


def test_other_numbers_of_the_flags() -> None:
    text = two_way()
    for old, new in (("0)", "7)"), ("1)", "3)"), ("2)", "0)")):
        text = (
            text.replace(f'cross_flag("FIX", {old}', f'cross_flag("FIX", {new}')
            .replace(f"wait_cross_flag({old}", f"wait_cross_flag({new}")
            .replace(f'("MTE3", {old}', f'("MTE3", {new}')
        )
    # each replacement is applied once: 0 -> 7, 1 -> 3, 2 -> 0
    developer(text)


def test_a_back_pressure_flag_of_a_two_way_loop_may_go() -> None:
    """The cycle itself keeps the cube from overtaking: ``ws_s`` is read before ``ws_p`` is written."""
    text = two_way(
        cube_start="T.wait_cross_flag(3)", vector_top='T.set_cross_flag("V", 3)', vector_late='T.set_cross_flag("V", 3)'
    )
    developer(text)


def one_way(flags: str = "", after: str = "") -> str:
    """A loop in which only the cube writes: with AUTO_CV_SYNC nothing keeps it from overwriting."""
    body = GEMM_SCALE
    head = body[: body.index("T.copy(A[cid")]
    cube = "for k in T.serial(2):\n" + block(
        "T.copy(A[cid * 32, k * 32], a_l1)\nT.copy(B, b_l1)\n" + flags + "T.gemm_v0(a_l1, b_l1, c_l0, init=True)\n"
        'T.copy(c_l0, workspace_1[cid, 0, 0])\nT.set_cross_flag("FIX", 0)',
        4,
    )
    vector = "T.tile.fill(v, 0.0)\nfor k in T.serial(2):\n" + block(
        "T.wait_cross_flag(0)\nT.copy(workspace_1[cid, vid * 16, 0], u)\nT.tile.add(v, v, u)\n" + after, 4
    )
    programs = (
        f'with T.Scope("C"):\n{block(cube, 4)}\nwith T.Scope("V"):\n{block(vector, 4)}\n'
        f"    T.copy(v, O[cid * 32 + vid * 16, 0])"
    )
    return IMPORTS + kernel(head + programs, params=CV_PARAMS, jit="out_idx=[2], workspace_idx=[3]")


def crossed(writes: int, reads: int, *, cube: str, vector: str, behind: str = "", before: str = "") -> str:
    """A loop in which the cube writes one place and another one in which the vector cores read it, with these flags."""
    head = GEMM_SCALE[: GEMM_SCALE.index("T.copy(A[cid")]
    product = "T.copy(A[cid * 32, 0], a_l1)\nT.copy(B, b_l1)\nT.gemm_v0(a_l1, b_l1, c_l0, init=True)\n"
    product += f"T.copy(c_l0, workspace_1[cid, 0, 0])\n{cube}"
    total = f"{vector}\nT.copy(workspace_1[cid, vid * 16, 0], u)\nT.tile.add(v, v, u)"
    one = f"for k in T.serial({writes}):\n{block(product, 4)}\n{behind}"
    other = f"T.tile.fill(v, 0.0)\n{before}\nfor k in T.serial({reads}):\n{block(total, 4)}\n"
    other += "T.copy(v, O[cid * 32 + vid * 16, 0])"
    programs = f'with T.Scope("C"):\n{block(one, 4)}\nwith T.Scope("V"):\n{block(other, 4)}\n'
    return IMPORTS + kernel(head + programs, params=CV_PARAMS, jit="out_idx=[2], workspace_idx=[3]")


SET, WAIT = 'T.set_cross_flag("FIX", 0)', "T.wait_cross_flag(0)"
SET_1, WAIT_1 = SET.replace("0", "1"), WAIT.replace("0", "1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (crossed(3, 2, cube=SET, vector=WAIT), "`workspace_1` is written and read a different number of times"),
        (crossed(2, 1, cube=SET, vector=WAIT), "`workspace_1` is written and read a different number of times"),
        (
            crossed(2, 2, cube=SET, vector=WAIT, behind=SET_1, before=WAIT_1),
            "the flags let a later write of `workspace_1` overtake this read",
        ),
        (crossed(2, 3, cube=SET, vector=WAIT), "deadlock: the cross-core flags never let both cores finish"),
    ],
)
def test_flags_under_which_a_read_sees_another_write_than_its_own(text: str, why: str) -> None:
    result = migrated(text)
    assert only(result).disposition == "refused"
    assert told(result) == [f"TL309 {why}"]


def test_one_write_and_one_read_that_waits_for_it() -> None:
    developer(crossed(1, 1, cube=SET, vector=WAIT))


def told(result: FileResult) -> list[str]:
    return [f"{d.code} {d.message}" for d in result.diagnostics]


@pytest.mark.parametrize("pressed", [False, True])
def test_a_one_way_loop_keeps_its_flags(pressed: bool) -> None:
    text = one_way("T.wait_cross_flag(1)\n", 'T.set_cross_flag("V", 1)\n') if pressed else one_way()
    result = migrated(text)
    assert not only(result).target.startswith("developer")


def test_a_barrier_across_blocks_that_protects_data() -> None:
    body = (
        LOAD
        + "T.copy(a, O[cid * 32 + vid * 16, 0])\nT.sync_all()\nT.copy(O[(1 - cid) * 32 + vid * 16, 0], a)\n"
        + STORE
    )
    result = migrated(vector_file(body))
    assert only(result).target == "none"
    assert "T.sync_all()" in (result.new_text or "")


def test_a_barrier_across_blocks_that_protects_nothing() -> None:
    assert "sync_all" not in developer(vector_file(LOAD + "T.sync_all()\nT.tile.exp(a, a)\n" + STORE))


@pytest.mark.parametrize("mode", ["0", "1"])
def test_flags_between_cores_of_one_kind(mode: str) -> None:
    body = (
        LOAD
        + (
            f'T.copy(a, O[cid * 32 + vid * 16, 0])\nT.set_cross_flag("MTE3", 0, {mode})\n'
            f"T.wait_cross_flag(0)\nT.copy(O[cid * 32 + 16 - vid * 16, 0], a)\n"
        )
        + STORE
    )
    result = migrated(vector_file(body))
    assert only(result).target == "none"
    assert told(result) == ["TL849 `O` passes data between cores of one kind; Developer mode does not order them"]


def test_no_flag_at_all_between_scopes() -> None:
    text = two_way()
    for flag in FLAGS:
        text = text.replace(flag, "T.barrier_all()")
    refused(text, "TL309")


def test_manual_flags_beside_automatic_ones() -> None:
    body = GEMM_SCALE.replace(
        "T.copy(workspace_1[cid, vid", 'T.set_cross_flag("FIX", 0)\nT.wait_cross_flag(0)\nT.copy(workspace_1[cid, vid'
    )
    text = (
        IMPORTS
        + CONFIGS
        + kernel(body, params=CV_PARAMS, jit="out_idx=[2], workspace_idx=[3], pass_configs=pass_configs")
    )
    refused(text, "TL309")
