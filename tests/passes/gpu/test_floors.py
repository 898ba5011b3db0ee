"""Whole divisions round down on a GPU, and towards zero in the C of both code generators of Ascend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.checks.support import errors, warnings
from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tests.simulator.kernels import developer
from tl2npu.simulator.lowering.lower import IDEAL

DIVISORS = (-7, -4, -1, 1, 3, 4)


def c_quotient(x: int, y: int) -> int:
    """``x / y`` of C: the fraction is dropped (ISO C 6.5.5)."""
    return math.trunc(Fraction(x, y))


def dividends() -> np.ndarray:
    return np.arange(-1024, 1024, dtype=np.int32).reshape(32, 64)


@pytest.mark.parametrize("loop", ["for i, j in T.Parallel(32, 64):\n    ", "for i, j in T.grid(32, 64):\n    "])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_the_npu_divides_as_c_does(loop: str, divisor: int) -> None:
    for expression, expected in (
        (f"a[i, j] // ({divisor})", lambda x: c_quotient(x, divisor)),
        (f"a[i, j] % ({divisor})", lambda x: x - divisor * c_quotient(x, divisor)),
        (f"T.floordiv(a[i, j], {divisor})", lambda x: c_quotient(x, divisor)),
        (f"T.truncdiv(a[i, j], {divisor}) * 2", lambda x: 2 * c_quotient(x, divisor)),
        (f"T.ceildiv(a[i, j], {divisor})", lambda x: c_quotient(x + divisor - 1, divisor)),
    ):
        body = f"""
        a = T.alloc_ub((32, 64), "int32")
        T.copy(A[0, 0], a)
        {loop.strip()}
            a[i, j] = {expression}
        T.copy(a, C[0, 0])
        """
        text = developer('A: T.Tensor((32, 64), "int32"), C: T.Tensor((32, 64), "int32")', body, threads=1)
        found = run(text, {"A": dividends()})["C"]
        assert found.tolist() == [[expected(int(x)) for x in row] for row in dividends()]


def test_the_author_means_what_python_means() -> None:
    body = """
    a = T.alloc_ub((32, 64), "int32")
    T.copy(A[0, 0], a)
    for i, j in T.grid(32, 64):
        a[i, j] = a[i, j] // 3
    T.copy(a, C[0, 0])
    """
    text = developer('A: T.Tensor((32, 64), "int32"), C: T.Tensor((32, 64), "int32")', body, threads=1)
    assert (run(text, {"A": dividends()}, reading=IDEAL)["C"] == dividends() // 3).all()


ROWS = np.arange(16)[:, None]
COLUMNS = np.arange(64)[None, :]
ELEMENTS: list[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("a[i, j] // b[i, j]", lambda a, b: a // b),
    ("a[i, j] % b[i, j]", lambda a, b: a % b),
    ("a[i, j] // 4", lambda a, b: a // 4),
    ("a[i, j] % 8", lambda a, b: a % 8),
    ("T.floordiv(a[i, j], 7)", lambda a, b: a // 7),
    ("T.floormod(a[i, j] - 3, 7)", lambda a, b: (a - 3) % 7),
    ("a[i, j] // 3 // 5 + 1", lambda a, b: a // 3 // 5 + 1),
    ("a[i, j] // -4", lambda a, b: a // -4),
]


@pytest.mark.parametrize(("expression", "reference"), ELEMENTS, ids=[text for text, _ in ELEMENTS])
@pytest.mark.parametrize("memory", ["shared", "fragment"])
def test_elements(expression: str, reference: Callable[..., np.ndarray], memory: str) -> None:
    body = f"""
    a = T.alloc_{memory}((16, 64), "int32")
    b = T.alloc_{memory}((16, 64), "int32")
    T.copy(A[bx * 16, 0], a)
    T.copy(B[bx * 16, 0], b)
    for i, j in T.Parallel(16, 64):
        a[i, j] = {expression}
    T.copy(a, C[bx * 16, 0])
    """
    params = ", ".join(f'{name}: T.Tensor((32, 64), "int32")' for name in "ABC")
    random = np.random.default_rng(3)
    given = {
        "A": random.integers(-(2**31), 2**31, (32, 64)).astype(np.int32),
        "B": random.choice(np.array([-(2**20), -7, -2, 1, 3, 64], np.int32), (32, 64)),
    }
    new = migrated(gpu_file(params, body))
    assert (run(new, given)["C"] == reference(given["A"], given["B"])).all()


SCALARS: list[tuple[str, Callable[[int], int], str]] = [
    ("(bx * 16 - 40) // 16", lambda b: (b * 16 - 40) // 16, ">> 4"),
    ("(bx - 3) % 4", lambda b: (b - 3) % 4, "& 3"),
    ("(bx - 3) % 7", lambda b: (b - 3) % 7, "(bx + 4) % 7"),
    ("(bx * 5 - 9) // 3", lambda b: (b * 5 - 9) // 3, "(bx * 5) // 3 - 3"),
    ("T.ceildiv(bx * 3 - 20, 8)", lambda b: -(-(b * 3 - 20) // 8), ">> 3"),
    ("T.ceildiv(bx * 3 - 20, 7)", lambda b: -(-(b * 3 - 20) // 7), "// 7 - 2"),
    ("D[bx] // 8", lambda b: (b - 2) * 3 // 8, ">> 3"),
    ("D[bx] % 6", lambda b: (b - 2) * 3 % 6, "T.truncmod(D[bx], 6)"),
    ("(D[bx] // 8) % 3", lambda b: (b - 2) * 3 // 8 % 3, "(D[bx] >> 3)"),
    ("T.max(0, (bx - 3) // 2)", lambda b: max(0, (b - 3) // 2), "T.max(0, (bx - 3) // 2)"),
    ("bx // 2 + bx % 3", lambda b: b // 2 + b % 3, "bx // 2 + bx % 3"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("expression", "reference", "shown"), SCALARS, ids=[text for text, *_ in SCALARS])
@pytest.mark.parametrize("named", [False, True])
def test_indices(expression: str, reference: Callable[[int], int], shown: str, named: bool) -> None:
    """``X`` has 16 tiles before the one that index 0 means, so that every index lies inside."""
    let = f"where = {expression}" if named else ""
    body = f"""
    x = T.alloc_shared((16, 64), "float32")
    {let}
    T.copy(X[({"where" if named else expression}) * 16 + 256, 0], x)
    T.copy(x, C[bx * 16, 0])
    """
    params = 'X: T.Tensor((512, 64), "float32"), D: T.Tensor((8,), "int32"), C: T.Tensor((128, 64), "float32")'
    x = np.arange(512 * 64, dtype=np.float32).reshape(512, 64)
    new = migrated(gpu_file(params, body, launch="T.Kernel(8, threads=128) as bx"))
    found = run(new, {"X": x, "D": (np.arange(8, dtype=np.int32) - 2) * 3})["C"]
    for block in range(8):
        first = reference(block) * 16 + 256
        assert (found[block * 16 : block * 16 + 16] == x[first : first + 16]).all()
    assert shown in new


TURNS: list[tuple[str, str, Callable[[int, int], int], bool]] = [
    ("", "(bx * 16 - 40) // 16", lambda b, d: (b * 16 - 40) // 16, True),
    ("", "T.ceildiv(D[bx], 4)", lambda b, d: -(-d // 4), True),
    ("n = D[bx] // 4", "n", lambda b, d: d // 4, True),
    ("n = T.min(D[bx] // 4, T.ceildiv(bx - 2, 3))", "n * 2", lambda b, d: min(d // 4, -(-(b - 2) // 3)) * 2, True),
    ("n = T.ceildiv(T.ceildiv(D[bx], 2) * 3 - bx, 4)", "n", lambda b, d: -(-(-(-d // 2) * 3 - b) // 4), True),
    ("n = D[bx] // 4 if wide else D[bx] // 8", "n", lambda b, d: d // 4, True),
    ("", "1, D[bx] // 4", lambda b, d: d // 4 - 1, True),
    ("", "T.max(D[bx] // 3, -2)", lambda b, d: d // 3, True),
    ("", "2 - D[bx] // 3", lambda b, d: 2 - d // 3, False),
    ("", "D[bx] // 3 + 2", lambda b, d: d // 3 + 2, False),
    ("", "(D[bx] // 3) * (bx - 1)", lambda b, d: d // 3 * (b - 1), False),
    ("", "D[bx] // (bx - 2) if bx != 2 else 0", lambda b, d: d // (b - 2) if b != 2 else 0, False),
    ("", "-1, D[bx] // 3", lambda b, d: d // 3 + 1, False),
    ("n = D[bx] // 3\n    m = n + 2", "n + m", lambda b, d: 2 * (d // 3) + 2, False),
    ("", "D[bx] % 6", lambda b, d: d % 6, False),
]


@pytest.mark.parametrize(("before", "turns", "reference", "stays"), TURNS, ids=[f"{a}; {b}" for a, b, *_ in TURNS])
def test_a_number_of_turns(before: str, turns: str, reference: Callable[[int, int], int], stays: bool) -> None:
    """It stays where 0 and -1 turns are the same, and only there; every block adds 1 in each turn."""
    body = f"""
    x = T.alloc_shared((16, 64), "float32")
    T.copy(X[bx * 16, 0], x)
    {before}
    for k in T.serial({turns}):
        for i, j in T.Parallel(16, 64):
            x[i, j] = x[i, j] + 1.0
    T.copy(x, C[bx * 16, 0])
    """
    params = 'X: T.Tensor((128, 64), "float32"), D: T.Tensor((8,), "int32"), C: T.Tensor((128, 64), "float32")'
    old = gpu_file(params, body, launch="T.Kernel(8, threads=128) as bx")
    new = migrated(old.replace("import tilelang\n", "import tilelang\n\nwide = True\n", 1))
    for data in (np.arange(8) * 3 - 11, 9 - np.arange(8) * 4):
        found = run(new, {"X": np.zeros((128, 64), np.float32), "D": data.astype(np.int32)})["C"]
        expected = [max(0, reference(block, int(data[block]))) for block in range(8)]
        assert found[::16, 0].tolist() == expected
    assert (f"T.serial({turns})" in new and before in new) == stays


def test_a_block_runs_only_where_there_are_blocks() -> None:
    """In the loop over tasks the sizes of the grid, which come with the call, are at least 1."""
    body = """
    x = T.alloc_shared((16, 64), "float32")
    for task in T.serial(T.ceildiv(T.ceildiv(N[0], 16) * 2 - bx, 4)):
        at = task * 4 + bx
        T.copy(X[(at // T.ceildiv(N[0], 16) * T.ceildiv(N[0], 16) + at % T.ceildiv(N[0], 16)) * 16, 0], x)
        T.copy(x, C[at * 16, 0])
    """
    params = 'X: T.Tensor((128, 64), "float32"), N: T.Tensor((1,), "int32"), C: T.Tensor((128, 64), "float32")'
    new = migrated(gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx"))
    assert "at // T.ceildiv(N[0], 16)" in new
    assert "at % T.ceildiv(N[0], 16)" in new
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    assert (run(new, {"X": x, "N": np.array([49], np.int32)})["C"] == x).all()


def test_the_larger_of_two_numbers_says_nothing_of_one() -> None:
    body = """
    x = T.alloc_shared((16, 64), "float32")
    for task in T.serial(T.max(N[0], 2)):
        T.copy(X[(task // N[0] + 4) * 16, 0], x)
        T.copy(x, C[(bx * 2 + task) * 16, 0])
    """
    params = 'X: T.Tensor((128, 64), "float32"), N: T.Tensor((1,), "int32"), C: T.Tensor((128, 64), "float32")'
    new = migrated(gpu_file(params, body, launch="T.Kernel(4, threads=128) as bx"))
    assert "task // N[0]" not in new
    found = run(new, {"X": np.arange(128.0)[:, None] // 16 * np.ones((1, 64)), "N": np.array([-3], np.int32)})["C"]
    assert found[::16, 0].tolist() == [4, 3] * 4


def test_the_check_names_what_is_known_to_be_negative() -> None:
    body = 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[({}) * 16, 0], a)\nT.copy(a, O[cid * 16, 0])'
    one = "T.Kernel(8, threads=1, is_npu=True) as (cid)"
    assert errors(body.format("(cid - 3) % 8"), launch=one) == ["TL761"]
    assert errors(body.format("(cid + 3) % 8"), launch=one) == []
    assert errors(body.format("(cid - 3) & 7"), launch=one) == []
    assert "TL761" not in warnings(body.format("cid // 2 % 3"), launch=one)


GUARDED: list[tuple[str, bool]] = [
    ("s >= 0 and s % 2 == 0", True),
    ("s % 2 == 0 and s >= 0", True),
    ("(s >= 0) & (s % 2 == 0)", True),
    ("not (s < 0 or s % 2 == 1)", True),
    ("s > -1 and (s // 3 == 1 or s % 4 == 2)", True),
    ("T.if_then_else(s >= 0, s % 2, 0) == 1", True),
    ("s >= 0 or s % 2 == 0", False),
    ("s >= -2 and s % 2 == -1", False),
    ("s < 4 and s % 2 == 0 - 1", False),
    ("T.if_then_else(s >= 0, 1, s % 2) == 1", False),
    ("s >= 0 and cid >= 0 or (s - 1) % 3 == 1", False),
]


@pytest.mark.parametrize(("condition", "right"), GUARDED)
def test_a_condition_beside_the_division(condition: str, right: bool) -> None:
    """What a part of a conjunction is does not matter where another part does not hold."""
    body = f"""
    a = T.alloc_ub((16, 64), "float32")
    s = cid - 3
    if {condition}:
        T.copy(A[cid * 16, 0], a)
        T.copy(a, O[cid * 16, 0])
    """
    one = "T.Kernel(8, threads=1, is_npu=True) as (cid)"
    assert errors(body, launch=one) == ([] if right else ["TL761"])
    if right:
        assert "TL761" not in warnings(body, launch=one)


@pytest.mark.parametrize(("condition", "right"), GUARDED)
def test_conditions_on_a_gpu_hold_on_the_npu(condition: str, right: bool) -> None:
    body = f"""
    x = T.alloc_shared((16, 64), "float32")
    s = D[bx]
    if {condition.replace("cid", "bx")}:
        T.copy(X[bx * 16, 0], x)
        T.copy(x, C[bx * 16, 0])
    """
    params = 'X: T.Tensor((128, 64), "float32"), D: T.Tensor((8,), "int32"), C: T.Tensor((128, 64), "float32")'
    new = migrated(gpu_file(params, body, launch="T.Kernel(8, threads=128) as bx"))
    data = np.array([-5, -4, -3, -1, 0, 1, 4, 5], np.int32)
    found = run(new, {"X": np.ones((128, 64), np.float32), "D": data, "C": np.zeros((128, 64), np.float32)})["C"]

    class T:
        if_then_else = staticmethod(lambda c, a, b: a if c else b)

    expected = [eval(condition, {"T": T, "s": int(s), "cid": block}) for block, s in enumerate(data)]
    assert found[::16, 0].tolist() == [float(bool(e)) for e in expected]
