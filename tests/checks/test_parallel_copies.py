"""Plain copies and swapped axes in ``T.Parallel`` (TL783, TL784, TL887); each line was put to the compiler."""

from __future__ import annotations

import pytest

from tests.checks.support import PLAIN, errors

PARAMS = (
    'X: T.Tensor((64, 64), "float32"), Z: T.Tensor((4, 64, 64), "float32"), V: T.Tensor((64,), "float32"), '
    'O: T.Tensor((64, 64), "float32")'
)
TILES = """
x = T.alloc_ub((64, 64), "float32")
u = T.alloc_ub((64, 64), "float32")
y = T.alloc_ub((64,), "float32")
w = T.alloc_ub((1, 64), "float32")
z = T.alloc_ub((2, 32, 64), "float32")
h = T.alloc_ub((32, 64), "float32")
q = T.alloc_ub((64, 32), "float32")
f = T.alloc_ub((64, 64), "float16")
g = T.alloc_ub((64,), "float16")
"""
ONE = "for i in T.Parallel(64):\n    "
TWO, HALF = (f"for i, j in T.Parallel({rows}, 64):\n    " for rows in (64, 32))
TURNS = "for r in T.serial(4):\n    for i in T.Parallel(64):\n        "


def found(body: str) -> list[str]:
    """The errors of a kernel of vectors."""
    keys = ("AUTO_SYNC", "MEMORY_PLANNING")
    return errors(f"{TILES}\n{body}\nT.copy(u, O[0, 0])", launch=PLAIN, keys=keys, params=PARAMS, jit="out_idx=[3]")


@pytest.mark.parametrize(
    "body",
    [
        ONE + "y[i] = x[3, i]",
        ONE + "y[i] = x[i, 0]",
        ONE + "y[i] = w[0, i]",
        ONE + "y[i] = X[cid, i]",
        ONE + "y[i] = Z[cid, 2, i]",
        TWO + "x[i, j] = Z[cid, i, j]",
        HALF + "h[i, j] = z[1, i, j]",
        HALF + "z[1, i, j] = h[i, j]",
        TURNS + "y[i] = x[r, i]\n        u[r, i] = x[r, i] * 2.0",
    ],
)
def test_axes_that_get_lost(body: str) -> None:
    assert "TL783" in found(body)


@pytest.mark.parametrize(
    "body",
    [
        ONE + "x[3, i] = y[i]",
        ONE + "x[2, i] = u[3, i]",
        ONE + "x[0, i] = u[0, i]",
        ONE + "x[3, i] = w[0, i]",
        ONE + "x[3, i] = X[cid, i]",
        ONE + "x[3, i] = V[i]",
        TURNS + "x[r, i] = y[i]",
        TURNS + "x[r, i] = u[r, i]",
        ONE + "y[i] = f[3, i]",  # converts from the first element on
    ],
)
def test_copies_into_the_first_rows(body: str) -> None:
    assert found(body) == ["TL887"]


@pytest.mark.parametrize(
    "body",
    [
        TWO + "u[i, j] = x[j, i]",
        TWO + "u[i, j] = x[j, i] * 2.0",
        TWO + "u[i, j] = x[j, i] + x[i, j]",
        HALF + "h[i, j] = x[j, i] * 2.0",
        TWO + "u[i, j] = x[j, i] * y[i]",
        TWO + "u[i, j] = x[i, j] * y[j] + x[j, i]",
    ],
)
def test_swapped_axes(body: str) -> None:
    assert found(body) == ["TL784"]


@pytest.mark.parametrize(
    "body",
    [
        ONE + "x[0, i] = y[i]",
        ONE + "w[0, i] = y[i]",
        ONE + "w[0, i] = x[3, i]",
        ONE + "y[i] = x[3, i] + x[4, i]",
        ONE + "y[i] = T.exp(x[3, i])",
        ONE + "y[i] = g[i]",
        TURNS + "x[r, i] = u[r, i] * 2.0",
        HALF + "h[i, j] = z[1, i, j] * 2.0",
        TWO + "u[i, j] = x[i, j]",
        TWO + "u[i, j] = f[i, j]",
        TWO + "u[j, i] = x[i, j] * 2.0",  # a loop over the elements
        "for i, j in T.Parallel(64, 32):\n    q[i, j] = q[i, j] * 2.0",
    ],
)
def test_what_is_compiled_as_it_stands(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize("loop", ["T.vectorized(8, 40)", "T.vectorized(64)", "T.vectorized(0, 40)"])
def test_vectorized_loops(loop: str) -> None:
    assert found(f"for i in {loop}:\n    y[i] = y[i] * 2.0") == ["TL897"]
