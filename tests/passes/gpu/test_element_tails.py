"""Single elements behind the end of a tensor: a GPU loads zeros there and stores nothing, the NPU takes the address.

13 rows in blocks of 8. What is expected is worked out by loops over the meaning of the source.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

M, N = 13, 64
DRAW = np.random.default_rng(11)
X = DRAW.standard_normal((M, N)).astype(np.float32)
S = DRAW.standard_normal(M).astype(np.float32)
L = np.arange(M, dtype=np.int32) * 5
PARAMS = ", ".join(
    f"{name}: T.Tensor({shape}, '{dtype}')"
    for name, shape, dtype in (
        ("X", (M, N), "float32"),
        ("S", (M,), "float32"),
        ("L", (M,), "int32"),
        ("R", (M,), "float32"),
        ("O", (M, N), "float32"),
    )
)
BLOCKS = "T.Kernel(2, threads=128) as bx"
ROW = """
x = T.alloc_fragment((64,), "float32")
for i in T.serial(8):
    T.copy({source}, x)
{what}    T.copy(x, O[bx * 8 + i, 0])
"""


def rows(what: str, source: str = "X[bx * 8 + i, 0]") -> str:
    lines = "".join(f"    {line}\n" for line in what.splitlines())
    return gpu_file(PARAMS, ROW.format(source=source, what=lines), launch=BLOCKS)


def computes(text: str, tensor: str, expected: np.ndarray) -> str:
    new = migrated(text)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": X, "S": S, "L": L}, "factory", (), reading)[tensor]
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=reading)
    return new


@pytest.mark.parametrize(
    ("value", "expected"),
    [("S[bx * 8 + i] + 1.0", S + 1), ("S[bx * 8 + i] - X[bx * 8 + i, L[bx * 8 + i]]", S - X[np.arange(M), L])],
)
def test_stores(value: str, expected: np.ndarray) -> None:
    text = gpu_file(PARAMS, f"for i in T.serial(8):\n    R[bx * 8 + i] = {value}\n", launch=BLOCKS)
    assert "if bx * 8 + i < 13:" in computes(text, "R", expected)


def test_a_store_of_what_lies_behind() -> None:
    """A GPU stores the 0 that it loads; ``legalize_safe_memory_access.cc`` of tilelang-ascend drops the store."""
    text = gpu_file(
        PARAMS, "for i in T.serial(13):\n    R[i] = S[i + 1] + 1.0\n", launch="T.Kernel(1, threads=128) as bx"
    )
    computes(text, "R", np.append(S[1:], 0) + 1)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("for j in T.Parallel(64):\n    x[j] = x[j] * S[bx * 8 + i]", X * S[:, None]),
        (
            "for j in T.Parallel(64):\n    x[j] = T.if_then_else(j < L[bx * 8 + i], x[j], 0.0)",
            np.where(np.arange(N) < L[:, None], X, 0),
        ),
    ],
)
def test_a_number_for_a_row(what: str, expected: np.ndarray) -> None:
    assert "[T.min(bx * 8 + i, 13 - 1)]" in computes(rows(what), "O", expected)


def test_a_row_that_a_table_picks() -> None:
    text = rows("", "X[L[bx * 8 + i] % 13, 0]")
    assert "L[T.min(bx * 8 + i, 13 - 1)]" in computes(text, "O", X[L % 13])


def test_a_sum_takes_no_element_twice() -> None:
    body = "for i in T.serial(16):\n    t[0] += S[i]\nR[0] = t[0]\n"
    body = "t = T.alloc_fragment((8,), 'float32')\nT.clear(t)\n" + body
    text = gpu_file(
        PARAMS.replace("(13,), 'float32'), O", "(1,), 'float32'), O"), body, launch="T.Kernel(1, threads=128) as bx"
    )
    assert "if i < 13:" in computes(text, "R", S.sum(keepdims=True))


def test_elements_that_are_certainly_inside_stay() -> None:
    text = gpu_file(PARAMS, "for i in T.serial(13):\n    R[i] = S[i] + 1.0\n", launch="T.Kernel(1, threads=128) as bx")
    assert "    R[i] = S[i] + 1.0\n" in computes(text, "R", S + 1)


def test_a_tensor_that_single_elements_change_in_place() -> None:
    """Outside of a scope the cube core alone stores them, once for each block (``CVCombineEmitter``)."""
    text = gpu_file(PARAMS, "for i in T.serial(8):\n    S[bx * 8 + i] = S[bx * 8 + i] + 1.0\n", launch=BLOCKS)
    new = migrated(text)
    assert "S[bx * 8 + i] = S[bx * 8 + i] + 1.0" in new
    np.testing.assert_allclose(run(new, {"S": S}, "factory", (), ACTUAL)["S"], S + 1)


def test_a_zero_that_counts() -> None:
    """The sum of a tile in which each of the last three numbers would be the last of the tensor."""
    body = "t = T.alloc_fragment((16,), 'float32')\ns = T.alloc_fragment((1,), 'float32')\nT.clear(t)\n"
    body += "for i in T.serial(16):\n    for j in T.Parallel(16):\n        t[j] = t[j] + S[i]\n"
    body += "T.reduce_sum(t, s, dim=0)\nR[0] = s[0]\n"
    text = gpu_file(PARAMS, body, launch="T.Kernel(1, threads=128) as bx")
    assert [code for code, _ in refused(text)] == ["TL179"]
