"""TL733: functions that the compiler finds no vector form for; each verdict is the compiler's own (95acbd7f)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, findings, source

VECTOR = "s = T.alloc_ub((64,), 'float32')\nT.copy(A[0, 0:64], s)\n"
REST = "T.copy(s, O[0, 0:64])\n"
EXP = "    s[i] = T.exp(s[i])\n" + REST
EXTRA = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), '
HALF, FLOAT, INT = (f'{EXTRA}S: T.Tensor((8,), "{dtype}")' for dtype in ("float16", "float32", "int32"))
ONE_ELEMENT = "s = T.alloc_ub((1,), 'float32')\nT.copy(A[0, 0:1], s)\n"


def found(body: str, params: str, args: str = "") -> list[str]:
    text = source(f"{TILES}{LOAD}{body}T.tile.exp(b, a)\n{STORE}", params=params, args=args, launch=ONE)
    return [f.message for f in findings(text) if f.code == "TL733"]


@pytest.mark.parametrize(
    ("body", "params", "why"),
    [
        (ONE_ELEMENT + "for i in T.Parallel(1):\n    s[i] = T.exp(s[i])\n", FLOAT, "it has one iteration"),
        (ONE_ELEMENT + "for i in T.Parallel(n):\n    s[i] = T.sqrt(s[i])\n", FLOAT, "`n` is 1 here"),
        (VECTOR + "g = S[cid]\nfor i in T.Parallel(64):\n    s[i] = s[i] * 0.5 + g\n" + EXP, HALF, "`g` is float16"),
        (VECTOR + "g = S[cid] * 2\nfor i in T.Parallel(64):\n    s[i] = s[i] - g\n" + EXP, HALF, "`g` is float16"),
        (VECTOR + "g = S[cid]\nfor i in T.Parallel(64):\n    s[i] = s[i] * g\n" + EXP, INT, "`g` is int32"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * cid\n" + EXP, FLOAT, "`cid` is int32"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * i\n" + EXP, FLOAT, "has no vector form"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] - s[i]\n" + EXP, FLOAT, "has no vector form"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] -= s[i]\n" + EXP, FLOAT, "has no vector form"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * 0.0\n" + EXP, FLOAT, "has no vector form"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = (s[i] + 1.0) - s[i]\n" + EXP, FLOAT, "has no vector form"),
    ],
)
def test_rejected(body: str, params: str, why: str) -> None:
    (told,) = found(body, params, "n=1")
    assert why in told


@pytest.mark.parametrize(
    ("body", "params"),
    [
        (VECTOR + "for i in T.Parallel(64):\n" + EXP, FLOAT),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] - (s[i] - 1.0)\n" + EXP, FLOAT),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * 1.0\n" + EXP, FLOAT),
        (ONE_ELEMENT + "T.tile.exp(s, s)\n", FLOAT),
        (ONE_ELEMENT + "for i in T.Parallel(1):\n    s[i] = s[i] * 2.0 + 1.0\n", FLOAT),
        (VECTOR + "g = S[cid]\nfor i in T.Parallel(64):\n    s[i] = s[i] * 0.5 + g\n" + EXP, FLOAT),
        (VECTOR + "g = T.cast(S[cid], 'float32')\nfor i in T.Parallel(64):\n    s[i] = s[i] + g\n" + EXP, HALF),
        (VECTOR + "g = S[cid]\nh = T.float32(g)\nfor i in T.Parallel(64):\n    s[i] = s[i] + h\n" + EXP, HALF),
        (VECTOR + "g = S[cid]\nfor i in T.Parallel(64):\n    s[i] = s[i] + g\nfor i in T.Parallel(64):\n" + EXP, HALF),
    ],
)
def test_accepted(body: str, params: str) -> None:
    assert found(body, params) == []


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for i in T.serial(64):\n    s[i] = T.abs(s[i])\n", 1),
        ("if T.abs(S[0]) < 1.0:\n    T.tile.fill(s, 0.0)\n", 1),
        ("if T.sqrt(S[0]) < 1.0:\n    T.tile.fill(s, 0.0)\n", 1),
        ("T.tile.fill(s, T.exp(S[0]))\n", 1),
        ("T.tile.mul(s, s, T.abs(S[0]))\n", 1),
        ("for i in T.Parallel(64):\n    s[i] = T.abs(s[i])\n", 0),
        ("for i in T.Parallel(64):\n    if T.abs(i - cid) < 3:\n        s[i] = 0.0\n", 0),
        ("s[T.abs(cid)] = 1.0\n", 0),
    ],
)
def test_functions_of_single_values(body: str, count: int) -> None:
    """"Unresolved call Op(tir.fabs)", but not of integers, of which it is a choice."""
    text = source(f"{TILES}{LOAD}{VECTOR}{body}{REST}T.tile.exp(b, a)\n{STORE}", params=FLOAT, launch=ONE)
    assert len([f for f in findings(text) if f.code == "TL897"]) == count
