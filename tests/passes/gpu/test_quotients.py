"""Scales of groups that are larger than a tile: one for each row of the tile, where the factory asserts it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

ARGS = "N=64, K=256, group=128, bn=32, bk=64"
SIZES = ("N", "K", "group", "bn", "bk")
ASSERT = "assert group % bk == 0"
COLUMNS = """
w = T.alloc_fragment((bn, bk), "float32")
T.copy(W[bx * bn, by * bk], w)
for i, j in T.Parallel(bn, bk):
    w[i, j] = w[i, j] * S[bx * bn + i, {index}]
T.copy(w, O[bx * bn, by * bk])
"""
LOOPED = """
w = T.alloc_shared((bn, bk), "float32")
y = T.alloc_fragment((bn, bk), "float32")
T.clear(y)
for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
    T.copy(W[bx * bn, k * bk], w)
    for i, j in T.Parallel(bn, bk):
        y[i, j] += w[i, j] / S[bx * bn + i, (j + k * bk) // group]
T.copy(y, O[bx * bn, 0])
"""
ROWS = """
w = T.alloc_fragment((bk, bn), "float32")
T.copy(W[by * bk, bx * bn], w)
for i, j in T.Parallel(bk, bn):
    w[i, j] = w[i, j] + S[(by * bk + i) // group, bx * bn + j]
T.copy(w, O[by * bk, bx * bn])
"""


def columns(index: str, factory: str = ASSERT, args: str = ARGS) -> str:
    """Weights with a scale for a group of columns."""
    params = 'W: T.Tensor((N, K), "float32"), S: T.Tensor((N, K // group), "float32"), O: T.Tensor((N, K), "float32")'
    launch = "T.Kernel(T.ceildiv(N, bn), T.ceildiv(K, bk), threads=128) as (bx, by)"
    return gpu_file(params, COLUMNS.format(index=index), launch=launch, factory=factory, args=args)


def inputs(*shapes: tuple[int, int]) -> dict[str, np.ndarray]:
    """Values of both inputs."""
    rng = np.random.default_rng(0)
    return {name: rng.uniform(1, 2, shape).astype(np.float32) for name, shape in zip("WS", shapes, strict=True)}


def single_loads(new: str) -> int:
    """How many loops the loads of single elements are in."""
    lines = new.split("\n")
    load = next(number for number, line in enumerate(lines) if "s_value = S[" in line)
    return sum("T.serial(b" in line for line in lines[load - 4 : load])


@pytest.mark.parametrize("index", ["(by * bk + j) // group", "(j + by * bk) // group", "(by * bk + j + 0) // group"])
def test_a_row_reads_one_scale(index: str) -> None:
    new = agree(columns(index), inputs((64, 256), (64, 2)))
    assert single_loads(new) == 1
    assert "+ j) // group" not in new


@pytest.mark.parametrize("factory", ["if group % bk:\n    raise ValueError(group)", ASSERT])
def test_what_holds_behind_the_start_of_the_factory(factory: str) -> None:
    assert single_loads(agree(columns("(by * bk + j) // group", factory), inputs((64, 256), (64, 2)))) == 1


def test_numbers_of_the_file() -> None:
    text = columns("(by * 64 + j) // group", "assert group % 64 == 0").replace("bk", "64").replace(", 64=64", "")
    assert single_loads(agree(text, inputs((64, 256), (64, 2)))) == 1


@pytest.mark.parametrize(
    ("index", "factory"),
    [
        ("(by * bk + j) // group", ""),  # nothing says so
        ("(by * bk + j) // group", "assert bk % group == 0 or True"),
        ("(by * bk + j) // group", "assert group % bn == 0"),  # of another size
        ("(by * bk + j + 1) // group", ASSERT),  # the last column is in the next group
        ("(by * bn + j) // group", ASSERT),  # a row begins anywhere in a group
        ("(by * bk + 2 * j) // group", ASSERT),
    ],
)
def test_a_row_that_may_cross_a_group(index: str, factory: str) -> None:
    args = ARGS.replace("K=256", "K=512")
    text = columns(index, factory, args).replace("K // group)", "K // group + 2)")
    assert single_loads(agree(text, inputs((64, 512), (64, 6)))) == 2


def test_in_a_pipelined_loop() -> None:
    params = 'W: T.Tensor((N, K), "float32"), S: T.Tensor((N, K // group), "float32"), O: T.Tensor((N, bk), "float32")'
    text = gpu_file(params, LOOPED, launch="T.Kernel(T.ceildiv(N, bn), threads=128) as bx", factory=ASSERT, args=ARGS)
    assert single_loads(agree(text, inputs((64, 256), (64, 2)))) == 1


def test_groups_of_rows_are_a_copy() -> None:
    params = 'W: T.Tensor((K, N), "float32"), S: T.Tensor((K // group, N), "float32"), O: T.Tensor((K, N), "float32")'
    launch = "T.Kernel(T.ceildiv(N, bn), T.ceildiv(K, bk), threads=128) as (bx, by)"
    text = gpu_file(params, ROWS, launch=launch, factory=ASSERT, args=ARGS)
    new = agree(text, inputs((256, 64), (2, 64)))
    assert "S[" in new
    assert "s_value" not in new
    assert not [item for item in result_of(text).diagnostics if item.code == "TL603"]


def test_the_identity_itself() -> None:
    rng = np.random.default_rng(1)
    m, c, x = (rng.integers(1, high, 2000) for high in (40, 9, 500))
    j = rng.integers(0, 10**6, 2000) % m
    np.testing.assert_array_equal((x * m + j) // (c * m), x * m // (c * m))
