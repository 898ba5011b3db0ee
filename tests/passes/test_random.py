"""Random vector kernels: what reaches the full form computes what it computed, whatever stands in it."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.passes.support import block, migrated, only, right_or_refused, same_results, vector_file

pytestmark = pytest.mark.thorough

ALLOCS = "".join(f'{name} = T.alloc_ub((16, 64), "float32")\n' for name in "abc") + (
    'm = T.alloc_ub((16, 1), "float32")\nv = T.alloc_ub((16,), "float32")\nw = T.alloc_ub((64,), "float32")\n'
    "T.copy(B[cid * 32 + {core}, 0], b)\nT.tile.fill(c, 0.5)\nT.tile.fill(m, 1.5)\n"
    "T.tile.fill(v, 2.0)\nT.copy(B[3, 0:64], w)\n"
)
LOAD = "T.copy(A[cid * 32 + vid * 16, 0], a)\n"
STORE = "T.copy(a, O[cid * 32 + vid * 16, 0])\n"
PHASES = (Phase.explicit, Phase.generate)  # a failing kernel is small enough as it is
tiles = st.sampled_from("abc")


def _filled(template: str) -> st.SearchStrategy[str]:
    """A template with random tiles for X, Y and Z."""
    return st.tuples(tiles, tiles, tiles).map(
        lambda names: template.replace("X", names[0]).replace("Y", names[1]).replace("Z", names[2])
    )


# Row by row, what two half tiles and one whole tile have in common.
SPLITTABLE = (
    "T.tile.add(X, Y, Z)",
    "T.tile.mul(X, X, 0.5)",
    "T.tile.max(X, Y, Z)",
    "T.tile.abs(X, Y)",
    "T.copy(X, Y)",
    "T.reduce_max(X, m, dim=-1)",
    "T.reduce_sum(X, m, dim=1)",
    "T.tile.broadcast(X, m)",
    "T.tile.sub(X, Y, Z)",
    'T.tile.cast(X, Y, "CAST_RINT", 1024)',
    "for i, j in T.Parallel(16, 64):\n    X[i, j] = Y[i, j] + Z[i, j] * 2.0",
    "for i, j in T.Parallel(16, 64):\n    X[i, j] = Y[i, j] * v[i]",
    "for i in range(16):\n    T.tile.add(X[i, :], Y[i, :], Z[i, :])",
    "for i in T.serial(16):\n    T.tile.mul(X[i, :], X[i, :], v[i])",
    "for t in T.serial(2):\n    T.copy(B[cid * 32 + vid * 16, 0], X)\n    T.tile.add(Y, Y, X)",
)
# What a whole tile does differently, or differently in some places.
SUSPICIOUS = (
    "for i, j in T.Parallel(16, 64):\n    X[i, j] = Y[i, j] * w[j]",
    "for i, j in T.Parallel(16, 64):\n    X[i, j] = Y[i, j] + A[i, j]",
    "for i, j in T.Parallel(16, 64):\n    X[i, j] = Y[i, j] + i",
    "for i in range(8):\n    T.tile.add(X[i, :], X[i, :], Y[i, :])",
    "for i in range(8):\n    T.tile.add(X[2 * i, :], X[2 * i, :], Y[2 * i, :])",
    "for i in range(0, 16, 3):\n    T.tile.abs(X[i, :], X[i, :])",
    "for i in range(15):\n    T.tile.add(X[i, :], X[i, :], Y[i + 1, :])",
    "for i in range(16):\n    if i < 5:\n        T.tile.abs(X[i, :], X[i, :])",
    "T.tile.add(X[0, :], X[0, :], 1.0)",
    "T.tile.mul(X, X, Y[0, 0])",
    "T.copy(A[0, 0], X)",
    "T.copy(A[5, 0], X[0:16, :])",
    "T.copy(A[cid * 32 + vid * 16 + 8, 0:64], X[0, :])",
    "T.copy(X[0:8, :], Y[8:16, :])",
    "for i in range(16):\n    T.copy(A[i, 0:64], X[i, :])",
    "for i in range(16):\n    T.copy(A[cid * 32 + vid * 16 + i, 0:64], X[i, :])",
    "if vid == 0:\n    T.tile.add(X, X, 1.0)\nelse:\n    T.tile.add(X, X, 2.0)",
    "if vid == 0:\n    T.copy(A[cid * 32, 0], X)\nelse:\n    T.copy(A[cid * 32 + 16, 0], X)",
    "T.tile.sort(X, X)",
    "X[3, 4] = 1.0",
    "T.tile.mul(X, X, vid)",
    "T.tile.fill(X, w[3])",
    "for i, j in T.Parallel(8, 64):\n    X[i, j] = X[i + 8, j]",
)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        bodies.map(lambda body: "for k in T.serial(2):\n" + block(body, 4)),
        bodies.map(lambda body: "if cid == 0:\n" + block(body, 4)),
        st.tuples(bodies, bodies).map(lambda two: f"if cid == 0:\n{block(two[0], 4)}\nelse:\n{block(two[1], 4)}"),
    )


plain = st.sampled_from(SPLITTABLE).flatmap(_filled)
any_statement = st.sampled_from(SPLITTABLE + SUSPICIOUS).flatmap(_filled)


def kernel(statements: list[str], core: str = "vid * 16") -> str:
    text = vector_file(ALLOCS.replace("{core}", core) + LOAD + "\n".join(statements) + "\n" + STORE)
    return (
        text.replace("(64, 64)", "(ROWS, 64)").replace("64", "8").replace("1024", "128").replace("ROWS", "64")
    )  # small is fast


@settings(max_examples=25, derandomize=True, phases=PHASES)
@given(st.lists(st.recursive(plain, _nested, max_leaves=4), min_size=1, max_size=5))
def test_row_wise_kernels_stay_right(statements: list[str]) -> None:
    right_or_refused(kernel(statements))


@settings(max_examples=40, derandomize=True, phases=PHASES)
@given(
    st.lists(st.recursive(any_statement, _nested, max_leaves=3), min_size=1, max_size=4),
    st.sampled_from(["auto", "1"]),
    st.sampled_from(["vid * 16", "0"]),
)
def test_suspicious_kernels_are_right_or_refused(statements: list[str], threads: str, core: str) -> None:
    right_or_refused(kernel(statements, core), threads)


@settings(max_examples=15, derandomize=True, phases=PHASES)
@given(st.lists(any_statement, min_size=1, max_size=4))
def test_a_kernel_that_stays_as_it_is_or_falls_back_computes_the_same(statements: list[str]) -> None:
    text = kernel(statements)
    result = migrated(text)
    if only(result).target in ("none", "fallback"):
        same_results(text, result.new_text or "")
