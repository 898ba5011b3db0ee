"""Which memory ``alloc_shared`` means."""

from __future__ import annotations

import pytest

from tests.kernel.support import file_of, read, source
from tl2npu.kernel.memory.inferred import certain_uses, inferred
from tl2npu.kernel.runtime import Late

TILES = """
x = T.alloc_shared((32, 64), "float16")
y = T.alloc_shared((32, 64), "float16")
"""


@pytest.mark.parametrize(
    ("uses", "memory"),
    [
        ("T.copy(A[0, 0], x)", "UB"),
        ("T.copy(A[0, 0], x)\nT.copy(x, y)", "UB"),
        ("T.tile.exp(x, x)", "UB"),
        ("T.tile.fill(x, 0.0)\nfor i, j in T.Parallel(32, 64):\n    x[i, j] = x[i, j] * 2.0", "UB"),
        ("for i, j in T.Parallel(32, 64):\n    x[i, j] = y[i, j] * 2.0", "L1"),
        ('c = T.alloc_fragment((32, 32), "float32")\nT.copy(A[0, 0], x)\nT.gemm_v0(x, y, c, init=True)', "L1"),
        (
            'c = T.alloc_fragment((32, 32), "float32")\nT.tile.fill(x, 0.0)\nT.gemm_v0(x, y, c, transpose_B=True)',
            "L1",
        ),
        ('a = T.alloc_L0A((32, 64), "float16")\nT.copy(A[0, 0], x)\nT.copy(x, a)', "L1"),
        ('b = T.alloc_L0B((32, 64), "float16")\nT.copy(A[0, 0], x)\nT.copy(x, b)', "L1"),
        ('c = T.alloc_L0C((32, 64), "float32")\nT.copy(c, x)', "UB"),
    ],
)
def test_what_uses_a_tile_says_where_it_is(uses: str, memory: str) -> None:
    kernel = read(TILES + uses)
    assert kernel.buffers["x"].memory.value == memory


@pytest.mark.parametrize(
    ("condition", "loop", "memory"),
    [
        ("cid % M < N % 3", "x[i, j] = 0.5", "L1"),  # for M == 1 and N == 3 only the loop is left
        ("cid % M < N % 3", "y[i, j] = 0.5", "UB"),  # nothing else touches x: with the copy it goes as a whole
        ("cid > N", "x[i, j] = 0.5", "L1"),  # a grid of one block
        ("M > 4", "x[i, j] = 0.5", "L1"),
        ("M > 4", "y[i, j] = 0.5", "L1"),  # an option of the factory: the tile stays, unused
        ("A[0, 0] > 0.0", "x[i, j] = 0.5", "UB"),  # nothing but data decides
    ],
)
def test_uses_that_some_sizes_leave_out(condition: str, loop: str, memory: str) -> None:
    body = f"{TILES}for i, j in T.Parallel(32, 64):\n    {loop}\nif {condition}:\n    T.copy(A[0, 0], x)"
    file = file_of(source(body))
    (located,) = file.located
    kernel = located.read()
    use = certain_uses(kernel, Late.of(file, located, kernel))[kernel.buffers["x"]]
    assert inferred(use).value == memory


@pytest.mark.parametrize(
    ("body", "memory"),
    [
        ("if cid > 0:\n    LOOP\n    T.copy(A[0, 0], x)", "UB"),
        ("if cid > 0:\n    LOOP\nelse:\n    T.copy(A[0, 0], x)", "L1"),
        ("if cid > 0:\n    T.copy(A[0, 0], x)\n    if cid > 1:\n        LOOP", "UB"),
        ("if cid > 0:\n    if cid > 1:\n        T.copy(A[0, 0], x)\n    LOOP", "L1"),
        ("T.copy(A[0, 0], x)\nif cid > 0:\n    LOOP\nelse:\n    T.tile.exp(x, x)", "UB"),
        ("if A[0, 0] > 0.0:\n    LOOP\nelse:\n    T.copy(A[0, 0], x)", "UB"),
    ],
)
def test_a_use_counts_where_the_tile_is_touched(body: str, memory: str) -> None:
    loop = "for i in T.serial(32):\n{0}    x[i, 0] = 0.5"
    lines = [line.replace("LOOP", loop.format(" " * (len(line) - len(line.lstrip())))) for line in body.split("\n")]
    file = file_of(source(TILES + "\n".join(lines)))
    (located,) = file.located
    kernel = located.read()
    assert inferred(certain_uses(kernel, Late.of(file, located, kernel))[kernel.buffers["x"]]).value == memory
