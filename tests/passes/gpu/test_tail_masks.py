"""TL626: masks of what lies behind the end of a tensor, asked for where the tiles do not end with it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

INFINITY = "T.infinity('float32')"
KEPT = "k * M + j < N"


def _text(
    condition: str = KEPT, turns: str = "T.ceildiv(N, M)", args: str = "N, M=32", around: str = "", size: str = "N"
) -> str:
    body = f"""
    x = T.alloc_fragment((32, M), "float32")
    row = T.alloc_fragment((32,), "float32")
    least = T.alloc_fragment((32,), "float32")
    T.fill(least, {INFINITY})
    for k in T.serial({turns}):
        T.copy(X[0:32, k * M : k * M + M], x)
        for i, j in T.Parallel(32, M):
            x[i, j] = -x[i, j]
        for i, j in T.Parallel(32, M):
            x[i, j] = T.if_then_else({condition}, x[i, j], -{INFINITY})
        T.reduce_max(x, row, dim=1)
        for i in T.Parallel(32):
            least[i] = T.min(least[i], -row[i])
    T.copy(least, Y)
    """
    params = f'X: T.Tensor((32, {size}), "float32"), Y: T.Tensor((32,), "float32")'
    return gpu_file(params, body, args=args, launch="T.Kernel(1, threads=128) as bx", factory=around)


def _tail(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith(("if ", "elif "))]


@pytest.mark.parametrize("size", [64, 70, 20])
@pytest.mark.parametrize("condition", [KEPT, "N > k * M + j", "not (k * M + j >= N)", "j <= N - 1 - k * M"])
def test_a_tail_is_masked_where_there_is_one(condition: str, size: int) -> None:
    new = migrated(_text(condition))
    assert set(_tail(new)) == {"if N % M != 0:"}
    given = np.random.default_rng(size).uniform(1, 2, (32, size)).astype(np.float32)  # zeros behind would be least
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_array_equal(run(new, {"X": given}, args=(size,), reading=reading)["Y"], given.min(1))


def test_the_tile_of_indices_is_made_there_as_well() -> None:
    lines = [line.strip() for line in migrated(_text()).splitlines()]
    assert lines[lines.index("if N % M != 0:") + 1].startswith("T.tile.createvecindex(")


@pytest.mark.parametrize(
    "text",
    [
        _text("k * M + j < N - 1"),  # masks a column of the tensor
        _text("k * M + j < N - i"),  # and rows
        _text(turns="T.ceildiv(N, M) + 1"),  # goes on behind it
        _text(turns="T.ceildiv(N, 32)", args="N, M=64"),  # counts in other steps
        _text("k * M + j < N and j > 1"),
        _text(args="M=32", around="N = T.symbolic('N')"),  # known at run time only
    ],
    ids=["inside", "rows", "behind", "steps", "and", "late"],
)
def test_other_masks_stay(text: str) -> None:
    assert not any("% M" in line for line in _tail(migrated(text)))


def test_a_mask_outside_of_loops_stays() -> None:
    body = f"""
    x = T.alloc_fragment((32, 64), "float32")
    T.copy(X[0:32, 0:64], x)
    for i, j in T.Parallel(32, 64):
        x[i, j] = T.if_then_else(j < N, x[i, j], -{INFINITY})
    T.copy(x, Y)
    """
    params = 'X: T.Tensor((32, N), "float32"), Y: T.Tensor((32, 64), "float32")'
    assert "if " not in migrated(gpu_file(params, body, args="N=40", launch="T.Kernel(1, threads=128) as bx"))


def test_arms_within_arms_share_their_conditions() -> None:
    """TL622: the tiles of two masks are made in ``if`` and ``elif``."""
    both = f"""
    x = T.alloc_fragment((32, 32), "float32")
    y = T.alloc_fragment((32,), "float32")
    T.fill(y, 0.0)
    for k in T.serial(T.ceildiv(N, 32)):
        T.copy(X[0:32, k * 32 : k * 32 + 32], x)
        if causal:
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.if_then_else(i >= k * 32 + j, x[i, j], -{INFINITY})
        else:
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.if_then_else(k * 32 + j < N, x[i, j], -{INFINITY})
        T.reduce_max(x, y, dim=1, clear=False)
    T.copy(y, Y)
    """
    params = 'X: T.Tensor((32, N), "float32"), Y: T.Tensor((32,), "float32")'
    new = migrated(gpu_file(params, both, args="N, causal", launch="T.Kernel(1, threads=128) as bx"))
    assert _tail(new)[:2] == ["if causal:", "elif N % 32 != 0:"]
    given = np.random.default_rng(1).uniform(-2, 2, (32, 70)).astype(np.float32)
    below = np.where(np.tri(32, 70, dtype=bool), given, -np.inf)
    for causal, seen in ((True, below), (False, given)):
        found = run(new, {"X": given}, args=(70, causal))["Y"]
        np.testing.assert_array_equal(found, np.maximum(seen.max(1), 0.0))


@pytest.mark.parametrize(("size", "compares"), [(128, True), (100, False)])
def test_the_tail_of_a_vector_whose_size_a_call_gives(size: int, compares: bool) -> None:
    """Whole repeats of a comparison are compared; other vectors are masked element by element."""
    body = """x = T.alloc_fragment((bn,), "float32")
for k in T.serial(T.ceildiv(300, bn)):
    T.copy(A[bx, k * bn], x)
    for j in T.Parallel(bn):
        x[j] = T.if_then_else(k * bn + j < 300, x[j] + 1.0, 0.0)
    T.copy(x, O[bx, k * bn])
"""
    params = 'A: T.Tensor((4, 300), "float32"), O: T.Tensor((4, 300), "float32")'
    file = gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx", args="bn") + f"\nrun = factory({size})\n"
    new = agree(file, {"A": np.arange(1200, dtype=np.float32).reshape(4, 300)}, args=(size,))
    assert ("T.tile.compare" in new) is compares
