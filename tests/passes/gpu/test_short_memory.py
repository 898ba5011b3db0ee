"""Kernels whose tiles fit only in the form that wants less memory (TL801)."""

from __future__ import annotations

import numpy as np

from tests.passes.gpu.support import agree, gpu_file, result_of

PARAMS = 'S: T.Tensor((2 * block, 2 * block), "float32"), O: T.Tensor((2 * block, block), "float32")'
BODY = """
s = T.alloc_fragment((block, block), "float32")
o = T.alloc_fragment((block, block), "float32")
T.clear(o)
for k in T.serial(2):
    T.copy(S[bx * block, k * block], s)
    for i, j in T.Parallel(block, block):
        s[i, j] = T.if_then_else(bx * block + i >= k * block + j, s[i, j], 0.0)
    for i, j in T.Parallel(block, block):
        s[i, j] = T.if_then_else(k * block + j < 150, s[i, j], 0.0)
    for i, j in T.Parallel(block, block):
        o[i, j] += s[i, j]
T.copy(o, O[bx * block, 0])
"""
"""Tiles of block x block float32: s, o and two of indices that are kept; or s, o and one that is made anew."""


def text(block: int) -> str:
    made = gpu_file(PARAMS, BODY, args="block", launch="T.Kernel(2, threads=128) as bx")
    return f"{made}\n\nkernel = factory({block})\n"


def test_an_index_tile_needs_no_second_tile_for_its_vector() -> None:
    """With 112 x 112 a tile has 49 KB, and UB 191: three fit, four do not (the kept ones, or one for a broadcast)."""
    inputs = {"S": np.random.default_rng(1).normal(size=(224, 224)).astype(np.float32)}
    new = agree(text(112), inputs, args=(112,), threads="1")
    assert "T.tile.fill(index_tile, 0.0)" in new
    assert "T.tile.sub(index_tile[i, :], index, 0.0)" in new
    assert "T.tile.sub(index_tile[i, :], index, T.float32(i))" in new
    notes = result_of(text(112), "1").diagnostics
    found = [(note.severity, note.message[:15]) for note in notes if note.code == "TL801"]
    assert found == [("warning", "for target pto:")]  # which has scratch tiles of its own
    assert "index_tile" not in agree(text(112), inputs, args=(112,))  # two vector cores have half of each tile


def test_index_tiles_are_kept_where_they_fit() -> None:
    new = agree(text(64), {"S": np.ones((128, 128), np.float32)}, args=(64,))
    assert "index_tile" not in new


def test_rows_that_get_a_number_because_of_their_index_are_filled() -> None:
    """Rows behind a length: no tile of row numbers, and no mask."""
    params = PARAMS.replace("O:", 'N: T.Tensor((2,), "int32"), O:')
    body = BODY.replace("k * block + j < 150, s[i, j], 0.0", "bx * block + i < N[k], s[i, j], -2.0")
    made = gpu_file(params, body, args="block", launch="T.Kernel(2, threads=128) as bx")
    draw = np.random.default_rng(2).normal(size=(224, 224)).astype(np.float32)
    inputs = {"S": draw, "N": np.array([70, 200], np.int32)}
    new = agree(f"{made}\n\nkernel = factory(112)\n", inputs, args=(112,), threads="1")
    assert "T.tile.fill(s[i, :], -2.0)" in new
    assert new.count("T.tile.compare(") == 1
