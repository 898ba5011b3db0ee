"""TL178: blocks that begin behind the last row, depending on data."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

PARAMS = ", ".join(
    [
        'A: T.Tensor((100, 64), "float16")',
        'B: T.Tensor((64, 64), "float16")',
        'P: T.Tensor((6,), "int32")',
        'C: T.Tensor((100, 64), "float32")',
        'D: T.Tensor((200, 64), "float32")',
    ]
)
BODY = """a = T.alloc_shared((32, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((32, 64), "float32")
start = P[bx] + FIRST
T.copy(B, b)
T.copy(A[start : start + 32, :], a)
T.gemm(a, b, c, clear_accum=True)
"""
STORE = """for i, j in T.Parallel(32, 64):
    if start + i < 100:
        C[start + i, j] = c[i, j] * 0.5
"""
LATE = """d = T.alloc_shared((32, 64), 'float32')
T.copy(c, d)
T.copy(d[8:32, :], C[start + 8 : start + 32, :])
"""
RNG = np.random.default_rng(11)


def text(store: str = STORE, first: str = "bx", body: str = BODY) -> str:
    return gpu_file(PARAMS, body.replace("FIRST", first) + store, launch="T.Kernel(6, threads=128) as bx")


@pytest.mark.parametrize(
    ("store", "first"),
    [
        (STORE, "bx"),
        (STORE, "0 * bx + bx"),
        ("T.copy(c, C[start, 0])\n", "bx"),
        (STORE.replace("C[start + i, j] = c[i, j] * 0.5", "T.atomic_add(C[start + i, j], c[i, j])"), "bx"),
        (
            "d = T.alloc_shared((32, 64), 'float32')\nT.copy(c, d)\nT.copy(d[8:32, :], C[start + 8 : start + 32, :])\n",
            "bx",
        ),
    ],
)
def test_nothing_is_done_where_nothing_would_be_stored(store: str, first: str) -> None:
    new = migrated(text(store, first))
    assert "if start < 100:" in new
    a, b = RNG.standard_normal((100, 64)).astype(np.float16), RNG.standard_normal((64, 64)).astype(np.float16)
    begins = np.array([-bx + at for bx, at in enumerate((0, 100, 36, 250, 68, 4000))], np.int32)
    inputs = {"A": a, "B": b, "P": begins, "C": np.zeros((100, 64), np.float32), "D": np.zeros((200, 64), np.float32)}
    product = a.astype(np.float32) @ b.astype(np.float32) * (0.5 if "0.5" in store else 1.0)
    want = np.zeros((100, 64), np.float32)
    for at in (0, 36, 68):
        skipped = 8 if "d[8:32" in store else 0
        want[at + skipped : at + 32] += product[at + skipped : at + 32]
    for reading in (IDEAL, ACTUAL):
        found = run(new, inputs, "factory", (), reading)["C"]
        np.testing.assert_allclose(found, want, 1e-2, 1e-2, err_msg=reading)


@pytest.mark.parametrize(
    ("store", "first"),
    [
        (STORE.replace("C[", "D["), "bx"),  # more rows
        (STORE + "T.copy(c, D[bx * 32, 0])\n", "bx"),
        ("T.copy(c, C[T.max(start - 8, 0), 0])\n", "bx"),  # some of the rows lie in front of the end
        (STORE.replace("start + i, j]", "bx * 16 + i, j]"), "bx"),
    ],
)
def test_what_may_be_stored_is_stored(store: str, first: str) -> None:
    assert "if start < 100:" not in migrated(text(store, first))


NAMELESS = BODY.replace("start = P[bx] + FIRST\n", "").replace(
    "A[start : start + 32, :]", "A[P[bx] + bx : P[bx] + bx + 32, :]"
)


def test_a_start_without_a_name() -> None:
    assert "if P[bx] + bx < 100:" in migrated(text(STORE.replace("start", "P[bx] + bx"), body=NAMELESS))
    named = BODY.replace("start = P[bx] + FIRST", "first = P[bx]").replace(
        "A[start : start", "A[first + bx : first + bx"
    )
    assert "if first + bx < 100:" in migrated(text(STORE.replace("start", "first + bx"), body=named))


def test_a_start_that_moves_in_a_loop_stays_in_the_loop() -> None:
    load, gemm = BODY.splitlines(keepends=True)[-2:]
    load, gemm = load.replace("start", "start + k * 32"), gemm.replace(", clear_accum=True", "")
    loop = f"T.clear(c)\nfor k in T.serial(2):\n    {load}    {gemm}"
    new = migrated(text(body="".join(BODY.splitlines(keepends=True)[:-2]) + loop))
    assert "if start + k * 32 <" not in new


def test_rows_that_no_data_moves_keep_the_grid() -> None:
    body = BODY.replace("start = P[bx] + FIRST", "start = bx * 16")
    assert "if start <" not in migrated(text(body=body))
