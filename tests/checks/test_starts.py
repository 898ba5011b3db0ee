"""Tiles that begin outside of their tensor (TL885)."""

from __future__ import annotations

import pytest

from tests.checks.support import findings, kernel, source
from tl2npu.codes import CODES

CUBE = "T.Kernel(T.ceildiv(M, 128), is_npu=True) as (cid, _)"
PARAMS = (
    'A: T.Tensor((M, 512), "float16"), B: T.Tensor((512, 128), "float16"), C: T.Tensor((M, 128), "float32"), '
    'L: T.Tensor((9,), "int32"), X: T.Tensor((M, 16, 512), "float16")'
)
ALLOCS = """
a = T.alloc_shared((128, 64), "float16")
b = T.alloc_shared((64, 128), "float16")
c = T.alloc_fragment((128, 128), "float32")
u = T.alloc_ub((128, 64), "float16")
w = T.alloc_ub((1, 512), "float16")
v = T.alloc_ub((128, 2, 64), "float16")
"""
GEMM = """
T.copy(B[0, 0], b)
T.gemm_v0(a, b, c, init=True)
T.copy(c, C[cid * 128, 0])
"""


def found(*parts: str, **settings: object) -> list[str]:
    """The severities of what is said about the beginnings of tiles."""
    settings = {"launch": CUBE, "params": PARAMS, "jit": "out_idx=[2]", "args": "M=1000", **settings}
    every = findings(source(kernel(ALLOCS, *parts), **settings))  # type: ignore[arg-type]
    return [f.severity or CODES[f.code].severity for f in every if f.code == "TL885"]


@pytest.mark.parametrize(
    "load",
    [
        "T.copy(A[cid * 128, 0], a)",
        "T.copy(A[cid * 128 : (cid + 1) * 128, 0:64], a)",
        "for k in T.serial(8):\n    T.copy(A[cid * 128, k * 64], a)",
        "for k in T.serial(T.min(cid + 1, T.ceildiv(M, 128))):\n    T.copy(A[k * 128, 0], a)",
        "for k in T.serial(cid + 2):\n    if k * 128 < M:\n        T.copy(A[k * 128, 0], a)",
        "for k in T.serial(cid + 2):\n    if k >= 0 and M > k * 128:\n        T.copy(A[k * 128, 0], a)",
        "for k in T.serial(cid + 2):\n    if not (k * 128 >= M):\n        T.copy(A[k * 128, 0], a)",
        "end = T.min(cid + 2, T.ceildiv(M, 128))\nfor k in T.serial(end):\n    T.copy(A[k * 128, 0], a)",
        "row = L[cid]\nT.copy(A[row, 0], a)",
        "page = L[cid]\nT.copy(A[page * 128, 0], a)",
        "for k in T.serial(2):\n    T.copy(A[L[cid] * 256 + k * 128, 0], a)",
        "for k in T.serial(T.ceildiv(L[cid], 128)):\n    T.copy(A[k * 128, 0], a)",
        "for k in T.serial(T.ceildiv(L[cid + 1] - L[cid], 128)):\n    T.copy(A[L[cid] + k * 128, 0], a)",
        "for k in T.serial(4):\n    if k * 128 < L[cid]:\n        T.copy(A[k * 128, 0], a)",
        "T.copy(X[cid * 128 : cid * 128 + 128, 3, 0:64], a)",
        "for i in T.serial(128):\n    T.copy(A[cid * 128 + i, 0], w)",
        "for i in T.serial(128):\n    if cid * 128 + i < M:\n        T.copy(X[cid * 128 + i, 3, :], w)",
        "for i in T.serial(T.min(128, M - cid * 128)):\n    T.copy(X[cid * 128 + i, 3, :], w)",
        "for n in T.serial(9):\n    T.copy(X[(cid + n) // 9, 3, :], w)",
        "T.copy(X[cid * 128, 3, :], w)",
        "T.copy(X[cid + 7, 3, :], w)",
        "T.copy(X[T.min(cid * 128 + 127, M - 1), 3, :], w)",
        "if cid * 128 + 127 < M:\n    T.copy(X[cid * 128 + 127, 3, :], w)",
        "if cid * 128 + 128 <= M:\n    T.copy(X[cid * 128 : cid * 128 + 128, 0:2, 0:64], v)",
        "if cid * 128 + 128 <= M:\n    T.copy(X[cid * 128, 0, 0], v)",
        "T.copy(X[0, 0, 0], v)",
    ],
)
def test_inside(load: str) -> None:
    assert found(load, GEMM) == []


@pytest.mark.parametrize(
    ("load", "severity"),
    [
        ("T.copy(A[cid * 256, 0], a)", "error"),
        ("T.copy(A[cid * 128, 512], a)", "error"),
        ("for k in T.serial(9):\n    T.copy(A[cid * 128, k * 64], a)", "error"),
        ("for k in T.serial(cid + 2):\n    T.copy(A[k * 128, 0], a)", "error"),
        ("for k in T.serial(cid + 2):\n    if k * 128 <= M + 24:\n        T.copy(A[k * 128, 0], a)", "error"),
        ("T.copy(A[cid * 128 - 128, 0], a)", "error"),
        ("T.copy(A[cid * 128 - 1, 0], u)", "error"),
        ("T.copy(A[L[cid] + cid * 128, 0], a)", "warning"),
        ("for k in T.serial(T.ceildiv(L[cid], 128) + 1):\n    T.copy(A[L[0] + k * 128, 0], a)", "warning"),
        ("T.copy(X[L[cid] + cid, 0:1, :], w)", "warning"),
        ("for i in T.serial(128):\n    T.copy(X[cid * 128 + i, 3, :], w)", "error"),
        ("for i in T.serial(128):\n    T.copy(w, X[cid * 128 + i, 3, 0])", "error"),
        ("for i in T.serial(128):\n    T.copy(X[cid * 128 + i, 3:4, :], w)", "error"),
        ("T.copy(X[cid * 128 + 127, 3, :], w)", "error"),
        ("T.copy(X[cid * 128 : cid * 128 + 128, 0:2, 0:64], v)", "error"),
        ("T.copy(v, X[cid * 128 : cid * 128 + 128, 0:2, 0:64])", "error"),
        ("T.copy(X[cid * 128, 3, 0], v)", "error"),
        ("T.copy(v, X[cid * 128, 3, 0])", "error"),
        ("T.copy(v[:, :, :], X[cid * 128, 3, 0])", "error"),
        ("for i in T.serial(8):\n    T.copy(v, X[cid * 128 + i * 16, 3, 0])", "error"),
        ("T.copy(w, X[(cid + 1) * 128 - 1, 3, 0])", "error"),
        ("for i in T.serial(128):\n    if i < 127:\n        T.copy(X[cid * 128 + i, 3, :], w)", "error"),
    ],
)
def test_outside(load: str, severity: str) -> None:
    assert found(load, GEMM) == [severity]


def test_ub_takes_nothing_from_behind_the_end() -> None:
    assert found("T.copy(A[cid * 256, 0], u)", GEMM) == []


def test_stores() -> None:
    assert found("T.gemm_v0(a, b, c, init=True)\nT.copy(c, C[cid * 256, 0])") == ["error"]
    assert found("T.gemm_v0(a, b, c, init=True)\nT.tile.atomic_add(C[cid * 256, 0], c)") == ["error"]


def test_rows_in_front_of_two_axes_in_some_calls() -> None:
    rows = "for i in T.serial(128):\n    T.copy(X[cid * 128 + i, 3, :], w)"
    assert found(rows, GEMM, args="M=1024") == ["warning"]
    assert found(rows, GEMM, args="M", tail="factory(1024)\nfactory(1000)") == ["warning"]
    assert found(rows, GEMM, args="M", tail="factory(1000)") == ["error"]
    blocks = "for i in T.serial(16):\n    T.copy(X[cid % M // 16 * 16 + i, 3, :], w)"
    assert found(blocks, args="M", launch="T.Kernel(M * 2, is_npu=True) as (cid, _)") == ["warning"]


def test_loops_whose_length_is_not_known_do_not_hide_the_others() -> None:
    load = (
        "for n in T.serial(N // 8):\n    for k in T.serial(T.ceildiv(M, 128)):\n        T.copy(A[k * 128 + {}, 0], a)"
    )
    assert found(load.format("(cid % 2) * 64"), GEMM, args="M, N") == ["warning"]
    assert found(load.format("n * 64"), GEMM, args="M, N") == []
    assert found(load.format("0"), GEMM, args="M, N") == []


def test_some_calls_only() -> None:
    load = "for k in T.serial(T.ceildiv(cid * 128 + 128, 64)):\n    T.copy(A[k * 64, 0], b)"
    settings = {"args": "M", "launch": CUBE}
    assert found(load, GEMM, tail="factory(1024)", **settings) == ["warning"]  # 900 rows would be read to 960
    assert found(load, GEMM, tail="factory(1024)\nfactory(900)", **settings) == ["warning"]
    assert found(load, GEMM, tail="factory(900)", **settings) == ["error"]
    assert found(load, GEMM, **settings) == ["warning"]


def test_sizes_that_nobody_gave_are_no_fact() -> None:
    load = "for k in T.serial(T.ceildiv(cid * 128 + 128, 64)):\n    T.copy(A[k * 64, 0], b)"
    said = {}
    for rows in (1024, 900):
        text = source(kernel(ALLOCS, load, GEMM), launch=CUBE, params=PARAMS, args="M", tail=f"factory({rows})")
        (said[rows],) = [f.message for f in findings(text) if f.code == "TL885"]
    assert "`A[k * 64, 0]` can start past the end of `A` for sizes that this file does not give (" in said[1024]
    assert "`A[k * 64, 0]` starts past the end of `A` (" in said[900]


def test_a_branch_that_no_call_takes() -> None:
    load = "if wide:\n    T.copy(A[cid * 256, 0], a)\nelse:\n    T.copy(A[cid * 128, 0], a)"
    assert found(load, GEMM, args="M=1000, wide=False") == []
    assert found(load, GEMM, args="M=1000, wide=True") == ["error"]


WIDE = 'R: T.Tensor((8,), "int64"), X: T.Tensor((64, 128), "float32"), Z: T.Tensor((64, 4, 128), "float32"), n: T.int64'
WIDE_TILES = """
row = R[cid]
u = T.alloc_ub((128,), "float32")
v = T.alloc_ub((4, 128), "float32")
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("T.copy(X[row, 0], u)", 1),
        ("T.copy(u, X[R[cid], 0])", 1),
        ("T.copy(X[row * 4 + 1 : row * 4 + 5, 0:128], v)", 1),
        ("T.copy(X[n, 0], u)", 1),
        ("T.tile.atomic_add(X[row, 0], v)", 1),
        ("T.copy(v[row, :], u)", 1),
        ('T.copy(X[T.cast(row, "int32"), 0], u)', 0),
        ("T.copy(Z[row, 0:4, 0:128], v)", 0),
        ("T.copy(Z[row, 1, 0], u)", 0),
        ("T.copy(X[cid, 0], u)", 0),
    ],
)
def test_copies_begin_at_int32_where_they_are_cut(body: str, count: int) -> None:
    """As the compiler says of a kernel for each line: mismatched types, or nothing (95acbd7f)."""
    text = source(WIDE_TILES + body, params=WIDE, jit="", launch="T.Kernel(8, threads=1, is_npu=True) as (cid)")
    told = [finding for finding in findings(text) if finding.code == "TL748"]
    assert len(told) == count
