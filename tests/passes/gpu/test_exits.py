"""Blocks that end early, and hints about launches: both texts on the simulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run

PARAMS = 'X: T.Tensor((8, 64), "float32"), N: T.Tensor((8,), "int32"), Y: T.Tensor((8, 64), "float32")'
REST = "T.copy(X[bx, 0], s)\nfor i in T.Parallel(64):\n    s[i] = s[i] * 2.0\nT.copy(s, Y[bx, 0])"
TILE = 's = T.alloc_fragment((64,), "float32")\n'
X = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
N = np.array([3, 0, 1, 0, 5, 0, 0, 2], np.int32)
EXITS = {
    "number of the block": ("if bx >= 5:\n    T.thread_return()\n" + TILE + REST, np.arange(8) < 5),
    "tile before": (TILE + "if bx == 2:\n    T.thread_return()\n" + REST, np.arange(8) != 2),
    "data": (TILE + "if N[bx] == 0:\n    T.thread_return()\n" + REST, N != 0),
    "two": (
        "if bx < 2:\n    T.thread_return()\n" + TILE + "if N[bx] == 0:\n    T.thread_return()\n" + REST,
        (N != 0) & (np.arange(8) > 1),
    ),
}
WORK = "if bx == 1:\n    T.clear(s)\n    T.copy(s, Y[bx, 0])\n    T.thread_return()\n"
LAUNCH = "T.Kernel(8, threads=128) as bx"


def judged(body: str, expected: np.ndarray) -> None:
    text = gpu_file(PARAMS, body, launch=LAUNCH)
    for source in (text, migrated(text)):
        found = run(source, {"X": X, "N": N, "Y": np.full((8, 64), 7, np.float32)})["Y"]
        np.testing.assert_array_equal(found, expected, source)


@pytest.mark.parametrize(("body", "runs"), EXITS.values(), ids=EXITS)
def test_a_block_that_ends_early(body: str, runs: np.ndarray) -> None:
    judged(body, np.where(runs[:, None], X * 2, np.float32(7)))


def test_work_before_the_end() -> None:
    judged(TILE + WORK + REST, np.where(np.arange(8)[:, None] == 1, np.float32(0), X * 2))


def test_other_places_are_refused() -> None:
    text = gpu_file(PARAMS, TILE + "if bx > 1:\n    if N[bx] == 0:\n        T.thread_return()\n" + REST, launch=LAUNCH)
    assert [d.code for d in result_of(text).diagnostics if d.severity == "error"] == ["TL184"]


def test_hints_that_order_launches_go() -> None:
    body = TILE + "T.pdl_sync()\n" + REST + "\nT.pdl_trigger()"
    new = migrated(gpu_file(PARAMS, body, launch=LAUNCH))
    assert "pdl" not in new
    np.testing.assert_array_equal(run(new, {"X": X, "N": N})["Y"], X * 2)
