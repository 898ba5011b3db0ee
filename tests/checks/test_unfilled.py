"""TL873: rows of 8-bit tiles behind the end of a tensor, which an NPU leaves as they were, and where they go."""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, errors, warnings
from tl2npu.migration import check_text
from tl2npu.options import Options

PARAMS = (
    'X: T.Tensor((500, 64), "int8"), Y: T.Tensor((500, 64), "float16"), Z: T.Tensor((512, 64), "float16"), '
    'W: T.Tensor((64, 512), "float16"), V: T.Tensor((8, 64), "float16")'
)
TILES = """
x = T.alloc_ub((64, 64), "int8")
h = T.alloc_ub((64, 64), "float16")
g = T.alloc_ub((64, 64), "float16")
s = T.alloc_ub((64,), "float16")
T.copy(X[cid * 64, 0], x)
T.copy(x, h)
"""
SUM = "for i in T.serial(64):\n    for j in T.Parallel(64):\n        s[j] = s[j] + h[i, j]\n"
TURNED = "for i, j in T.Parallel(64, 64):\n    g[j, i] = h[i, j]\n"
USED = {
    "to a longer tensor": "T.copy(h, Z[cid * 64, 0])",
    "to columns": TURNED + "T.copy(g, W[0, cid * 64])",
    "to columns by an instruction": "T.tile.transpose(g, h)\nT.copy(g, W[0, cid * 64])",
    "summed": "T.reduce_sum(h, s, dim=0)\nT.copy(s, V[cid, 0])",
    "summed by a loop": "T.tile.fill(s, 0.0)\n" + SUM + "T.copy(s, V[cid, 0])",
    "through a tile": "T.tile.exp(g, h)\nT.copy(g, Z[cid * 64, 0])",
    "one row in a condition": "if x[63, 0] > 1:\n    T.tile.fill(h, 0.0)\nT.copy(h, Y[cid * 64, 0])",
    "in another order": "for i, j in T.Parallel(64, 64):\n    g[i, j] = h[63 - i, j]\nT.copy(g, Y[cid * 64, 0])",
    "pairs of rows": "for i in T.serial(64):\n    for j in T.serial(64):\n        g[i, j] = h[i ^ 1, j]\n"
    "T.copy(g, Y[cid * 64, 0])",
    "one row for all": "for i, j in T.Parallel(64, 64):\n    g[i, j] = h[63, j]\nT.copy(g, Y[cid * 64, 0])",
}
UNUSED = {
    "to the same rows": "T.copy(h, Y[cid * 64, 0])",
    "through a tile": "T.tile.exp(g, h)\nT.copy(g, Y[cid * 64, 0])",
    "sums of rows": "T.reduce_sum(h, s, dim=1)\nfor i, j in T.Parallel(64, 64):\n    g[i, j] = h[i, j] * s[i]\n"
    "T.copy(g, Y[cid * 64, 0])",
    "some rows": "T.copy(h[0:32, :], Z[cid * 64 : cid * 64 + 32, :])",
    "where a condition holds": "if cid < 7:\n    T.copy(h, Z[cid * 64, 0])",
}


@pytest.mark.parametrize("body", USED.values(), ids=USED.keys())
def test_rows_that_come_into_a_result(body: str) -> None:
    assert "TL873" in errors(TILES + body, launch=ONE, params=PARAMS, jit="")


@pytest.mark.parametrize("body", UNUSED.values(), ids=UNUSED.keys())
def test_rows_that_nobody_sees(body: str) -> None:
    assert "TL873" not in errors(TILES + body, launch=ONE, params=PARAMS, jit="")
    assert "TL873" in warnings(TILES + body, launch=ONE, params=PARAMS, jit="")


VECTOR = """
v = T.alloc_ub((64,), "int64")
f = T.alloc_ub((64,), "float32")
T.copy(I[cid * 64], v)
"""
OF_A_VECTOR = {
    "to a vector as long": ("T.copy(v, f)\nT.copy(f, J[cid * 64])", False),
    "to a longer vector": ("T.copy(v, f)\nT.copy(f, K[cid * 64])", True),
    "summed": ("T.copy(v, f)\nT.reduce_sum(f, f, dim=-1)\nT.copy(f, J[cid * 64])", True),
    "as rows of a tensor": ("for i in T.serial(64):\n    T.copy(K[v[i]], f)\n    T.copy(f, J[cid * 64])", True),
}


@pytest.mark.parametrize(("body", "used"), OF_A_VECTOR.values(), ids=OF_A_VECTOR.keys())
def test_elements_of_a_vector(body: str, used: bool) -> None:
    params = 'I: T.Tensor((500,), "int64"), J: T.Tensor((500,), "float32"), K: T.Tensor((512,), "float32")'
    assert ("TL873" in errors(VECTOR + body, launch=ONE, params=params, jit="")) == used
    assert ("TL873" in warnings(VECTOR + body, launch=ONE, params=params, jit="")) != used


@pytest.mark.parametrize("args", ["n", "n=500"])
@pytest.mark.parametrize(("shift", "found"), [(1, True), (0, False), (-1, False)])
def test_rows_that_start_further_on(shift: int, found: bool, args: str) -> None:
    """Row ``r + 1`` of a tensor, whose length somebody knows or nobody, stored as row ``r``: the last is behind."""
    body = TILES.replace("X[cid * 64, 0]", f"X[cid * 64 + {shift}, 0]") + "T.copy(h, Y[cid * 64, 0])"
    sizes = {"args": args, "params": 'X: T.Tensor((n, 64), "int8"), Y: T.Tensor((n, 64), "float16")'}
    launch = "T.Kernel(T.ceildiv(n, 64), threads=1, is_npu=True) as (cid)"
    assert ("TL873" in errors(body, launch=launch, jit="", **sizes)) is found


def test_other_types_are_filled() -> None:
    body = (TILES + USED["to a longer tensor"]).replace("int8", "int16")
    assert "TL873" not in errors(body, launch=ONE, params=PARAMS.replace("int8", "int16"), jit="")


LATE = 'n: T.int32, X: T.Tensor((64, 64), "float32"), Y: T.Tensor((8, 16, 64), "float32")'
TILE = 'x = T.alloc_ub((16, 64), "float32")\n'
STORE = "\nT.copy(x, Y[cid, 0, 0])"
SOME = "T.copy(X[0:n, :], x[:n, :])"


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", []),
        ("T.tile.fill(x, 0.0)\n", []),
        ("T.tile.fill(x, 7.0)\n", ["TL741"]),
        ("T.copy(X[0, 0], x)\nT.tile.exp(x, x)\n", ["TL741"]),
        ("for i, j in T.Parallel(16, 64):\n    x[i, j] = x[i, j] + 1.0\n", ["TL741"]),
    ],
)
def test_a_load_of_some_rows_overwrites_the_others(before: str, found: list[str]) -> None:
    """``copy_gm_to_ub<float, 64, 16>(a, A, 64, n, 64, 0)``: 16 rows are filled with zeros, then n are loaded."""
    for text in (SOME, "T.copy(X[cid : cid + n, :], x[0:n, :])"):
        assert errors(TILE + before + text + STORE, launch=ONE, params=LATE, jit="") == found
    known = TILE + before + SOME.replace("n,", "8,") + STORE
    assert errors(known, launch=ONE, params=LATE, jit="") == []  # copy_gm_to_ub<float, 64, 8>: 8 of 8 rows


def test_a_load_that_fills_with_the_same_number() -> None:
    least = "-T.infinity('float32')"
    for value, pad, found in (("7.0", "7.0", []), (least, least, []), ("7.0", "1.0", ["TL741"])):
        body = f"{TILE}T.tile.fill(x, {value})\n{SOME[:-1]}, pad_value={pad}){STORE}"
        assert errors(body, launch=ONE, params=LATE, jit="") == found


DYNAMIC = """
import tilelang
import tilelang.language as T

CONFIGS = {{
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}}


@tilelang.jit(pass_configs=CONFIGS)
def factory(rows=64):
    n = {n}

    @T.prim_func
    def main(X: T.Tensor((n, 64), "int8"), Y: T.Tensor((n, 64), "float16")):
        with T.Kernel(T.ceildiv(n, 64), threads=1, is_npu=True) as (cid):
            x = T.alloc_ub((64, 64), "int8")
            h = T.alloc_ub((64, 64), "float16")
            g = T.alloc_ub((64, 64), "float16")
            T.copy(X[cid * 64, 0], x)
            T.copy(x, h)
            T.tile.fill(g, 0.0)
            if cid < 1000:
                for i in T.serial(64):
                    for j in T.serial(64):
                        g[i, j] = h[{row}, j]
            T.copy(g, Y[cid * 64, 0])

    return main
"""


@pytest.mark.parametrize(
    ("n", "row", "found"),
    [
        ("T.dynamic('n')", "(i + 1) % 64", True),
        ("T.symbolic('n')", "63 - i", True),
        ("T.dynamic('n')", "i", False),
        ("rows", "(i + 1) % 64", False),  # of 64, as far as anybody knows
    ],
)
def test_rows_that_move_in_a_tensor_of_any_length(n: str, row: str, found: bool) -> None:
    told = check_text(DYNAMIC.format(n=n, row=row), "k.py", Options()).diagnostics
    assert ("TL873" in {one.code for one in told}) == found
