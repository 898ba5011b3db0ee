"""The runtime around hand-overs, target pto (g6_neg, facts 7, E87, E88)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import ALLOCS, JIT, PARAMS, PRODUCT, STORE, check, warned
from tests.checks.support import LOAD, PLAIN, SPLIT, TILES, errors, findings, kernel, source
from tests.checks.support import STORE as STORE_B

ONE_TILE = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE)


@pytest.mark.parametrize(("index", "found"), [("[3]", []), ("3", []), ("[-1]", ["TL880"]), ("-1", ["TL880"])])
def test_output_positions(index: str, found: list[str]) -> None:
    assert check(*ONE_TILE, jit=f"out_idx={index}") == found


def test_a_negative_position_without_hand_overs() -> None:
    assert errors(kernel(TILES, LOAD, "T.tile.exp(b, a)", STORE_B), jit="out_idx=[-1]") == []


def test_the_grid_must_be_known() -> None:
    symbolic = SPLIT.replace("8", "T.ceildiv(m, 32)")
    factory = 'm = T.symbolic("m")'
    assert check(*ONE_TILE, launch=symbolic, factory=factory) == ["TL881"]
    vector = kernel(TILES, LOAD, "T.tile.exp(b, a)", STORE_B)
    assert errors(vector, launch=symbolic, factory=factory) == []
    assert check(*ONE_TILE, launch=SPLIT.replace("8", "m // 32"), args="m") == []


def test_a_grid_that_a_call_makes_symbolic() -> None:
    launch = SPLIT.replace("8", "m // 32")
    assert check(*ONE_TILE, launch=launch, args="m", tail='factory(T.symbolic("m"))') == ["TL881"]
    assert check(*ONE_TILE, launch=launch, args="m", tail="factory(256)") == []


def test_huge_workspaces() -> None:
    assert "TL882" not in warned(*ONE_TILE, launch=SPLIT.replace("8", "1 << 18"))
    assert "TL882" in warned(*ONE_TILE, launch=SPLIT.replace("8", "(1 << 18) + 1"))


def test_target_pto_is_a_note() -> None:
    settings = {"params": PARAMS, "jit": JIT + ", target='pto'"}
    body = kernel(ALLOCS, *ONE_TILE)
    assert "TL884" in [f.code for f in findings(source(body, **settings))]
    assert "TL884" not in [f.code for f in findings(source(body, **settings, launch=PLAIN))]
    assert check(*ONE_TILE, jit=JIT + ", target='pto'") == []
