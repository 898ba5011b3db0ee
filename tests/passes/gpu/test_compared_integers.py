"""Integers beyond 2**24, which float32 does not hold, in comparisons, choices, differences and absolute values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused
from tests.passes.simulated import run

PARAMS = 'A: T.Tensor((32, 64), "{0}"), B: T.Tensor((32, 64), "{0}"), C: T.Tensor((32, 64), "{1}")'


def file(expression: str, given: str = "int32", wanted: str = "int32") -> str:
    body = f"""
    a = T.alloc_shared((16, 64), "{given}")
    b = T.alloc_shared((16, 64), "{given}")
    c = T.alloc_shared((16, 64), "{wanted}")
    T.copy(A[bx * 16, 0], a)
    T.copy(B[bx * 16, 0], b)
    for i, j in T.Parallel(16, 64):
        c[i, j] = {expression}
    T.copy(c, C[bx * 16, 0])
    """
    return gpu_file(PARAMS.format(given, wanted), body)


def close_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of numbers of all sizes that are equal, next to each other or far apart, both ends of int32 among them."""
    random = np.random.default_rng(11)
    a = (random.integers(-(2**31), 2**31, (32, 64)) >> random.integers(0, 31, (32, 64))).astype(np.int32)
    with np.errstate(over="ignore"):
        b = (a + random.integers(-1, 2, (32, 64))).astype(np.int32)
    b[random.random((32, 64)) < 0.2] = -(2**31)
    a[0, :4], b[0, :4] = [2**31 - 1, -(2**31), 2**24, 2**24 + 1], [-(2**31), 2**31 - 1, 2**24 + 1, 2**24]
    return a, b


EXPRESSIONS: list[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("T.if_then_else(a[i, j] == b[i, j], 1, 0)", lambda a, b: a == b),
    ("T.if_then_else(a[i, j] != b[i, j], 1, 0)", lambda a, b: a != b),
    ("T.if_then_else(a[i, j] < b[i, j], 1, 0)", lambda a, b: a < b),
    ("T.if_then_else(a[i, j] <= b[i, j], 1, 0)", lambda a, b: a <= b),
    ("T.if_then_else(a[i, j] > b[i, j], 1, 0)", lambda a, b: a > b),
    ("T.if_then_else(a[i, j] >= b[i, j], 1, 0)", lambda a, b: a >= b),
    ("T.if_then_else(not (a[i, j] >= b[i, j]), 1, 0)", lambda a, b: a < b),
    ('T.cast(a[i, j] < b[i, j], "int32")', lambda a, b: a < b),
    ("T.if_then_else(a[i, j] > 16777216, a[i, j], -7)", lambda a, b: np.where(a > 2**24, a, -7)),
    ("T.if_then_else(a[i, j] > 16777215, a[i, j], -7)", lambda a, b: np.where(a > 2**24 - 1, a, -7)),
    ("T.if_then_else(a[i, j] >= b[i, j], a[i, j], b[i, j])", np.maximum),
    (
        "T.if_then_else(T.And(a[i, j] >= b[i, j], a[i, j] != 3), 9, b[i, j])",
        lambda a, b: np.where((a >= b) & (a != 3), 9, b),
    ),
    ("5 - a[i, j]", lambda a, b: (5 - a.astype(np.int64)).astype(np.int32)),
    ("T.abs(a[i, j])", np.abs),
]


@pytest.mark.parametrize(("expression", "reference"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_exact(expression: str, reference: Callable[..., np.ndarray]) -> None:
    a, b = close_pairs()
    found = run(migrated(file(expression)), {"A": a, "B": b})["C"]
    wanted = reference(a, b)
    assert (found == wanted).all(), np.argwhere(found != wanted)[0]


def test_a_choice_of_floats() -> None:
    a, b = close_pairs()
    new = migrated(file("T.if_then_else(a[i, j] <= b[i, j], 2.0, -1.0)", wanted="float32"))
    assert (run(new, {"A": a, "B": b})["C"] == np.where(a <= b, 2.0, -1.0)).all()


@pytest.mark.parametrize("expression", ["a[i, j] > 3", "a[i, j] == j", "j < a[i, j]", "a[i, j] != -1"])
def test_small_numbers_are_compared_directly(expression: str) -> None:
    """Rounding one side keeps its order to a number that float32 holds."""
    new = migrated(file(f"T.if_then_else({expression}, 1.0, 0.0)", wanted="float32"))
    assert "T.tile.max" not in new
    assert "T.tile.min" not in new
    assert " - " not in new


def test_types_without_an_exact_form() -> None:
    text = file("T.if_then_else(a[i, j] == b[i, j], 1.0, 0.0)", "int64", "float32")
    assert [code for code, _ in refused(text)] == ["TL762"]


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("a[i, j] * 2 + 1", lambda a, b: (a * np.int32(2) + np.int32(1)).astype(np.float32)),
        ("(a[i, j] - b[i, j]) * 0.5", lambda a, b: (a - b).astype(np.float32) * np.float32(0.5)),
        ("1.0 + (a[i, j] + b[i, j])", lambda a, b: np.float32(1) + (a + b).astype(np.float32)),
    ],
)
def test_sums_of_integers_that_become_floats(expression: str, reference: Callable[..., np.ndarray]) -> None:
    """Computed as integers, converted once: float32 would round each operand."""
    a, b = close_pairs()
    with np.errstate(over="ignore"):
        expected = reference(a, b)
    found = run(migrated(file(expression, wanted="float32")), {"A": a, "B": b})["C"]
    np.testing.assert_array_equal(found, expected)


SHORT: list[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("a[j] <= n", lambda a, n: a <= n),
    ("a[j] < n", lambda a, n: a < n),
    ("n < a[j]", lambda a, n: a > n),
    ("a[j] >= n", lambda a, n: a >= n),
    ("a[j] == n", lambda a, n: a == n),
    ("a[j] != n", lambda a, n: a != n),
    ("a[j] >= 0", lambda a, n: a >= 0),
    ("T.And(a[j] >= 0, a[j] < n)", lambda a, n: (a >= 0) & (a < n)),
    ("T.Or(a[j] == n, a[j] < 0)", lambda a, n: (a == n) | (a < 0)),
    ("T.And(a[j] != n, a[j] <= 16777215)", lambda a, n: (a != n) & (a <= 2**24 - 1)),
    ("T.Or(a[j] <= n, a[j] >= 16777215)", lambda a, n: (a <= n) | (a >= 2**24 - 1)),
    ("not (a[j] <= n or a[j] == 7)", lambda a, n: ~((a <= n) | (a == 7))),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("condition", "reference"), SHORT, ids=[text for text, _ in SHORT])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int32"])
def test_a_vector_of_any_length(condition: str, reference: Callable[..., np.ndarray], dtype: str) -> None:
    """24 elements, which a comparison cannot take, by arithmetic that is right for every pair of numbers."""
    value = {"bool": condition, "float32": f"T.if_then_else({condition}, 3.0, -1.0)"}.get(
        dtype, f"T.if_then_else({condition}, 3, -1)"
    )
    use = {"bool": "T.if_then_else(m[j], 3.0, -1.0)", "float32": "m[j]"}.get(dtype, 'T.cast(m[j], "float32")')
    body = f"""
    a = T.alloc_shared((24,), "int32")
    m = T.alloc_fragment((24,), "{dtype}")
    c = T.alloc_fragment((16, 24), "float32")
    T.copy(A[bx, 0], a)
    n = B[bx]
    for j in T.Parallel(24):
        m[j] = {value}
    for i, j in T.Parallel(16, 24):
        c[i, j] = {use}
    T.copy(c, C[bx * 16, 0])
    """
    params = 'A: T.Tensor((32, 24), "int32"), B: T.Tensor((32,), "int32"), C: T.Tensor((512, 24), "float32")'
    new = migrated(gpu_file(params, body, launch="T.Kernel(32, threads=128) as bx"))
    a, b = close_pairs()
    a, n = a[:, :24].copy(), b[:, 0].copy()
    a[:, 3], n[5], n[6], a[6, 4] = n, 2**31 - 1, -(2**31), 2**31 - 1
    found = run(new, {"A": a, "B": n})["C"]
    assert (found[::16] == np.where(reference(a, n[:, None]), 3.0, -1.0)).all()
    assert "if " not in new.partition("T.Kernel")[2]


def labels_beside(column: str, more: str = "") -> str:
    """Where the label of a row is a column of three tiles; ``more``: another parameter."""
    body = f"""
    label = T.alloc_fragment((16,), "int64")
    c = T.alloc_fragment((16, 64), "float32")
    T.copy(L[bx * 16], label)
    for k in T.serial(3):
        for i, j in T.Parallel(16, 64):
            c[i, j] = T.if_then_else(label[i] == {column}, 2.0, -1.0)
        T.copy(c, C[bx * 16, k * 64])
    """
    return gpu_file(f'L: T.Tensor((32,), "int64"), {more}C: T.Tensor((32, 192), "float32")', body)


def test_labels_of_64_bits_beside_columns() -> None:
    """Below 2**24 the columns are exact, so a label that is rounded is still another one."""
    labels = np.random.default_rng(12).integers(0, 192, 32)
    labels[:6] = [-100, 2**32 + 5, 2**40, 2**24 + 1, -(2**63), 191]
    new = migrated(labels_beside("k * 64 + j"))
    assert '(16, 64), "int64")' not in new  # converted before it is spread
    found = run(new, {"L": labels})["C"]
    assert (found == np.where(labels[:, None] == np.arange(192), 2.0, -1.0)).all()


def test_labels_of_64_bits_beside_numbers_that_may_be_large() -> None:
    assert refused(labels_beside("N + k * 64 + j", "N: T.int32, ")) == [("TL762", 15)]
