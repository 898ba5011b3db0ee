"""Launches of scripts, repeated with other integers, scalars and extents."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, by_script, codes
from tl2npu.verified import VerifyResult
from tl2npu.verify.relaunch import prime_beside

KERNEL = """

@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def f(N=64):
    M = T.symbolic("M")
    K = T.symbolic("K")

    @T.prim_func
    def main(PARAMS, Y: T.Tensor((M, N), "TYPE")):
        with T.Kernel(T.ceildiv(M, 32), threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((32, N), "TYPE")
            BODY

    return main


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    f()(ARGUMENTS)
"""
X = 'X: T.Tensor((M, N), "TYPE")'
FLOATS = "rng.standard_normal((64, 64)).astype(np.float32)"
LOAD, STORE = "T.copy(X[cid * 32, 0], x)\n", "T.copy(x, Y[cid * 32, 0])"
ROWS = "for i in T.serial(32):\n    if cid * 32 + i < M:\n        "
TABLE = 'Table: T.Tensor((M,), "int32")'
ROW_OF_TABLE = f"{ROWS}T.copy(X[Table[cid * 32 + i], 0], Y[cid * 32 + i, 0])"


def script(body: str, arguments: str = FLOATS, params: str = X, dtype: str = "float32") -> str:
    text = KERNEL.replace("PARAMS", params).replace("ARGUMENTS", arguments)
    lines = "\n            ".join(body.splitlines())
    return HEAD + text.replace("BODY", lines).replace("TYPE", dtype)


def judged(old: str, new: str, *, draws: int = 8) -> VerifyResult:
    """``old`` against itself has to be right."""
    result = by_script(old, new, check=None, draws=draws)
    assert new == old or by_script(old, new, check=None, draws=1).ok
    return result


BYTES = "rng.integers(0, 100, (64, 64)).astype(np.int32)"
STORED = "{}for i, j in T.Parallel(32, N):\n    x[i, j] = {}\n{}"
ADDED = "{}for i, j in T.Parallel(32, N):\n    x[i, j] = x[i, j] + {}\n{}"
SCALAR = f'{X}, n: T.int32, a: T.float32'
WITH_SCALARS = f"{FLOATS}, 64, 2.0"
IN_ORDER = f"{FLOATS}, np.arange(64, dtype=np.int32)"
MASKED = f"{LOAD}for i, j in T.Parallel(32, N):\n    if j >= {{}}:\n        x[i, j] = 0.0\n{STORE}"
WRONG = {
    "a maximum with 0": (
        script(STORED.format(LOAD, "T.max(x[i, j], 0)", STORE), BYTES, dtype="int32"),
        script(STORED.format(LOAD, "x[i, j]", STORE), BYTES, dtype="int32"),
    ),
    "a sum that float32 does not hold": (
        script(STORED.format(LOAD, "x[i, j] + 1", STORE), BYTES, dtype="int32"),
        script(STORED.format(LOAD, 'T.cast(T.cast(x[i, j], "float32") + 1.0, "int32")', STORE), BYTES, dtype="int32"),
    ),
    "whole tiles of a symbolic extent": (
        script(LOAD + STORE),
        script(LOAD + STORE).replace("T.ceildiv(M, 32)", "M // 32"),
    ),
    "a whole scalar of the launch as a constant": (
        script(MASKED.format("n"), WITH_SCALARS, SCALAR),
        script(MASKED.format("64"), WITH_SCALARS, SCALAR),
    ),
    "a factor of the launch as a constant": (
        script(ADDED.format(LOAD, "a", STORE), WITH_SCALARS, SCALAR),
        script(ADDED.format(LOAD, "2.0", STORE), WITH_SCALARS, SCALAR),
    ),
    "a table of rows that is not read": (
        script(ROW_OF_TABLE, IN_ORDER, f"{X}, {TABLE}"),
        script(ROW_OF_TABLE.replace("Table[cid * 32 + i]", "cid * 32 + i"), IN_ORDER, f"{X}, {TABLE}"),
    ),
}


@pytest.mark.parametrize(("old", "new"), WRONG.values(), ids=WRONG)
def test_what_a_script_does_not_show(old: str, new: str) -> None:
    found = codes(judged(old, new))
    assert found[0] == "TL907"
    assert set(found) <= {"TL907", "TL908"}  # the second where columns are never written
    right = judged(old, old)
    assert right.ok, right.diagnostics


def test_the_values_are_said() -> None:
    old = script(MASKED.format("n"), f"{FLOATS}, 50, 2.0", SCALAR)
    (note,) = judged(old, old).notes
    assert "wide values (M = 67, n = 47, a = " in note
    assert "small whole numbers (M = 61, n = 25, a = " in note
    assert ", the whole range, " in note


RAGGED = f'{X}, Start: T.Tensor((K + 1,), "int32")'
OF_PART = """for b in T.serial(K):
    for r in T.serial(Start[b + 1] - Start[b]):
        T.copy(X[Start[b] + r, 0], Y[Start[b] + r, 0])"""


def test_offsets_stay_in_order() -> None:
    """Parts of a batch that overlap are no batch: what two of them write is written in no order."""
    old = script(OF_PART, f"{FLOATS}, np.array([0, 5, 20, 64], np.int32)", RAGGED).replace("T.ceildiv(M, 32)", "1")
    result = judged(old, old)
    assert result.ok, result.diagnostics
    assert not any("Start" in note for note in result.notes)


def test_indices_stay_in_their_range() -> None:
    """Of a table that the first extents fit only: what the old kernel cannot take is no evidence, and is said."""
    table = f"{FLOATS}, np.array([63, 0, 5, 7] * 16, np.int32)"
    body = f"T.tile.fill(x, 0.0)\n{ROWS}x[i, 0] = X[Table[cid * 32 + i], 0]\n{STORE}"
    old = script(body, table, f"{X}, {TABLE}")
    result = judged(old, old)
    assert result.ok, result.diagnostics
    assert any("the old kernel fails with M = 61" in note and "X[63, 0]" in note for note in result.notes)
    assert any("wide values (M = 67, Table shuffled)" in note for note in result.notes)


def test_tensors_that_share_memory_do_so_again() -> None:
    both = f'{X}, Z: T.Tensor((M, N), "TYPE")'
    body = f"{LOAD}T.tile.add(x, x, 1.0)\nT.copy(x, Z[cid * 32, 0])\nT.copy(X[cid * 32, 0], x)\n{STORE}"
    old = script(body, "x, x", both).replace("rng = ", "x = np.ones((64, 64), np.float32)\n    rng = ")
    new = old.replace("T.copy(x, Z[cid * 32, 0])\n            T.copy(X[cid * 32, 0], x)", "T.copy(x, Z[cid * 32, 0])")
    assert by_script(old, new, check=None).ok


@pytest.mark.parametrize(
    ("size", "below", "found"),
    [(64, False, 67), (64, True, 61), (1, True, 2), (2, True, 3), (3, True, 2), (0, False, 2)],
)
def test_primes(size: int, below: bool, found: int) -> None:
    assert prime_beside(size, below, set()) == found
    assert np.all(found % np.arange(2, found)) or found == 2
    assert prime_beside(64, False, {67, 71}) == 73
