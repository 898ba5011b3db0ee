"""Vectors whose elements differ in size: each is right, or wrong, beside its own terms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, by_script
from tl2npu.simulator.arithmetic.jittered import Jittered
from tl2npu.verify.compare import has_one_scale

TEXT = """

@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def f(M=64, N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "TYPE"), Y: T.Tensor((M,), "TYPE")):
        with T.Kernel(M // 8, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((8, N), "TYPE")
            y = T.alloc_shared((8,), "TYPE")
            z = T.alloc_shared((8,), "TYPE")
            T.copy(X[cid * 8, 0], x)
            BODY
            T.copy(y, Y[cid * 8])

    return main


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-6, 5, (64, 1))
    f()((rng.standard_normal((64, 128)) * sizes).astype(np.dtype("TYPE")))
"""
SUM = "T.reduce_sum(x, y, dim=-1)"
SQUARES = f"""for i, j in T.Parallel(8, N):
    x[i, j] = x[i, j] * x[i, j]
{SUM}"""
HALVES = """h = T.alloc_shared((8, N // 2), "TYPE")
T.copy(X[cid * 8, 0], h)
T.reduce_sum(h, y, dim=-1)
T.copy(X[cid * 8, N // 2], h)
T.reduce_sum(h, z, dim=-1)
for i in T.Parallel(8):
    y[i] = y[i] + z[i]"""
BY_ROW = """T.tile.fill(y, 0.0)
for j in T.serial(N):
    for i in T.serial(8):
        y[i] = y[i] + x[i, j]"""


def script(body: str, dtype: str = "float32") -> str:
    lines = "\n            ".join(body.splitlines())
    return HEAD + TEXT.replace("BODY", lines).replace("TYPE", dtype)


def ok(old: str, new: str, dtype: str = "float32") -> bool:
    return by_script(script(old, dtype), script(new, dtype), check=None, draws=1).ok


def added(body: str, value: str) -> str:
    return f"{body}\nfor i in T.Parallel(8):\n    y[i] = y[i] + {value}"


@pytest.mark.parametrize("body", [SUM, SQUARES], ids=["sums", "squares"])
def test_a_wrong_small_element_beside_large_ones(body: str) -> None:
    """The root mean square of all is 1e5 for the sums, and 1e10 for the squares."""
    assert ok(body, body)
    assert not ok(body, added(body, "1e-3"))
    assert not ok(body, body.replace("T.reduce_sum(x", "T.copy(x[:, N // 2:], x[:, : N // 2])\nT.reduce_sum(x"))
    one = f"{body}\nif cid == 3:\n    y[2] = y[2] * 1.01"
    assert not ok(body, one)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("other", [HALVES, BY_ROW], ids=["halves", "one by one"])
def test_terms_that_cancel_may_be_added_in_another_order(other: str, dtype: str) -> None:
    scaled = "for i, j in T.Parallel(8, N):\n    x[i, j] = x[i, j] * 0.5\n"
    if dtype == "float32":
        assert ok(SUM, other.replace("TYPE", dtype))
    assert ok(scaled + SUM, scaled + SUM)


def test_what_is_left_of_larger_terms_may_differ() -> None:
    """``x + 1000 - 1000`` has three digits less than ``x``."""
    less = "T.reduce_sum(x, y, dim=-1)\nfor i in T.Parallel(8):\n    y[i] = y[i] + 1000.0\n"
    less += "for i in T.Parallel(8):\n    y[i] = y[i] - 1000.0"
    assert ok(less, less.replace("1000.0", "1001.0"))
    assert not ok(less, added(less, "0.5"))


@pytest.mark.parametrize(
    ("shape", "one"), [((64,), True), ((64, 1), True), ((4, 8), True), ((64, 64), False), ((1,), False)]
)
def test_which_results_have_one_scale(shape: tuple[int, ...], one: bool) -> None:
    assert has_one_scale(np.ones(shape, np.float32)) == one
    assert not has_one_scale(np.ones(shape, np.int32))


def test_results_move_as_their_terms_are_large() -> None:
    x = np.array([[1e6, -1e6, 1.0], [1e-3, 1e-3, 1e-3]])
    moved = [Jittered(seed).sum(x, 1) - x.sum(1) for seed in range(50)]
    size = np.sqrt(np.square(moved).mean(0)) * 2.0**24
    np.testing.assert_allclose(size, [2**0.5 * 1e6, 3**0.5 * 1e-3], rtol=0.3)
