"""Statements on the wrong core (facts 3 and 4, E12 to E37)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import PRODUCT, check
from tests.checks.support import LOAD, ONE, PLAIN, SPLIT, STORE, TILES, errors, kernel

SCALARS = 's = T.alloc_ub((64,), "float32")\nT.copy(A[cid, 0:64], s)'


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ("v = T.alloc_var('float32')\nfor i in T.serial(64):\n    v = v + s[i]", ["TL860"]),
        ("v = T.alloc_var('float32')\nv = s[3]", ["TL860"]),
        ("v = T.alloc_var('float32')\nv = 2.0\nT.tile.mul(b, a, v)", ["TL860"]),
        ("v = T.alloc_var('float32')\nv = 2.0\nw = v + 1.0\nu = w\nT.tile.mul(b, a, u)", ["TL860"]),
        ("v = T.alloc_var('int32')\nv = cid + 1\nT.tile.exp(b, a)", []),
        ("v = T.alloc_var('int32')\nv = cid + 1\nif v > 1:\n    T.tile.exp(b, a)", ["TL860"]),
        ("v = T.alloc_var('int32')\nv = cid + 1\nfor k in T.serial(v):\n    T.tile.exp(b, a)", ["TL860"]),
        ("v = T.alloc_var('int32')\nv = cid + 1\nw = v\nif v > 1:\n    w = 2", []),
        ("v = s[3]\nT.tile.mul(b, a, v)", []),
    ],
)
def test_variables(statements: str, found: list[str]) -> None:
    assert errors(kernel(TILES, SCALARS, LOAD, statements, STORE), launch=ONE) == found
    assert errors(kernel(TILES, SCALARS, LOAD, statements, STORE), launch=ONE, keys=("AUTO_SYNC",)) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("O[cid, 0] = s[0]", ["TL861"]),
        ("v = s[0] * 2.0\nw = v + 1.0\nO[cid, 0] = w", ["TL861"]),  # by names
        ("v = cid * 2.0\nO[cid, 0] = v", []),
        ("for i in T.serial(64):\n    O[cid, i] = s[i]", ["TL895"]),
        ("for i in T.serial(64):\n    s[i] = s[i] * 2.0", []),
        ("O[cid, 0] = 1.0", []),
        ("for i, j in T.Parallel(32, 64):\n    O[cid * 32 + i, j] = a[i, j] * 2.0", []),
        ("for i, j in T.Parallel(32, 64):\n    O[cid * 32 + i, j] = 1.0 - a[i, j]", ["TL895"]),
    ],
)
def test_scalar_stores_to_global_memory(statement: str, found: list[str]) -> None:
    assert errors(kernel(TILES, SCALARS, LOAD, statement), launch=ONE) == found


def test_calls_without_arguments() -> None:
    body = kernel(TILES, LOAD, "for i in T.serial(4):\n    T.tile.exp(a, a)\n    T.loop_break()")
    assert "TL862" in errors(body, launch=ONE)


@pytest.mark.parametrize("launch", [SPLIT, ONE, PLAIN])
def test_conditions_on_ub(launch: str) -> None:
    vector = "if s[0] > 0.0:\n    T.tile.fill(y, 0.0)"
    around = "T.tile.fill(s, 1.0)\nif s[0] > 0.0:\n    T.gemm_v0(l, r, c, init=True)"
    named = "T.tile.fill(s, 1.0)\nlimit = s[0]\nif limit > 0.0:\n    T.gemm_v0(l, r, c, init=True)"
    cube = "T.copy(A[cid * 32, 0], l)\nT.copy(B[0, 0], r)"
    row = ["TL826"] if launch == SPLIT else []
    assert sorted(check("T.tile.fill(s, 1.0)", vector, launch=launch)) == row
    assert "TL865" in check(cube, around, launch=launch)
    assert "TL865" in check(cube, named, launch=launch)


def test_a_variable_stored_under_a_condition_on_ub() -> None:
    text = 'last = T.alloc_var("int32")\nfor k in T.serial(4):\n    if s[0] > 0.0:\n        last = k'
    assert "TL865" in check("T.tile.fill(s, 1.0)", text, launch=ONE)
    assert "TL865" not in check("T.tile.fill(s, 1.0)", text.replace("s[0] > 0.0", "cid > 0"), launch=ONE)


def test_a_loop_bound_from_ub() -> None:
    extra = 'n = T.alloc_ub((1,), "int32")\nT.tile.fill(n, 1)'
    bound = "for k in T.serial(n[0]):\n    T.gemm_v0(l, r, c, init=True)"
    assert "TL865" in check("T.copy(A[cid * 32, 0], l)\nT.copy(B[0, 0], r)", extra, bound, launch=ONE)


def test_buffers_that_nothing_marks_as_ub() -> None:
    body = """
    x = T.alloc_shared((32, 64), "float32")
    for i, j in T.Parallel(32, 64):
        x[i, j] = b[i, j] * 2.0
        b[i, j] = x[i, j] + b[i, j]
    """
    assert errors(kernel(TILES, body, STORE)) == ["TL866"]
    assert errors(kernel(TILES, body.replace("alloc_shared", "alloc_ub"), STORE)) == []
    assert errors(kernel(TILES, body, "T.tile.exp(x, x)", STORE)) == []
    to_cube = 'l0 = T.alloc_L0A((32, 64), "float32")\nT.copy(x, l0)'  # an operand of the cube core: no mark would help
    assert errors(kernel(TILES, body, to_cube, STORE)) == ["TL894"]
    option = "if causal:\n    T.tile.exp(x, x)"
    assert errors(kernel(TILES, body, option, STORE), args="causal") == ["TL866"]
    assert errors(kernel(TILES, body, option.replace("causal", "cid > 0"), STORE)) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.tile.mul(c, c, 2.0)", ["TL894"]),
        ("T.tile.fill(c, 0.0)", ["TL894"]),
        ("T.tile.exp(l, l)", ["TL894"]),
        ("for i, j in T.Parallel(32, 64):\n    c[i, j] = c[i, j] * 2.0", ["TL894"]),
        ("for i, j in T.Parallel(32, 64):\n    l[i, j] = l[i, j] * h[i, j]", ["TL894"]),
        ("T.tile.atomic_add(O[cid * 32, 0], c)", []),
        ("T.copy(c, O[cid * 32, 0])", []),
    ],
)
def test_vector_work_on_cube_buffers(statement: str, found: list[str]) -> None:
    assert check(PRODUCT, statement) == found


def test_copies_that_no_core_can_make() -> None:
    assert check(PRODUCT, "T.copy(l, h)", "T.tile.exp(h, h)") == ["TL866"]
    assert check(PRODUCT, "T.copy(c, l)") == ["TL866"]
