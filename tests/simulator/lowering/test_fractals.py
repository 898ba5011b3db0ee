"""Parts of tiles in L0C and L1 are where the generated code looks for them, or the simulator says that they are not.

The judge lays a tile into flat memory by hand, fractal by fractal, and reads it as the code does that the compiler
generated for ``T.copy(acc[32:64, :], C[...])`` of a tile of 64 x 64:
ascendc ``copy_l0c_to_gm<.., 64, 64>(C[2048], acc[2048], 64, 32, 64)`` (codegen_ascend.cc:CopyCodegen),
pto ``copy_l0c_to_gm_dynamic<.., 32, 64, ..>(.., 0, 2048, 32, 64)`` (codegen_ascend_pto.cc:GMCopyCall);
and for ``T.copy(B[64:128, :], b[64:128, :])`` of 128 x 64 ``copy_gm_to_l1<half, 128, 64>(b[1024], ..)``.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.simulator.kernels import developer, outputs
from tl2npu.simulator.errors import SimulatorError

RNG = np.random.default_rng(5)


def blocked(tile: np.ndarray, lanes: int) -> np.ndarray:
    """Flat memory: columns of blocks one after the other, in each the fractals of 16 rows from top to bottom."""
    rows, columns = tile.shape
    memory = []
    for column, row in itertools.product(range(0, columns, lanes), range(0, rows, 16)):
        memory.append(tile[row : row + 16, column : column + lanes].ravel())
    return np.concatenate(memory)


def walked(memory: np.ndarray, address: int, height: int, rows: int, columns: int, lanes: int) -> np.ndarray:
    """What a copy of ``rows`` x ``columns`` reads there that takes the memory for a tile of ``height`` rows."""
    found = np.full((rows, columns), np.nan, np.float32)
    for row, column in itertools.product(range(rows), range(columns)):
        place = address + column // lanes * height * lanes + row // 16 * 16 * lanes + row % 16 * lanes + column % lanes
        if place < memory.size:
            found[row, column] = memory[place]
    return found


PRODUCT = """
l = T.alloc_L1((M, 16), "float16")
r = T.alloc_L1((16, N), "float16")
acc = T.alloc_L0C((M, N), "float32")
T.copy(L, l)
T.copy(R, r)
T.gemm_v0(l, r, acc, init=True)
"""


@pytest.mark.parametrize("target", ["ascendc", "pto"])
@pytest.mark.parametrize("shape", [(64, 64), (64, 16), (32, 32)])
@pytest.mark.parametrize(
    "part",
    [(0, 0, 32, 16), (0, 0, 20, 64), (0, 0, 64, 16), (16, 0, 16, 64), (32, 0, 32, 16), (8, 0, 1, 64), (0, 16, 64, 16),
     (0, 8, 16, 8), (0, 8, 16, 16), (0, 0, 1, 64), (0, 0, 64, 32), (17, 0, 3, 16)],
)  # fmt: skip
def test_a_part_of_a_product(shape: tuple[int, int], part: tuple[int, int, int, int], target: str) -> None:
    (m, n), (row, column, rows, columns) = shape, part
    if row + rows > m or column + columns > n:
        return
    left, right = RNG.standard_normal((m, 16)).astype(np.float16), RNG.standard_normal((16, n)).astype(np.float16)
    product = left.astype(np.float32) @ right.astype(np.float32)
    stored = f"T.copy(acc[{row}:{row + rows}, {column}:{column + columns}], C[0:{rows}, 0:{columns}])"
    text = developer(
        'L: T.Tensor((M, 16), "float16"), R: T.Tensor((16, N), "float16"), C: T.Tensor((M, N), "float32")',
        PRODUCT + stored,
        None,
        names="cid, _",
    ).replace("pass_configs=ALL", f'pass_configs=ALL, target="{target}"')
    height = m if target == "ascendc" else -(-max(rows * columns // n, 1) // 16) * 16
    found = walked(blocked(product, 16), row * n + column, height, rows, columns, 16)
    meant = product[row : row + rows, column : column + columns]
    if np.array_equal(found, meant):
        given = outputs(text, {"L": left, "R": right}, M=m, N=n)
        np.testing.assert_allclose(given[:rows, :columns], meant, rtol=1e-5)
    else:
        with pytest.raises(SimulatorError, match="another layout"):
            outputs(text, {"L": left, "R": right}, M=m, N=n)


@pytest.mark.parametrize("target", ["ascendc", "pto"])
def test_the_first_rows_of_a_product_of_which_the_number_is_known_at_run_time(target: str) -> None:
    left, right = RNG.standard_normal((64, 16)).astype(np.float16), RNG.standard_normal((16, 64)).astype(np.float16)
    stored = "rows = T.min(64, 48 - cid * 16)\nT.copy(acc[{0}:{0} + rows, 0:N], C[0:rows, 0:N])"
    signature = 'L: T.Tensor((M, 16), "float16"), R: T.Tensor((16, N), "float16"), C: T.Tensor((M, N), "float32")'
    for first in (0, 16):
        text = developer(signature, PRODUCT + stored.format(first), None, names="cid, _")
        text = text.replace("pass_configs=ALL", f'pass_configs=ALL, target="{target}"')
        if first:
            with pytest.raises(SimulatorError, match=r"acc\[16:64, 0:64\] in L0C"):
                outputs(text, {"L": left, "R": right}, M=64)
        else:
            given = outputs(text, {"L": left, "R": right}, M=64)
            np.testing.assert_allclose(given[:48], (left.astype(np.float32) @ right)[:48], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", ["ascendc", "pto"])
@pytest.mark.parametrize(
    "parts", [[(0, 32), (32, 64)], [(0, 24), (24, 64)], [(0, 64)], ["columns", (0, 32), (32, 64)],
              ["columns", (0, 24), (24, 64)]]
)  # fmt: skip
def test_parts_loaded_into_l1(parts: list[tuple[int, int] | str], target: str) -> None:
    """For pto a part of so many elements is as many rows: ``TileMatL1<half, 32, 64>`` for 32 rows of 64."""
    across = parts[0] == "columns"
    spans = [p for p in parts if not isinstance(p, str)]
    part = "l[:, {0}:{1}]" if across else "l[{0}:{1}, :]"
    loads = "\n".join("T.copy(L{0}, l{0})".format(part.format(*span)[1:]) for span in spans)
    body = PRODUCT.replace("16", "64").replace("T.copy(L, l)", loads) + "T.copy(acc, C)"
    text = developer(
        'L: T.Tensor((M, 64), "float16"), R: T.Tensor((64, N), "float16"), C: T.Tensor((M, N), "float32")',
        body.replace("float64", "float16"),
        None,
        names="cid, _",
    ).replace("pass_configs=ALL", f'pass_configs=ALL, target="{target}"')
    left, right = RNG.standard_normal((64, 64)).astype(np.float16), RNG.standard_normal((64, 64)).astype(np.float16)
    memory = blocked(np.arange(64 * 64).reshape(64, 64), 16)  # which element lies where
    fits = True
    for start, stop in spans:
        rows, columns = (64, stop - start) if across else (stop - start, 64)
        height = 64 if target == "ascendc" else rows * columns // 64
        row, column = (0, start) if across else (start, 0)
        address = int(np.flatnonzero(memory == row * 64 + column)[0])
        named = np.arange(64 * 64).reshape(64, 64)[row : row + rows, column : column + columns]
        fits &= np.array_equal(walked(memory, address, height, rows, columns, 16), named)
    if fits:
        product = left.astype(np.float32) @ right.astype(np.float32)
        np.testing.assert_allclose(outputs(text, {"L": left, "R": right}, M=64), product, rtol=1e-3, atol=1e-3)
    else:
        with pytest.raises(SimulatorError, match="another layout"):
            outputs(text, {"L": left, "R": right}, M=64)


def test_what_the_author_means_has_no_layout() -> None:
    """The ideal reading takes the rows that the text names."""
    left, right = RNG.standard_normal((32, 16)).astype(np.float16), RNG.standard_normal((16, 64)).astype(np.float16)
    text = developer(
        'L: T.Tensor((M, 16), "float16"), R: T.Tensor((16, N), "float16"), C: T.Tensor((M, N), "float32")',
        PRODUCT + "T.copy(acc[16:32, :], C[16:32, :])",
        2,
    )
    given = outputs(text, {"L": left, "R": right}, reading="ideal")
    np.testing.assert_allclose(given[16:], (left.astype(np.float32) @ right)[16:], rtol=1e-3, atol=1e-3)
