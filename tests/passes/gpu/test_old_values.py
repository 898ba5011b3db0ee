"""A value that is read where another iteration of the same loop writes: all iterations run at once.

What is expected is worked out by NumPy from what was in the tile before the loop.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RANDOM = np.random.default_rng(3)
X, W = (RANDOM.standard_normal((32, 64)).astype(np.float32) for _ in range(2))
S = RANDOM.standard_normal((64,)).astype(np.float32)
A = RANDOM.standard_normal((4, 16, 32)).astype(np.float32)
ORDER = RANDOM.permutation(64).astype(np.int32)
INPUTS = {"X": X, "W": W, "S": S, "A": A, "I": ORDER}
PARAMS = (
    'X: T.Tensor((32, 64), "float32"), W: T.Tensor((32, 64), "float32"), S: T.Tensor((64,), "float32"), '
    'A: T.Tensor((4, 16, 32), "float32"), I: T.Tensor((64,), "int32"), '
)
SHAPES = {"x": (32, 64), "s": (64,), "a": (4, 16, 32)}
TILES = """
x = T.alloc_{memory}((32, 64), "{dtype}")
w = T.alloc_shared((32, 64), "float32")
s = T.alloc_{memory}((64,), "float32")
a = T.alloc_{memory}((4, 16, 32), "float32")
ix = T.alloc_shared((64,), "int32")
T.copy(X, x)
T.copy(W, w)
T.copy(S, s)
T.copy(A, a)
T.copy(I, ix)
"""


def file_of(statements: str, tile: str, memory: str = "shared", dtype: str = "float32") -> str:
    body = f"{TILES.format(memory=memory, dtype=dtype)}{statements}\nT.copy({tile}, O)"
    return gpu_file(f'{PARAMS}O: T.Tensor({SHAPES[tile]}, "float32")', body, launch="T.Kernel(1, threads=128) as bx")


def computes(text: str, expected: np.ndarray, rtol: float = 1e-5) -> None:
    new = migrated(text)
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, INPUTS, "factory", (), reading)["O"], expected, rtol, 1e-5, err_msg=reading)


def loop(statements: str, head: str = "i, j in T.Parallel(32, 64)") -> str:
    return f"for {head}:\n" + "".join(f"    {line}\n" for line in statements.split("\n"))


FIRST, ALL = X[:, :1], 0 * X


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("x[i, j] = x[i, 0]", FIRST + ALL),
        ("x[i, j] = x[0, 0]", X[0, 0] + ALL),
        ("x[i, j] = x[5, j] * 2.0", X[5] * 2 + ALL),
        ("x[i, j] = x[i, 0] + w[i, j]", FIRST + W),
        ("x[i, j] = w[i, j] + x[i, 0]", FIRST + W),
        ("x[i, j] = x[i, j] - x[i, 0]", X - FIRST),
        ("x[i, j] += x[i, 3]", X + X[:, 3:4]),
        ("x[i, j] = T.exp(x[i, 0])", np.exp(FIRST) + ALL),
        ("x[i, j] = T.max(x[i, 0], w[i, j])", np.maximum(FIRST, W)),
        ("x[i, j] = T.if_then_else(w[i, j] > 0.0, x[i, 0], x[i, j])", np.where(W > 0, FIRST, X)),
        ("if x[i, 0] > 0.0:\n    x[i, j] = w[i, j]", np.where(FIRST > 0, W, X)),
        ("if x[i, 63 - j] > 0.0:\n    x[i, j] = w[i, j]\n    x[i, j] += 1.0", np.where(X[:, ::-1] > 0, W + 1, X)),
        ("v = x[i, 0]\nx[i, j] = v + v * v", FIRST + FIRST**2 + ALL),
        ("v = x[i, 63 - j]\nx[i, j] = w[i, j]\nx[i, j] = v + x[i, j]", X[:, ::-1] + W),
        ("x[i, j] = x[i, 63 - j]", X[:, ::-1]),
        ("x[i, j] = x[i, j ^ 1]", X[:, np.arange(64) ^ 1]),
        ("x[i, j] = x[31 - i, j]", X[::-1]),
        ("x[i, j] = (x[i, 63 - j] + 1.0) * x[i, 63 - j]", (X[:, ::-1] + 1) * X[:, ::-1]),
        ("x[i, j] = x[i, ix[j]]", X[:, ORDER]),
        ("x[i, ix[j]] = x[i, j]", X[:, np.argsort(ORDER)]),
        ("x[i, 63 - j] = x[i, j] + w[i, j]", (X + W)[:, ::-1]),
    ],
)
@pytest.mark.parametrize("memory", ["shared", "fragment"])
def test_the_old_elements_of_a_tile(statements: str, expected: np.ndarray, memory: str) -> None:
    computes(file_of(loop(statements), "x", memory), expected)


def test_through_conversions() -> None:
    halves = X.astype(np.float16).astype(np.float32)
    body = loop('x[i, j] = T.cast(x[i, 0], "float32") + w[i, j]')
    computes(file_of(body, "x", dtype="float16"), halves[:, :1] + W, 1e-2)


@pytest.mark.parametrize(
    ("head", "statement", "expected"),
    [
        ("i, j in T.Parallel(32, 63)", "x[i, j + 1] = x[i, j]", np.concatenate([FIRST, X[:, :-1]], 1)),
        ("i, j in T.Parallel(32, 56)", "x[i, j + 8] = x[i, j]", np.concatenate([X[:, :8], X[:, :-8]], 1)),
        ("i, j in T.Parallel(31, 64)", "x[i + 1, j] = x[i, j]", np.concatenate([X[:1], X[:-1]])),
        ("i, j in T.Parallel(31, 64)", "x[i, j] = x[i + 1, j]", np.concatenate([X[1:], X[-1:]])),
        ("i, j in T.Parallel(32, 32)", "x[i, j] = x[j, i]", np.concatenate([X[:, :32].T, X[:, 32:]], 1)),
        ("i, j in T.Parallel(32, 32)", "x[j, i] = x[i, j]", np.concatenate([X[:, :32].T, X[:, 32:]], 1)),
    ],
)
def test_a_part_of_a_tile(head: str, statement: str, expected: np.ndarray) -> None:
    computes(file_of(loop(statement, head), "x"), expected)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("head", "statement", "expected"),
    [
        ("i in T.Parallel(64)", "s[i] = s[63 - i]", S[::-1]),
        ("i in T.Parallel(64)", "s[i] = s[i] + s[5]", S + S[5]),
        ("i in T.Parallel(63)", "s[i + 1] = s[i + 1] + s[i]", np.concatenate([S[:1], S[1:] + S[:-1]])),
        ("i in T.Parallel(64)", "s[i] = s[ix[i]]", S[ORDER]),
        ("i in T.Parallel(64)", "if s[i] > s[63 - i]:\n    s[i] = s[63 - i]", np.minimum(S, S[::-1])),
        ("i in T.Parallel(64)", "ix[i] = ix[ix[i]]", None),
        ("h, i, j in T.Parallel(4, 16, 32)", "a[h, i, j] = a[3 - h, i, j]", A[::-1]),
        ("h, i, j in T.Parallel(4, 16, 32)", "a[h, i, j] = a[0, i, j] * 2.0", 2 * A[:1] + 0 * A),
        ("h, i, j in T.Parallel(4, 16, 32)", "a[h, i, j] += a[h, 15 - i, j]", A + A[:, ::-1]),
        ("h, i, j in T.Parallel(4, 16, 32)", "v = a[3 - h, i, j]\na[h, i, j] = v * v", A[::-1] ** 2),
        ("h, i, j in T.Parallel(4, 16, 32)", "if a[0, i, j] > 0.0:\n    a[h, i, j] = 1.0", np.where(A[:1] > 0, 1, A)),
    ],
)
def test_of_one_axis_and_of_three(head: str, statement: str, expected: np.ndarray | None) -> None:
    tile = "a" if "a[" in statement else "s"
    body = loop(statement, head)
    if expected is None:  # an index that is read through itself
        body, expected = body + loop("s[i] = s[ix[i]]", "i in T.Parallel(64)"), S[ORDER[ORDER]]
    computes(file_of(body, tile), expected)


@pytest.mark.parametrize(
    ("head", "statement"),
    [
        ("i, j in T.Parallel(16, 64)", "x[i, j] = x[i + 16, j]"),
        ("i in T.Parallel(32)", "s[2 * i] = s[2 * i + 1]"),
        ("i, j in T.Parallel(32, 64)", "x[i, j] = x[i, j] * x[i, j]"),
    ],
)
def test_elements_that_no_other_iteration_writes_need_no_tile(head: str, statement: str) -> None:
    tile = statement[0]
    assert f"{tile}_tmp = " not in migrated(file_of(loop(statement, head), tile))


def test_rows_that_follow_one_another_are_read_as_they_are() -> None:
    body = "for i in T.serial(31):\n    for j in T.Parallel(64):\n        x[i + 1, j] = x[i + 1, j] + x[i, j]\n"
    computes(file_of(body, "x"), np.cumsum(X, 0), 1e-4)


def test_what_another_iteration_has_written_before_is_no_value_of_one_loop() -> None:
    body = loop("a[h, i, j] = a[h, i, j] * 2.0\na[h, i, j] += a[3 - h, i, j]", "h, i, j in T.Parallel(4, 16, 32)")
    text = file_of(body, "a")
    assert refused(text) == [("TL120", 1 + text[: text.index("a[h, i, j] +=")].count("\n"))]


@pytest.mark.parametrize(("index", "copied"), [("63 - j", True), ("0", True), ("j", False)])
def test_npuir_reads_from_a_copy(index: str, copied: bool) -> None:
    """Its compiler runs such a loop element by element (TL467)."""
    text = file_of(loop(f"x[i, j] = x[i, {index}] + w[i, j]"), "x")
    new = migrate_text(text, "k.py", Options(target="npuir")).new_text
    assert new is not None
    assert ("T.copy(x, x_old)" in new) is copied
