"""The self-check list (TL810 to TL816; facts 5)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import PRODUCT, STORE, check, warned
from tests.checks.support import KEYS, LOAD, ONE, PLAIN, SPLIT, TILES, errors, findings, kernel, source, warnings
from tests.checks.support import STORE as STORE_B
from tl2npu.codes import CODES

BODY = kernel(TILES, LOAD, "T.tile.exp(b, a)", STORE_B)


@pytest.mark.parametrize(
    ("launch", "found"),
    [
        (SPLIT, []),
        (ONE, []),
        (PLAIN, []),
        ("T.Kernel(8, threads=2, is_npu=True) as cid", []),
        ("T.Kernel(8, is_npu=True) as (cid, _)", []),
        ("T.Kernel(8, threads=2, is_npu=True) as (cid, vid)", ["TL815"]),
        ("T.Kernel(8, threads=2, is_npu=True) as (cid,)", ["TL815"]),
        ("T.Kernel(8, threads=128, is_npu=True) as (cid)", ["TL815"]),
        ("T.Kernel(8, threads=2) as (cid)", ["TL815"]),
        ("T.Kernel(8, 4, is_npu=True) as (cid, by)", ["TL815"]),
    ],
)
def test_launch(launch: str, found: list[str]) -> None:
    assert errors(BODY, launch=launch) == found


def test_vid_beside_threads() -> None:
    body = kernel(TILES, "T.copy(A[cid * 32 + vid * 16, 0], a)", "T.tile.exp(b, a)", STORE_B)
    assert errors(body) == ["TL810"]
    assert errors(body, launch=PLAIN) == []


@pytest.mark.parametrize("binding", ["vid = cid % 2", "for vid in T.serial(2):\n    T.copy(A[vid * 16, 0], a)"])
def test_a_variable_of_the_name_vid(binding: str) -> None:
    body = kernel(TILES, binding, "T.copy(A[cid * 32 + 0, 0], a)", "T.tile.exp(b, a)", STORE_B)
    assert errors(body) == []


def test_a_block_of_the_name_vid() -> None:
    body = kernel(TILES, "T.copy(A[vid * 32, 0], a)", "T.tile.exp(b, a)", STORE_B.replace("cid", "vid"))
    assert errors(body, launch="T.Kernel(8, threads=2, is_npu=True) as (vid)") == []


def test_repeatsspaces_beside_on_chip_copies() -> None:
    body = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE)
    params = (
        'A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), X: T.Tensor((256, 64), "float16"), '
        'O: T.Tensor((256, 64), "float32"), workspace_9: T.Tensor((8, 32, 64), "float32")'
    )
    assert check(*body, params=params) == ["TL811"]
    assert check(*body, jit="out_idx=[3], workspace_idx=[2]") == ["TL811"]
    assert check(*body, jit="out_idx=[3], workspace_idx=[4]") == ["TL811"]
    assert check(*body) == []


def test_explicit_allocations() -> None:
    body = """
    x = T.alloc_ub((32, 64), "float32")
    y = T.alloc_shared((32, 64), "float32")
    T.copy(A[cid * 32, 0], x)
    T.tile.exp(y, x)
    """
    assert warnings(body) == ["TL812"]
    assert warnings(body, launch=PLAIN) == []
    assert warnings(body.replace("alloc_ub", "alloc_shared")) == []


def test_an_allocation_that_the_inference_would_get_wrong() -> None:
    body = """
    x = T.alloc_ub((32, 64), "float32")
    y = T.alloc_shared((32, 64), "float32")
    T.copy(A[cid * 32, 0], y)
    for i, j in T.Parallel(32, 64):
        x[i, j] = y[i, j] * 2.0
        y[i, j] = x[i, j] + y[i, j]
    T.copy(y, O[cid * 32, 0])
    """
    assert warnings(body) == []
    assert errors(body) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.barrier_all()", ["TL814"]),
        ("T.pipe_barrier('v')", ["TL814"]),
        ("T.set_flag('mte2', 'v', 0)\nT.wait_flag('mte2', 'v', 0)", ["TL814"]),
        ("T.set_cross_flag('FIX', 0)", ["TL814"]),
        ("with T.Scope('V'):\n    T.tile.exp(b, a)", ["TL814"]),
        ("T.sync_all()", ["TL862"]),
    ],
)
def test_manual_synchronisation(statement: str, found: list[str]) -> None:
    assert errors(kernel(TILES, LOAD, statement, STORE_B)) == found


SCOPED = (
    "with T.Scope('V'):\n    T.copy(A[cid * 32, 0], a)\n    {}\n    T.tile.exp(b, a)\n    {}\n"
    "    T.copy(b, O[cid * 32, 0])"
)
PAIR = "T.set_flag('mte2', 'v', {0})\n    T.wait_flag('mte2', 'v', {0})"


@pytest.mark.parametrize(
    "keys", [(), ("AUTO_SYNC",), ("AUTO_SYNC", "MEMORY_PLANNING"), ("AUTO_SYNC", "AUTO_CV_SYNC", "MEMORY_PLANNING")]
)
def test_scopes_are_fine_where_nothing_else_divides_the_work(keys: tuple[str, ...]) -> None:
    body = kernel(TILES, SCOPED.format("T.barrier_all()", "T.barrier_all()"))
    assert errors(body, launch=PLAIN, keys=keys) == []
    assert warnings(body, launch=PLAIN, keys=keys) == []


@pytest.mark.parametrize(
    ("first", "second", "keys", "found", "warned"),
    [
        ("pass", "pass", KEYS, [], ["TL814"]),  # the scope does nothing
        ("T.barrier_all()", "T.barrier_all()", KEYS, [], ["TL814"]),
        (PAIR.format(0), "pass", KEYS, [], ["TL814"]),  # a wait right behind its set
        (PAIR.format(10), "pass", KEYS, [], ["TL814"]),
        ("T.set_flag('v', 'mte2', 0)", "T.wait_flag('v', 'mte2', 0)", KEYS, ["TL814"], ["TL814"]),
        ("T.set_flag('v', 'mte2', 9)", "T.wait_flag('v', 'mte2', 9)", KEYS, [], ["TL814"]),
        ("T.set_flag('m', 'fix', 9)", "T.wait_flag('m', 'fix', 9)", KEYS, ["TL814"], ["TL814"]),  # on the vector cores
        (PAIR.format(0), PAIR.format(0).replace("'v'", "'mte3'").replace("'mte2'", "'v'"), KEYS[:1], [], ["TL814"]),
    ],
)
def test_scopes_beside_combine(
    first: str, second: str, keys: tuple[str, ...], found: list[str], warned: list[str]
) -> None:
    body = kernel(TILES, SCOPED.format(first, second))
    assert errors(body, launch=PLAIN, keys=keys) == found
    assert warnings(body, launch=PLAIN, keys=keys) == warned


def test_a_flag_in_front_of_everything_is_dropped() -> None:
    body = kernel(TILES, "T.set_flag('v', 'mte2', 0)", LOAD, "T.wait_flag('v', 'mte2', 0)\nT.tile.exp(b, a)", STORE_B)
    assert errors(body, launch=PLAIN, keys=("AUTO_CV_COMBINE",))[:1] == ["TL814"]


def test_every_rule_holds_in_expert_mode() -> None:
    scope = "with T.Scope('V'):\n    T.tile.transpose(b, a)\n    T.barrier_all()\n    T.tile.exp(b, b[0, :])"
    assert errors(kernel(TILES, scope), launch=PLAIN, keys=()) == ["TL741"]


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (KEYS, []),
        (("AUTO_CV_COMBINE", "AUTO_SYNC", "AUTO_CV_SYNC"), []),
        (("AUTO_CV_COMBINE", "AUTO_SYNC", "MEMORY_PLANNING"), ["TL816"]),
        (("AUTO_CV_SYNC", "AUTO_SYNC", "MEMORY_PLANNING"), ["TL816"]),
        (("AUTO_CV_COMBINE", "AUTO_CV_SYNC", "MEMORY_PLANNING"), ["TL816"]),
    ],
)
def test_passes_for_a_hand_over(keys: tuple[str, ...], found: list[str]) -> None:
    assert check(PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE, keys=keys) == found


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (("AUTO_SYNC",), []),
        (("AUTO_SYNC", "AUTO_CV_COMBINE"), []),
        (("AUTO_CV_COMBINE",), ["TL816"]),
        (("AUTO_SYNC", "AUTO_CV_SYNC"), ["TL816"]),
        ((), ["TL816"]),
    ],
)
def test_passes_for_vector_work(keys: tuple[str, ...], found: list[str]) -> None:
    assert errors(BODY, keys=keys) == found


@pytest.mark.parametrize("beside", [False, True])
def test_a_product_orders_its_own_pipes(beside: bool) -> None:
    """No AUTO_SYNC: ``gemm_v0`` waits for its loads, and the store for it; vector work beside it has nothing."""
    body = """
    l = T.alloc_shared((32, 64), "float16")
    r = T.alloc_shared((64, 64), "float16")
    c = T.alloc_fragment((32, 64), "float32")
    for k in T.serial(4):
        T.copy(A[cid * 32, k * 64], l)
        T.copy(B[k * 64, 0], r)
        T.gemm_v0(l, r, c, init=(k == 0))
    T.copy(c, O[cid * 32, 0])
    """
    vector = """
    o = T.alloc_ub((32, 64), "float32")
    T.copy(O[cid * 32, 0], o)
    T.copy(o, O[cid * 32, 0])
    """
    params = 'A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float32")'
    text = source(
        kernel(body, vector if beside else ""),
        keys=("MEMORY_PLANNING",),
        params=params,
        jit="out_idx=[2]",
        launch=PLAIN,
    )
    found = [f for f in findings(text) if f.code == "TL816"]
    assert [f.severity or CODES[f.code].severity for f in found] == ["error" if beside else "info"]


def test_newer_compilers_combine_by_themselves() -> None:
    from tl2npu.options import Options

    keys = ("AUTO_CV_SYNC", "AUTO_SYNC")
    body = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE)
    assert check(*body, keys=keys) == ["TL816"]
    assert check(*body, keys=keys, options=Options(ascend_version="2026-09")) == []


def test_threads_are_missing_beside_hand_overs() -> None:
    body = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE)
    assert warned(*body, launch="T.Kernel(8, is_npu=True) as (cid, _)") == ["TL813"]
