"""Every second element of a row: the row goes through a tile. Both texts on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, refused

RNG = np.random.default_rng(9)
PARAMS = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'
LAUNCH = "T.Kernel(4, threads=128) as bx"
X = RNG.standard_normal((64, 64)).astype(np.float32)
ROW = "bx * 16 + i"
BODIES = {
    "rotated pairs": f"Y[{ROW}, 2 * j] = -X[{ROW}, 2 * j + 1]\nY[{ROW}, 2 * j + 1] = X[{ROW}, 2 * j]",
    "added pairs": f"Y[{ROW}, j * 2] = X[{ROW}, 2 * j] + X[{ROW}, 1 + 2 * j]\nY[{ROW}, j * 2 + 1] = X[{ROW}, j]",
    "by names": f"e = 2 * j\no = e + 1\nr = {ROW}\nY[r, e] = X[r, o] * 2.0\nY[r, o] = X[r, e]",
    "under a condition": f"v = T.if_then_else(j < 8, X[{ROW}, 2 * j], 1.0)\n"
    f"Y[{ROW}, 2 * j] = v\nY[{ROW}, 2 * j + 1] = 0.0",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_rows(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    new = agree(gpu_file(PARAMS, f"for i, j in T.Parallel(16, 32):\n{lines}", launch=LAUNCH), {"X": X})
    assert "_value" not in new  # no element of a tensor is read by itself


@pytest.mark.parametrize("step", [2, 3, 4])
def test_steps(step: int) -> None:
    stores = "".join(f"    Y[{ROW}, {step} * j + {n}] = X[{ROW}, {step} * j + {step - 1 - n}]\n" for n in range(step))
    agree(gpu_file(PARAMS, f"for i, j in T.Parallel(16, {64 // step}):\n{stores}", launch=LAUNCH), {"X": X})


def test_a_vector_and_the_end_of_a_tensor() -> None:
    """The last elements lie behind the end: a GPU reads zeros."""
    params = 'X: T.Tensor((61,), "float32"), Y: T.Tensor((32,), "float32")'
    body = 't = T.alloc_fragment((32,), "float32")\nfor i in T.Parallel(32):\n    t[i] = X[2 * i + 1]\nT.copy(t, Y)'
    agree(gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx"), {"X": X.reshape(-1)[:61]})


@pytest.mark.parametrize(
    "body",
    [
        f"Y[{ROW}, 2 * j] = X[{ROW}, j]",  # half of the elements: the others would be lost
        f"Y[{ROW}, 2 * j] = X[{ROW}, j]\nif j > 3:\n    Y[{ROW}, 2 * j + 1] = X[{ROW}, j]",
        f"Y[{ROW}, 2 * j] = X[{ROW}, j]\nY[{ROW}, 2 * j + 1] = Y[{ROW}, 2 * j]",
        f"Y[{ROW}, 2 * j] = X[{ROW}, j]\nY[{ROW}, 2 * j + 3] = X[{ROW}, j]",
    ],
)
def test_stores_that_are_not_all_of_a_row_are_refused(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    assert refused(gpu_file(PARAMS, f"for i, j in T.Parallel(16, 30):\n{lines}", launch=LAUNCH))[0][0] == "TL170"
