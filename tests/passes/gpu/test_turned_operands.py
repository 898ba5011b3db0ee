"""TL600: operands that are stored transposed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

RNG = np.random.default_rng(13)
INPUTS = {
    "A": RNG.standard_normal((32, 64)).astype(np.float16),
    "B": RNG.standard_normal((32, 48)).astype(np.float16),
    "S": RNG.standard_normal((32,)).astype(np.float16),
}
PARAMS = (
    'A: T.Tensor((32, 64), "float16"), B: T.Tensor((32, 48), "float16"), S: T.Tensor((32,), "float16"), '
    'C: T.Tensor((64, 48), "float32")'
)
BODY = """
a = T.alloc_shared((32, 64), "float16")
b = T.alloc_shared((32, 48), "float16")
s = T.alloc_shared((32,), "float16")
t = T.alloc_fragment((64, 32), "float16")
c = T.alloc_fragment((64, 48), "float32")
T.copy(A, a)
T.copy(B, b)
T.copy(S, s)
{store}
T.clear(c)
T.gemm(t, b, c)
T.copy(c, C)
"""


def file_of(store: str) -> str:
    return gpu_file(PARAMS, BODY.format(store=store), launch="T.Kernel(1, threads=128) as bx")


@pytest.mark.parametrize(
    "store",
    [
        "for i, j in T.Parallel(64, 32):\n    t[i, j] = a[j, i] * s[j]",
        "for i, j in T.Parallel(64, 32):\n    t[i, j] = a[j, i]",
        "for j, i in T.Parallel(32, 64):\n    t[i, j] = a[j, i] * s[j]",
    ],
)
def test_the_gemm_transposes(store: str) -> None:
    new = agree(file_of(store), INPUTS, rtol=1e-2, atol=1e-2)
    assert "b, c, transpose_A=True, init=True)" in new
    assert "T.serial" not in new


def test_twice_is_not_at_all() -> None:
    file = file_of("for i, j in T.Parallel(64, 32):\n    t[i, j] = a[j, i]")
    file = file.replace("t = T.alloc_fragment((64, 32)", "t = T.alloc_fragment((48, 32)")
    file = file.replace("T.Parallel(64, 32)", "T.Parallel(48, 32)").replace("a[j, i]", "b[j, i]")
    file = file.replace("T.gemm(t, b, c)", "T.gemm(a, t, c, transpose_A=True, transpose_B=True)")
    new = agree(file, INPUTS, rtol=1e-2, atol=1e-2)
    assert "c, transpose_A=True, init=True)" in new
    assert "transpose_B" not in new


@pytest.mark.parametrize(
    "store",
    [
        # one tile is read as it is, the other transposed
        "for i, j in T.Parallel(64, 32):\n    t[i, j] = a[j, i] * u[i, j]",
        # the tile is used by other statements than gemms
        "for i, j in T.Parallel(64, 32):\n    t[i, j] = a[j, i]\nfor i, j in T.Parallel(64, 32):\n    t[i, j] *= s[j]",
    ],
)
def test_others_stay(store: str) -> None:
    head = 'u = T.alloc_shared((64, 32), "float16")\nT.clear(u)\n' if "u[" in store else ""
    head = "".join(f"            {line}\n" for line in head.splitlines())
    file = file_of(store).replace("            T.copy(A, a)\n", f"{head}            T.copy(A, a)\n")
    assert "TL600" not in {change.code for change in result_of(file).changes}
