"""TL733, TL752: loops that the compiler finds no vector form for; each verdict is the compiler's own (95acbd7f)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, STORE, TILES, findings, source, subject
from tl2npu.checks.operators.vector_form import for_types, parallel_stores
from tl2npu.checks.run import check_as_it_stands

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
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * i\n" + EXP, FLOAT, "`s[i] * i` uses `i` as a value"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] - s[i]\n" + EXP, FLOAT, "stores a constant"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] -= s[i]\n" + EXP, FLOAT, "stores a constant"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] * 0.0\n" + EXP, FLOAT, "stores a constant"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = (s[i] + 1.0) - s[i]\n" + EXP, FLOAT, "stores a constant"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = 1.0 - s[i]\n" + EXP, FLOAT, "on the left in `1.0 - s[i]`"),
        (VECTOR + "for i in T.Parallel(64):\n    s[i] = s[i] // 2.0\n" + EXP, FLOAT, "computes `s[i] // 2.0`"),
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


HALF_TILES = "h = T.alloc_ub((64,), 'float16')\ng = T.alloc_ub((64,), dtype)\nT.copy(A[0, 0:64], h)\nT.copy(h, g)\n"
HALF_ARGS = "dtype='float16', eps=1e-3, n=2"
HALF_FACTORY = "root = eps**0.5\nhalf = n / 4\nwhole = n * 4\n"


def of_halves(statement: str, code: str, rest: str = "") -> list[str]:
    """What is said of a statement on tiles of halves, alone or before another one."""
    body = f"{VECTOR}{HALF_TILES}for i in T.Parallel(64):\n    {statement}\n{rest}T.copy(g, s)\n{REST}"
    text = source(
        f"{TILES}{LOAD}{body}T.tile.exp(b, a)\n{STORE}",
        params=FLOAT,
        args=HALF_ARGS,
        launch=ONE,
        factory=HALF_FACTORY,
    )
    return [f.message for f in findings(text) if f.code == code]


WIDE = [
    ("g[i] = h[i] + 0.5", "0.5"),
    ("g[i] *= 0.5", "0.5"),
    ("g[i] = h[i] * eps", "eps"),
    ("g[i] = h[i] * root", "root"),
    ("g[i] = h[i] * half", "half"),
    ("g[i] = T.max(g[i], 0.0)", "0.0"),
    ("g[i] = (h[i] + g[i] / -2.0) * n", "-2.0"),
]
NARROW = [
    "g[i] = h[i] + T.float16(0.5)",
    "g[i] *= T.cast(0.5, dtype)",
    "g[i] = h[i] * T.cast(eps, 'float16') + 1",
    "g[i] = h[i] * n",
    "g[i] = h[i] * whole",
    "g[i] = T.max(g[i], 0)",
    "g[i] = T.max(g[i], T.float16(0.0))",
    "s[i] = s[i] * 0.5",
]


@pytest.mark.parametrize(("statement", "number"), WIDE)
def test_numbers_of_another_type(statement: str, number: str) -> None:
    """Alone they cost time; beside a function they do not compile."""
    (slow,) = of_halves(statement, "TL752")
    assert slow == f"`{number}` is float32 and `g` is float16, so the loop runs element by element"
    (told,) = of_halves(statement, "TL733", "    h[i] = T.exp(h[i])\n")
    assert f"`{number}` is float32" in told


@pytest.mark.parametrize(
    ("statement", "form"), [*((statement, "scalar") for statement, _ in WIDE), *((one, "vector") for one in NARROW)]
)
def test_the_form_that_cost_goes_by(statement: str, form: str) -> None:
    body = f"{VECTOR}{HALF_TILES}for i in T.Parallel(64):\n    {statement}\nT.copy(g, s)\n{REST}"
    text = source(f"{TILES}{LOAD}{body}", params=FLOAT, args=HALF_ARGS, factory=HALF_FACTORY)
    stores = [for_types(found, {"dtype": "float16"}) for found in parallel_stores(subject(text))]
    assert [found.form for found in stores] == [form]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("x[i] + 3", "scalar"),
        ("x[i] * whole", "scalar"),
        ("T.max(x[i], 0)", "scalar"),
        ("x[i] << n", "scalar"),
        ("x[i] + x[i] * 2", "scalar"),
        ("x[i] * T.int16(2)", "vector"),
        ("x[i] - T.cast(3, 'int16')", "vector"),
        ("x[i] << 2", "vector"),
        ("-x[i] + x[i]", "vector"),
        ("~x[i] & x[i]", "vector"),
        ("~(x[i] + x[i])", "scalar"),
    ],
)
@pytest.mark.parametrize("dtype", ["int16", "uint8", "int32"])
def test_numbers_beside_short_integers(value: str, form: str, dtype: str) -> None:
    """A number of Python is an int32 beside integers: generated code at 95acbd7f, a kernel for each line."""
    tile = f"x = T.alloc_ub((64,), '{dtype}')\n"
    body = f"{tile}for i in T.Parallel(64):\n    x[i] = {value.replace('int16', dtype)}\n{REST}"
    text = source(f"{TILES}{LOAD}{body}", params=FLOAT + ", n: T.int32", args="whole=4")
    (found,) = parallel_stores(subject(text))
    wide = dtype == "int32" and not value.startswith("~(")
    assert found.form == ("vector" if wide else form)
    slow = [f.message for f in findings(text) if f.code == "TL752"]
    assert bool(slow) == (dtype == "int16" and form == "scalar" and "~" not in value)


@pytest.mark.parametrize(
    ("loop", "statement", "why"),
    [
        ("i in T.Parallel(64)", "s[i] = 1.0 - s[i]", "the number stands on the left in `1.0 - s[i]`"),
        ("i in T.Parallel(64)", "s[i] = 0.0", "`s[i] = 0.0` stores a constant"),
        ("i in T.Parallel(64)", "if i < 32:\n        s[i] = s[i] * 2.0", "the loop has another statement than stores"),
        ("i, j in T.Parallel(32, 64)", "s[i] = a[i, j]", "`s[i] = a[i, j]` stores to one element for all `j`"),
        ("i in T.Parallel(32)", "s[i] = 1.0 - s[i]", ""),
        ("i in T.Parallel(64)", "s[i] = s[i] * -1.0 + 1.0", ""),
        ("i in T.serial(64)", "s[i] = 1.0 - s[i]", ""),
    ],
)
def test_slow_loops_as_somebody_wrote_them(loop: str, statement: str, why: str) -> None:
    """Right and slow: the compiler writes `GetValue` and `SetValue` for each element."""
    body = f"{VECTOR}for {loop}:\n    {statement}\n{REST}T.tile.exp(b, a)\n"
    text = source(f"{TILES}{LOAD}{body}{STORE}", params=FLOAT, launch=ONE)
    slow = [f.message for f in check_as_it_stands(subject(text)) if f.code == "TL753"]
    assert slow == ([f"{why}, so the loop runs element by element"] if why else [])


@pytest.mark.parametrize("statement", NARROW)
def test_numbers_of_the_same_type(statement: str) -> None:
    assert of_halves(statement, "TL752") == of_halves(statement, "TL733", "    h[i] = T.exp(h[i])\n") == []


@pytest.mark.parametrize(
    ("statement", "is_scalar"),
    [
        ("s[i] = s[i] * 0.0 / (a[0, i] + 0.5)", True),
        ("s[i] = s[i] * 0.0 / (a[0, i] + 0.5) + s[i] * 2.0", False),
        ("s[i] = (s[i] - s[i]) * 2.0 - a[0, i]", True),
        ("s[i] = T.max(s[i] - s[i], 1.0 + s[i])", True),
        ("s[i] = -(s[i] - s[i]) - s[i]", True),
        ("s[i] = a[0, i] / (s[i] * 0.0 + 2.0)", False),
        ("s[i] = T.max(s[i] - s[i], s[i])", False),
        ("s[i] = (s[i] - s[i]) + s[i] * 2.0", False),
        ("s[i] = 1 * s[i] + 2.0", False),
        ("s[i] = 0.5 * s[i] + 2.0", True),
    ],
)
def test_values_are_simplified_first(statement: str, is_scalar: bool) -> None:
    assert bool(found(f"{VECTOR}for i in T.Parallel(64):\n    {statement}\n{EXP}", FLOAT)) == is_scalar


@pytest.mark.parametrize(
    ("value", "crashes"),
    [
        ("T.max(s[i], 0.0)", False),
        ("T.max(s[i] + 0.0, 0)", False),
        ("T.max(s[i] * 2.0, 0.0)", True),
        ("T.max(s[i] * 2.0, s[i] - s[i])", True),
        ("T.min(s[i], 0.0)", True),
        ("T.max(0.5, s[i])", False),
        ("T.max(s[i] - s[i], s[i] * 2.0)", False),
    ],
)
def test_a_maximum_with_a_number_is_relu_of_an_element_only(value: str, crashes: bool) -> None:
    text = source(
        f"{TILES}{LOAD}{VECTOR}for i in T.Parallel(64):\n    s[i] = {value}\n{REST}T.tile.exp(b, a)\n{STORE}",
        params=FLOAT,
        launch=ONE,
    )
    assert [f.code for f in findings(text) if f.code == "TL896"] == ["TL896"] * crashes


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for i in T.serial(64):\n    s[i] = T.abs(s[i])\n", 1),
        ("if T.abs(S[0]) < 1.0:\n    T.tile.fill(s, 0.0)\n", 1),
        ("if T.sqrt(S[0]) < 1.0:\n    T.tile.fill(s, 0.0)\n", 1),
        ("T.tile.fill(s, T.exp(S[0]))\n", 1),
        ("T.tile.mul(s, s, T.abs(S[0]))\n", 1),
        ("g = S[0]\nT.tile.fill(s, T.abs(g))\n", 1),
        ("g = S[0] * 2\nh = g + cid\nT.tile.fill(s, T.abs(h))\n", 1),
        ("g = T.cast(cid, 'float32')\nT.tile.fill(s, T.abs(g))\n", 1),
        ("g = cid * 2\nT.tile.fill(s, T.abs(g))\n", 0),
        ("T.tile.fill(s, T.abs(-2.0))\n", 0),
        ("T.tile.fill(s, S[0] * T.abs(-2.0))\n", 0),
        ("for i in T.Parallel(64):\n    s[i] = T.abs(s[i])\n", 0),
        ("for i in T.Parallel(64):\n    if T.abs(i - cid) < 3:\n        s[i] = 0.0\n", 0),
        ("s[T.abs(cid)] = 1.0\n", 0),
    ],
)
def test_functions_of_single_values(body: str, count: int) -> None:
    """ "Unresolved call Op(tir.fabs)", but not of integers, of which it is a choice."""
    text = source(f"{TILES}{LOAD}{VECTOR}{body}{REST}T.tile.exp(b, a)\n{STORE}", params=FLOAT, launch=ONE)
    assert len([f for f in findings(text) if f.code == "TL897"]) == count
