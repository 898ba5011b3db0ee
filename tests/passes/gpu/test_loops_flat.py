"""Parallel loops whose variables are the digits of one index."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tests.passes.simulated import run
from tl2npu.passes.plain.loops.normal import normalise

PARAMS = "X: T.Tensor((1000,), 'float32'), Y: T.Tensor((1000,), 'float32')"
X = np.random.default_rng(2).standard_normal(1000).astype(np.float32)


def kernel(body: str, args: str = "") -> str:
    return gpu_file(PARAMS, body, launch="T.Kernel(4, threads=128) as bx", args=args)


SPREAD = {
    "digits of the block": """
        for i, j in T.Parallel(64, 4):
            idx = (bx * 64 + i) * 4 + j
            if idx < 1000:
                v = X[idx]
                Y[idx] = T.if_then_else(v > 0.0, v, v * 0.5)
    """,
    "the block apart": """
        for lane, item in T.Parallel(32, 8):
            if bx * 256 + lane * 8 + item < 1000:
                Y[bx * 256 + lane * 8 + item] = X[bx * 256 + (item + 8 * lane)] + 1.0
    """,
    "three axes": """
        for a, b, c in T.Parallel(2, 16, 8):
            if 256 * bx + ((a * 16 + b) * 8 + c) < 1000:
                Y[256 * bx + ((a * 16 + b) * 8 + c)] = X[bx * 256 + a * 128 + b * 8 + c] * 3.0
    """,
    "a register tile": """
        r = T.alloc_fragment((256,), 'float32')
        s = T.alloc_fragment((256,), 'float32')
        T.copy(X[bx * 256], r)
        for i, j in T.Parallel(128, 2):
            v = r[i * 2 + j]
            s[i * 2 + j] = T.if_then_else(v > 0.0, v * v, 0.0 - v)
        T.copy(s, Y[bx * 256])
    """,
}


@pytest.mark.parametrize("body", SPREAD.values(), ids=SPREAD)
def test_one_index_is_one_axis(body: str) -> None:
    new = agree(kernel(body), {"X": X})
    assert "T.serial" not in new
    assert "in T.Parallel(" in new or "T.tile." in new


def test_sizes_of_the_factory() -> None:
    body = """
        for i, j in T.Parallel(lanes, width):
            if (bx * lanes + i) * width + j < 1000:
                Y[(bx * lanes + i) * width + j] = X[(bx * lanes + i) * width + j] - 2.0
    """
    agree(kernel(body, "lanes, width"), {"X": X}, args=(64, 4))
    assert "for i in T.Parallel(lanes * width):" in after(normalise, kernel(body, "lanes, width"))


NOT_ONE = {
    "a tile": "a[i, j] = a[i, j] + 1.0",
    "another width": "r[i * 8 + j] = 1.0",
    "the digits themselves": "r[i * 4 + j] = r[i * 4 + j] + i",
    "column by column": "r[j * 32 + i] = 1.0",
    "twice": "r[2 * (i * 4 + j)] = 1.0",
}


@pytest.mark.parametrize("statement", NOT_ONE.values(), ids=NOT_ONE)
def test_two_axes_stay_two(statement: str) -> None:
    body = f"""
        a = T.alloc_fragment((32, 4), 'float32')
        r = T.alloc_fragment((512,), 'float32')
        for i, j in T.Parallel(32, 4):
            {statement}
    """
    assert "for i, j in T.Parallel(32, 4):" in after(normalise, kernel(body))


def test_an_axis_of_one_element_beside_a_vector() -> None:
    """Sums of columns over rows that come one by one: the tiles have two axes, the sums one."""
    params = "X: T.Tensor((16, 64), 'float32'), Y: T.Tensor((16, 64), 'float32'), Z: T.Tensor((64,), 'float32')"
    body = """
        row = T.alloc_shared((1, 64), 'float32')
        total = T.alloc_fragment((64,), 'float32')
        T.clear(total)
        for k in T.serial(16):
            T.copy(X[k, 0], row)
            for i, j in T.Parallel(1, 64):
                v = row[i, j] * 2.0
                row[i, j] = v + 1.0
                total[j] += v
            T.copy(row, Y[k, 0])
        T.copy(total, Z)
    """
    x = np.random.default_rng(4).standard_normal((16, 64)).astype(np.float32)
    new = agree(
        gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx", jit="@tilelang.jit(out_idx=[1, 2])"), {"X": x}
    )
    assert "T.Parallel(1" not in new
    np.testing.assert_allclose(run(new, {"X": x})["Z"], (x * 2).sum(axis=0), rtol=1e-5)
