"""TL137, TL144, TL145: fills that nobody reads, and conversions and masks that are there already."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file

FLOATS = 'X: T.Tensor((100, 64), "float32"), O: T.Tensor((128, 64), "float32")'
TILES = """
a = T.alloc_fragment((64, 64), "float32")
b = T.alloc_fragment((64, 64), "float32")
T.copy(X[0, 0], b)
T.clear(a)
"""
LOOP = "for i, j in T.Parallel(64, 64):\n"
INPUTS = {"X": np.random.default_rng(3).normal(size=(100, 64)).astype(np.float32)}


def filled(body: str) -> bool:
    """Whether the fill of `a` is in the new kernel, which computes the same as the old one."""
    new = agree(gpu_file(FLOATS, TILES + body, launch="T.Kernel(1, threads=128) as bx"), INPUTS)
    return "T.tile.fill(a, 0.0)" in new


@pytest.mark.parametrize(
    "body",
    [
        f"{LOOP}    a[i, j] = b[i, j] + 1.0\nT.copy(a, O[0, 0])",
        f"for k in T.serial(2):\n    {LOOP}        a[i, j] = b[i, j] + k\n    T.copy(a, O[k * 64, 0])",
        f"for k in T.serial(2):\n    if k == 1:\n        T.clear(a)\n    {LOOP}        a[i, j] = b[i, j] + k\n"
        "    T.copy(a, O[k * 64, 0])",
        "T.copy(b, O[0, 0])",
    ],
)
def test_a_fill_that_nobody_reads_goes(body: str) -> None:
    assert not filled(body)


@pytest.mark.parametrize(
    "body",
    [
        # it is added to, twice
        f"for k in T.serial(2):\n    {LOOP}        a[i, j] += b[i, j]\nT.copy(a, O[0, 0])",
        # the load ends with its tensor
        "T.copy(X[64, 0], a)\nT.copy(a, O[0, 0])",
        # only a part is written
        "for i, j in T.Parallel(32, 64):\n    a[i, j] = b[i, j] + 1.0\nT.copy(a, O[0, 0])",
        # read before it is written, in the first turn
        f"for k in T.serial(2):\n    T.copy(a, O[k * 64, 0])\n    {LOOP}        a[i, j] = b[i, j] + 1.0",
        # not written where the condition is false
        f"if X.shape[0] < 7:\n    {LOOP}        a[i, j] = b[i, j] + 1.0\nT.copy(a, O[0, 0])",
    ],
)
def test_a_fill_that_is_read_stays(body: str) -> None:
    assert filled(body)


HALVES = 'X: T.Tensor((128, 64), "float16"), S: T.Tensor((2, 64), "float16"), O: T.Tensor((128, 64), "float16")'
VECTOR = """
x = T.alloc_shared((64, 64), "float16")
s = T.alloc_shared((64,), "float16")
T.copy(S[0, :], s)
"""
SCALED = """
    for i, j in T.Parallel(64, 64):
        x[i, j] = T.cast(x[i, j], "float32") * T.cast(s[i], "float32")
"""
SCALES = {
    "X": np.random.default_rng(4).normal(size=(128, 64)).astype(np.float16),
    "S": np.random.default_rng(5).normal(size=(2, 64)).astype(np.float16),
}


def converted(body: str) -> tuple[int, bool]:
    """How often the vector is converted, and whether it first is in front of the loop."""
    new = agree(gpu_file(HALVES, VECTOR + body, launch="T.Kernel(1, threads=128) as bx"), SCALES)
    return new.count("T.copy(s, s_f32"), new.index("T.copy(s, s_f32") < new.index("for k in ")


def test_a_vector_is_converted_once() -> None:
    turn = "for k in T.serial(2):\n    T.copy(X[k * 64, 0], x)" + SCALED
    assert converted(turn + SCALED + "    T.copy(x, O[k * 64, 0])") == (1, True)
    after = "for k in T.serial(2):\n    T.copy(X[k * 64, 0], x)" + SCALED + "    T.copy(x, O[k * 64, 0])"
    assert converted(turn + "    T.copy(x, O[k * 64, 0])\n" + after) == (1, True)


def test_a_vector_that_changes_is_converted_again() -> None:
    turn = "for k in T.serial(2):\n    T.copy(X[k * 64, 0], x)\n"
    assert converted(turn + "    T.copy(S[k, :], s)" + SCALED + "    T.copy(x, O[k * 64, 0])") == (1, False)
    twice = turn + SCALED.lstrip("\n") + "    T.copy(S[1, :], s)" + SCALED + "    T.copy(x, O[k * 64, 0])"
    assert converted(twice) == (2, False)


def test_a_vector_that_changes_in_a_branch_is_converted_again() -> None:
    turn = "for k in T.serial(2):\n    T.copy(X[k * 64, 0], x)\n" + SCALED.lstrip("\n")
    changed = turn + "    if k == 1:\n        T.copy(S[1, :], s)" + SCALED + "    T.copy(x, O[k * 64, 0])"
    assert converted(changed) == (2, False)


def test_conversions_in_two_steps() -> None:
    """From bfloat16 to float16 through float32: the second step has a new value when the first has one."""
    params = 'X: T.Tensor((64, 64), "float16"), V: T.Tensor((64,), "bfloat16"), O: T.Tensor((64, 64), "float16")'
    body = """x = T.alloc_fragment((64, 64), "float16")
v = T.alloc_shared((64,), "bfloat16")
T.copy(X, x)
T.copy(V, v)
for i, j in T.Parallel(64, 64):
    x[i, j] = x[i, j] * v[i]
T.fill(v, 0.25)
for i, j in T.Parallel(64, 64):
    x[i, j] = x[i, j] * v[i]
T.copy(x, O)
"""
    rng = np.random.default_rng(4)
    inputs = {"X": rng.normal(size=(64, 64)).astype(np.float16), "V": rng.normal(size=64).astype(ml_dtypes.bfloat16)}
    agree(gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx"), inputs, atol=1e-2, rtol=1e-2)


def test_loops_that_leave_different_vectors_alone() -> None:
    """One conversion goes in front of the outer loop, the other in front of the inner one."""
    params = 'X: T.Tensor((64, 64), "float32"), V: T.Tensor((64,), "float16"), O: T.Tensor((64, 64), "float32")'
    body = """x = T.alloc_fragment((64, 64), "float32")
v = T.alloc_shared((64,), "float16")
w = T.alloc_shared((64,), "float16")
T.copy(X, x)
T.copy(V, v)
T.copy(V, w)
for n in T.serial(2):
    for i in T.Parallel(64):
        w[i] = w[i] * 0.5
    for k in T.serial(3):
        for i, j in T.Parallel(64, 64):
            x[i, j] = x[i, j] * v[i] + w[i]
T.copy(x, O)
"""
    rng = np.random.default_rng(4)
    inputs = {"X": rng.normal(size=(64, 64)).astype(np.float32), "V": rng.normal(size=64).astype(np.float16)}
    agree(gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx"), inputs, atol=1e-2, rtol=1e-2)


CAUSAL = f"""
x = T.alloc_fragment((64, 64), "float32")
for k in T.serial(2):
    T.copy(X[k * 36, 0], x)
    {LOOP}        x[i, j] = T.if_then_else(i >= j, x[i, j], 0.0)
    {LOOP}        x[i, j] = T.if_then_else({{second}}, x[i, j] * 2.0, 0.0)
    T.copy(x, O[k * 64, 0])
"""


@pytest.mark.parametrize(
    ("second", "inside"),
    [
        ("i >= j", 0),  # one mask, in front of the loop
        ("i > j", 2),  # two masks take turns in their tile
        ("i >= j + k", 2),  # another one in each turn
    ],
)
def test_a_mask_of_all_turns_is_made_once(second: str, inside: int) -> None:
    body = CAUSAL.format(second=second)
    new = agree(gpu_file(FLOATS, body, launch="T.Kernel(1, threads=128) as bx"), INPUTS)
    head, _, rest = new.partition("for k in T.serial(2):")
    assert rest.count("T.tile.compare(") == inside
    assert head.count("T.tile.compare(") == (not inside)
