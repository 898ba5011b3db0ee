"""Calls in loops over values that are written out."""

from __future__ import annotations

import pytest

from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.index import Index

FACTORY = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def factory(M, N=8):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((M, N), "float32")
            T.copy(X, x)
            T.copy(x, Y)

    return main


"""


@pytest.mark.parametrize(
    ("host", "sizes"),
    [
        ("for m, n in [(16, 8), (20, 4)]:\n    factory(m, n)\n", [(16, 8), (20, 4)]),
        ("SIZES = ((16, 8), (20, 4))\nfor m, n in SIZES:\n    factory(m, N=n)\n", [(16, 8), (20, 4)]),
        ("for turn, (m, n) in enumerate([(16, 8), (20, 4)], 1):\n    factory(m, n)\n", [(16, 8), (20, 4)]),
        ("for m in (16, 20):\n    for n in (4, 2):\n        factory(m, n)\n", [(16, 4), (16, 2), (20, 4), (20, 2)]),
        ("def test():\n    for m in [16, 20]:\n        k = m * 2\n        factory(m)\n", [(16, 8), (20, 8)]),
        ("for m in range(3):\n    factory(m)\n", [(None, 8)]),
        ("factory(16)\n", [(16, 8)]),
        ("def test(m=32):\n    def inner(n=4):\n        factory(m, n)\n    inner()\n", [(32, 4)]),
        ("def test(m):\n    k = 2 * m\n    def run():\n        factory(k)\ntest(8)\ntest(16)\n", [(16, 8), (32, 8)]),
        ("def test(m=32):\n    def inner(m):\n        factory(m)\n    inner(2)\n", [(None, 8)]),
    ],
)
def test_every_turn_is_a_call(host: str, sizes: list[tuple[int | None, int | None]]) -> None:
    file = FileKernels(Index.parse(FACTORY + host))
    found = callers_of(file, file.located[0])
    assert [(caller.values.get("M"), caller.values.get("N")) for caller in found] == sizes
