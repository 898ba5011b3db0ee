"""Vectors beside tensors with rows, and elements of two axes: as the compiler's text has them (common.h, binary_op)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.simulated import run
from tl2npu.simulator.errors import SimulatorError

PARAMS = 'X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")'
X = np.random.default_rng(8).standard_normal((16, 64)).astype(np.float32)
LAUNCHES = ["T.Kernel(1, threads=1, is_npu=True) as (cid)", "T.Kernel(1, is_npu=True) as (cid, vid)"]


def kernel(body: str, launch: str) -> str:
    tiles = 'v = T.alloc_ub((16,), "float32")\nt = T.alloc_ub((16, 64), "float32")\n'
    tiles += "T.copy(X, t)\nT.copy(X[0, 0:16], v)\n"
    return gpu_file(PARAMS, f"{tiles}{body}\nT.copy(t, Y)", launch=launch)


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("copy", ["T.copy(X[0:16, 3], v)", "T.copy(v, Y[0:16, 3])", "T.copy(X[0:4, 0:4], v)"])
def test_rows_beside_a_vector(copy: str, launch: str) -> None:
    with pytest.raises(SimulatorError, match="begins a block of 32 bytes"):
        run(kernel(copy, launch), {"X": X})


@pytest.mark.parametrize("launch", LAUNCHES)
def test_an_element_of_two_axes_is_read_by_its_first_index(launch: str) -> None:
    found = run(kernel("T.tile.mul(t, t, X[3, 5])", launch), {"X": X})["Y"]
    np.testing.assert_allclose(found, X * X[0, 3], rtol=1e-6)
    bound = run(kernel("x = X[3, 5]\nT.tile.mul(t, t, x)", launch), {"X": X})["Y"]
    np.testing.assert_allclose(bound, X * X[3, 5], rtol=1e-6)
