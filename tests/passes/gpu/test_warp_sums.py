"""Sums that the warps of a block share, as one reduction. The simulator has no threads: NumPy says what is right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RNG = np.random.default_rng(11)
A = RNG.standard_normal((4, 512)).astype(np.float32)
F = RNG.standard_normal((6, 512)).astype(np.float32)
PARAMS = ", ".join(f"{name}: T.Tensor({shape}, 'float32')" for name, shape in (("A", "(4, 512)"), ("F", "(6, 512)")))
PARAMS += ", Q: T.Tensor((4,), 'float32'), B: T.Tensor((4, 6), 'float32')"
LAUNCH = "T.Kernel(4, 2, threads=128) as (bx, by)"

SUMS = """
tid = T.get_thread_binding()
acc = T.alloc_local((tile_n,), "float32")
sqr = T.alloc_local((1,), "float32")
T.clear(acc)
T.clear(sqr)
for it in T.serial(512 // 128):
    k = it * 128 + tid
    a = A[bx, k]
    for o in T.unroll(tile_n):
        out = by * tile_n + o
        if out < 6:
            acc[o] += a * F[out, k]
    if by == 0:
        sqr[0] += a * a
for o in T.unroll(tile_n):
    acc[o] = T.warp_reduce_sum(acc[o])
if by == 0:
    sqr[0] = T.warp_reduce_sum(sqr[0])
lane = tid % 32
warp = tid // 32
s = T.alloc_shared((128 // 32, tile_n + 1), "float32")
if lane == 0:
    for o in T.unroll(tile_n):
        s[warp, o] = acc[o]
    if by == 0:
        s[warp, tile_n] = sqr[0]
T.sync_threads()
"""
ENDS = {
    "variables": """
if warp == 0:
    if lane < tile_n:
        v = T.alloc_var("float32", init=0.0)
        for w in T.unroll(128 // 32):
            v += s[w, lane]
        out = by * tile_n + lane
        if out < 6:
            B[bx, out] = v
    if by == 0 and lane == 0:
        q = T.alloc_var("float32")
        q = 0.0
        for w in T.unroll(128 // 32):
            q += s[w, tile_n]
        Q[bx] = q
""",
    "storage that is cleared": """
if warp == 0:
    both = T.alloc_local((2,), "float32")
    T.clear(both)
    for one in T.unroll(2):
        if one == 0 and lane < tile_n:
            for w in T.serial(128 // 32):
                both[one] += s[w, lane]
            out = by * tile_n + lane
            if out < 6:
                B[bx, out] = both[one]
    if lane == 0 and by == 0:
        q = T.alloc_var("float32", 0.0)
        for w in T.serial(128 // 32):
            q += s[w, tile_n]
        Q[bx] = q
""",
}


def kernel(text: str) -> str:
    return gpu_file(PARAMS, text, launch=LAUNCH, args="tile_n=4", jit="@tilelang.jit(out_idx=[-2, -1])")


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("tid % 32", "T.get_lane_idx()"),
        ("tid // 32\n", "T.get_warp_idx()\n"),
        ("a = ", "b = 0 + by\n    a = "),
    ],
)
def test_one_reduction_in_place_of_two(end: str, old: str, new: str) -> None:
    text = migrated(kernel(SUMS.replace(old, new, 1) + end))
    assert "assert tile_n <= 32" in text
    assert text.count("T.reduce_sum(") == 2
    for reading in (IDEAL, ACTUAL):
        found = run(text, {"A": A, "F": F}, reading=reading)
        np.testing.assert_allclose(found["B"], A @ F.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found["Q"], (A * A).sum(1), rtol=1e-4)


ROWS = """
tid = T.get_thread_binding()
warp = tid // 32
lane = tid % 32
acc = T.alloc_local((2, 6), "float32")
s = T.alloc_shared((4, 2, 6), "float32")
T.clear(acc)
for it in T.serial(4):
    k = it * 128 + tid
    for o in T.unroll(6):
        f = F[o, k]
        for m in T.unroll(2):
            acc[m, o] += A[bx * 2 + m, k] * f
for m in T.unroll(2):
    for o in T.unroll(6):
        acc[m, o] = T.warp_reduce_sum(acc[m, o])
if lane == 0:
    for m in T.unroll(2):
        for o in T.unroll(6):
            s[warp, m, o] = acc[m, o]
T.sync_threads()
if warp == 0:
    for m in T.unroll(2):
        if lane < 6:
            v = T.alloc_var("float32", init=0.0)
            for w in T.unroll(4):
                v += s[w, m, lane]
            B[bx * 2 + m, lane] = v
"""


def test_sums_of_several_rows() -> None:
    text = migrated(
        gpu_file(PARAMS.replace("Q: T.Tensor((4,), 'float32'), ", ""), ROWS, launch="T.Kernel(2, threads=128) as bx")
    )
    assert "assert" not in text  # 6 lanes are fewer than a warp has
    for reading in (IDEAL, ACTUAL):
        found = run(text, {"A": A, "F": F}, reading=reading)
        np.testing.assert_allclose(found["B"], A @ F.T, rtol=1e-4, atol=1e-4)


REFUSED = {
    "lanes that go on with the sum of their warp": ("lane = tid % 32\n", "lane = tid % 32\nB[bx, 0] = acc[0]\n"),
    "warps of another size": ("lane = tid % 32", "lane = tid % 16"),
    "a row for half of the warps": ("(128 // 32, tile_n + 1)", "(128 // 64, tile_n + 1)"),
    "elements that no warp stores": ("lane < tile_n", "lane < tile_n + 1"),
    "sums of a part of the storage": ("for o in T.unroll(tile_n):\n    acc", "for o in T.unroll(tile_n - 1):\n    acc"),
    "a store under another condition": ("    if by == 0:\n        s[", "    if by == 1:\n        s["),
    "a shared tile that is used before": ("T.sync_threads()\n", "T.sync_threads()\nQ[bx] = s[0, 0]\n"),
    "a sum of some warps": ("for w in T.unroll(128 // 32):\n            v", "for w in T.unroll(2):\n            v"),
    "a sum on top of something": ("init=0.0", "init=1.0"),
    "a sum that changes": (
        "        out = by * tile_n + lane\n",
        "        v += 1.0\n        out = by * tile_n + lane\n",
    ),
    "the largest of a warp": ("sqr[0] = T.warp_reduce_sum", "sqr[0] = T.warp_reduce_max"),
    "another element": ("v += s[w, lane]", "v += s[w, lane + 1]"),
    "another thread": ("tid // 32\n", "(tid + 1) // 32\n"),
    "a bound of the block": ("lane < tile_n", "lane < bx"),
}


@pytest.mark.parametrize(("old", "new"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_such_sum_stays(old: str, new: str) -> None:
    body = SUMS + ENDS["variables"]
    assert body.count(old) == 1
    text = kernel(body.replace(old, new))
    result = result_of(text)
    assert "TL184" in {d.code for d in result.diagnostics if d.severity == "error"}
    assert result.new_text == text
