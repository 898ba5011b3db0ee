"""``T.Parallel`` (facts 3); with ``threads=1``, where no row is split."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, ONE, PLAIN, STORE, TILES, errors, kernel

PARAMS = (
    'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), '
    'G: T.Tensor((32, 64), "float32"), W: T.Tensor((8, 8), "float32")'
)
EXTRA = """
s = T.alloc_ub((32,), "float32")
q = T.alloc_ub((32,), "float32")
one = T.alloc_ub((32, 1), "float32")
w = T.alloc_ub((64,), "float32")
n = T.alloc_ub((32, 64), "int16")
half = T.alloc_ub((32, 32), "float32")
"""


def value(text: str, **settings: object) -> list[str]:
    """The errors of ``b[i, j] = text`` over a whole tile."""
    return statement(f"for i, j in T.Parallel(32, 64):\n    b[i, j] = {text}", **settings)


def statement(text: str, **settings: object) -> list[str]:
    settings = {"launch": ONE, "params": PARAMS, **settings}
    return errors(kernel(TILES, EXTRA, LOAD, text, STORE), **settings)


@pytest.mark.parametrize(
    "text",
    [
        "a[i, j] - b[i, j] * 2.0 + a[i, j]",
        "(a[i, j] - s[i]) * q[i] * w[j] + w[j]",
        "(a[i, j] - b[i, j]) * one[i, 0]",
        "w[j] - a[i, j]",
        "w[j] * a[i, j] + s[i]",
        "T.exp(a[i, j])",
        "T.sqrt(a[i, j])",
        "T.max(a[i, j], b[i, j])",
        "T.max(a[i, j], 0.0)",
        "-a[i, j]",
        "2.0 * a[i, j]",
        "1.0 - a[i, j]",
        "0.0",
        "a[i, j]",
        "G[i, j]",
        "s[i]",
        "s[i] * 2.0",
        "T.cast(a[i, j], 'float32')",
    ],
)
def test_right_values(text: str) -> None:
    assert value(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s[i] - a[i, j]", ["TL890"]),
        ("s[i] * a[i, j]", ["TL890"]),
        ("s[i] * a[i, j] + b[i, j]", ["TL890"]),
        ("one[i, 0] / a[i, j]", ["TL890"]),
        ("b[i, j] + s[i] * a[i, j]", ["TL890"]),
        ("(s[i] * 2.0) * a[i, j]", ["TL890"]),
        ("s[i] * w[0]", ["TL890"]),  # not every operand is a row or a column vector
        ("a[i, j] - s[i] * 2.0", ["TL890"]),
        ("a[i, j] - s[i] * q[i]", ["TL890"]),
        ("a[i, j] * (one[i, 0] + 1.0)", ["TL890"]),
        ("a[i, j] + T.exp(s[i])", ["TL890"]),
        ("a[i, j] + w[0] * 2.0", ["TL890"]),
        ("w[j] * s[i]", ["TL890"]),  # of the second vector one element is taken
        ("w[j] - s[i]", ["TL890"]),
        ("s[i] * q[i]", ["TL890"]),
        ("T.exp(a[i, j] - b[i, j])", ["TL896"]),
        ("T.exp(a[i, j] * 2.0)", ["TL896"]),
        ("T.exp(a[i, j] - s[i])", ["TL896"]),
        ("T.exp2(a[i, j])", ["TL896"]),
        ("T.tanh(a[i, j])", ["TL896"]),
        ("T.max(a[i, j], 1.5)", ["TL896"]),
        ("T.min(a[i, j], 0.0)", ["TL896"]),
        ("T.max(a[i, j], s[i])", ["TL896"]),
        ("T.if_then_else(j < 5, a[i, j], b[i, j])", ["TL871"]),
        ("T.Select(j < 5, a[i, j], b[i, j])", ["TL871"]),
        ("a[i, j] + G[i, j]", ["TL893"]),
    ],
)
@pytest.mark.parametrize("launch", [ONE, PLAIN])
def test_wrong_values(text: str, found: list[str], launch: str) -> None:
    got = value(text, launch=launch)
    assert [code for code in got if code != "TL897"] == found


def test_an_augmented_store_reads_its_target_first() -> None:
    assert statement("for i, j in T.Parallel(32, 64):\n    b[i, j] *= s[i]") == []
    assert statement("for i in T.Parallel(32):\n    s[i] += q[i]") == []
    assert statement("for i, j in T.Parallel(32, 64):\n    b[i, j] += s[i] * a[i, j]") == ["TL890"]


def test_the_value_of_a_single_row_is_not_spread() -> None:
    for text, found in {"s[i]": ["TL890"], "s[i] * 2.0": ["TL890"], "w[j]": [], "w[j] * s[i]": []}.items():
        assert statement(f"for i, j in T.Parallel(1, 64):\n    b[i, j] = {text}") == found


def test_the_value_of_what_a_call_makes_a_single_row_is_not_spread() -> None:
    """The extent is 1 by a default, or by a call of the file; else the vector is spread as it should be."""
    body = "for i, j in T.Parallel(n_rows, 64):\n    b[i, j] = s[i]"
    assert statement(body, args="n_rows=1", tail="factory()") == ["TL890"]
    assert statement(body, args="n_rows", tail="factory(1)") == ["TL890"]
    assert "TL890" not in statement(body, args="n_rows", tail="factory(32)")


def test_row_vectors_alone_are_tiles_of_their_own() -> None:
    assert statement("for i in T.Parallel(32):\n    s[i] = q[i] - s[i]") == []
    assert statement("for i in T.Parallel(32):\n    s[i] = T.max(s[i], q[i])") == []


def test_bits_with_a_constant() -> None:
    assert statement("for i, j in T.Parallel(32, 64):\n    n[i, j] = n[i, j] & 15") == ["TL896"]
    assert statement("for i, j in T.Parallel(32, 64):\n    n[i, j] = n[i, j] & n[i, j]") == []


def test_a_global_scalar() -> None:
    assert value("a[i, j] * W[0, 0]") == []
    assert value("a[i, j] * W[0, 0]", jit="out_idx=[1], target='pto'") == ["TL893"]
    bound = "g = W[0, 0]\nfor i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j] * g"
    assert statement(bound, jit="out_idx=[1], target='pto'") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for i, j in T.Parallel(32, 32):\n    b[i, j] = a[i, j] * 2.0", ["TL891"]),
        ("for i, j in T.Parallel(32, 32):\n    b[i, j] = a[i, j + 32]", ["TL891"]),
        ("for i, j in T.Parallel(32, 32):\n    half[i, j] = a[i, j + 32] * 2.0", ["TL891"]),
        ("for i, j in T.Parallel(32, 32):\n    half[i, j] = half[i, j] * 2.0", []),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = a[i, j] * 2.0", []),
        ("for i, j in T.Parallel(32, 32):\n    half[i, j] = 1.0 - a[i, j]", []),
        ("for i in T.serial(32):\n    for j in T.Parallel(32):\n        b[i, j] = a[i, j] * 2.0", []),
    ],
)
def test_parts_of_the_columns(text: str, found: list[str]) -> None:
    assert statement(text) == found


def test_parts_of_the_columns_by_name() -> None:
    body = """
    p = T.alloc_ub((bm, bn), "float32")
    for i, j in T.Parallel(bm, bn // 2):
        p[i, j] = p[i, j] * 2.0
    """
    assert errors(body, launch=ONE, args="bm, bn") == ["TL891"]
    assert errors(body.replace(" // 2", ""), launch=ONE, args="bm, bn") == []
    assert errors(body.replace("bn // 2", "cols"), launch=ONE, args="bm, bn, cols") == []
    other = body.replace("bn // 2", "cols")
    assert errors(other, launch=ONE, args="bm, bn, cols", tail="factory(32, 64, 32)") == ["TL891"]


def test_three_axes() -> None:
    cube = 't = T.alloc_ub((4, 8, 64), "float32")\n'
    three = "for i, j, k in T.Parallel(4, 8, 64):\n    t[i, j, k] = t[i, j, k] * 2.0"
    nested = "for i in T.Parallel(4):\n    for j, k in T.Parallel(8, 64):\n        t[i, j, k] = t[i, j, k] * 2.0"
    serial = "for i in T.serial(4):\n    for j, k in T.Parallel(8, 64):\n        t[i, j, k] = t[i, j, k] * 2.0"
    assert statement(cube + three) == ["TL871"]
    assert statement(cube + nested) == ["TL871"]
    assert statement(cube + serial) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = a[i, j]", []),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = a[i, j]", ["TL887"]),
        ("for i, j in T.Parallel(16, 64):\n    b[i + 16, j] = a[i, j]", ["TL887"]),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = a[i, j] * 2.0", []),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = a[i, j] * 1.0", ["TL887"]),
        ("for i, j in T.Parallel(16, 64):\n    b[i, j] = 0.0 + a[i, j]", ["TL887"]),
        ("for i in T.Parallel(16):\n    s[i + 16] = q[i]", ["TL887"]),
        ("for i in T.Parallel(16):\n    s[i] = q[i + 16]", []),
        ("for i, j in T.Parallel(32, 64):\n    b[i, j] = s[i]", []),
        ("for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] * s[i]\n    b[i, j] = a[i, j]", ["TL887"]),
        ("for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] * 2.0\n    b[i, j] = a[i, j]", []),
    ],
)
def test_copies(text: str, found: list[str]) -> None:
    assert statement(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for k in T.serial(4):\n    for i in T.Parallel(32):\n        s[i] = s[i] + q[i]", ["TL888"]),
        ("for k in T.serial(2):\n    for i in T.Parallel(32):\n        s[i] = s[i] + q[i]", ["TL888"]),
        ("for k in T.serial(1):\n    for i in T.Parallel(32):\n        s[i] = s[i] + q[i]", []),
        ("for k in T.serial(32):\n    for j in T.Parallel(64):\n        b[k, j] = a[k, j] + a[k, j]", []),
        ("for k in T.serial(4):\n    q[k] = 1.0\n    for i in T.Parallel(32):\n        s[i] = s[i] + q[i]", []),
    ],
)
def test_a_vector_in_a_serial_loop(text: str, found: list[str]) -> None:
    assert statement(text) == found


@pytest.mark.parametrize(
    ("loop", "text", "found"),
    [
        ("i", "s[i] = a[i, 8] * 2.0", True),
        ("i", "s[i] = a[i, i] * 2.0", True),
        ("i", "s[i] = T.exp(a[i, 8])", True),
        ("i", "s[i] = w[2 * i] * 2.0", True),
        ("i", "s[i] = w[i // 2] + s[i]", True),
        ("i", "s[i] = w[i % 8] + s[i]", True),
        ("i", "s[i] = w[2 * i]", True),
        ("i", "w[2 * i] = s[i] + s[i]", True),
        ("i", "s[i] = w[i + 32] * 2.0", False),
        ("i", "s[i] = one[i, 0] * 2.0", False),
        ("i", "one[i, 0] = s[i] * 2.0", False),
        ("i", "s[i] = s[i] * q[0]", False),
        ("i, j", "b[i, j] = a[i // 2, j] * 2.0", True),
        ("i, j", "b[i, j] = a[31 - i, j] * 2.0", True),
        ("i, j", "b[i, j] = a[i, j % 8] * 2.0", True),
        ("i, j", "b[31 - i, j] = a[i, j] * 2.0", True),
        ("i, j", "b[i, j] = a[i, j] + w[j // 2]", True),
        ("i, j", "b[i, j] = a[i // 2, j]", True),
        ("i, j", "b[i, j] = a[i, j] + s[31 - i]", False),
        ("i, j", "b[i, j] = a[i, j] + a[i, i]", False),
        ("i, j", "b[i, j] = A[cid * 32 + i, j]", False),
        ("i, j", "b[i, j] = A[cid * 32 + 31 - i, j]", True),
        ("i, j", "O[cid * 32 + 31 - i, j] = a[i, j]", True),
    ],
)
def test_an_instruction_takes_elements_in_order(loop: str, text: str, found: bool) -> None:
    """Each was lowered for ``pto`` and executed: where nothing is found it was right."""
    extents = "32" if loop == "i" else "32, 64"
    assert ("TL784" in statement(f"for {loop} in T.Parallel({extents}):\n    {text}")) == found


def test_a_column_that_is_stored_has_no_instruction() -> None:
    """Lowered: "Unresolved call Op(tir.exp)" for the column, an instruction for the vector."""
    assert statement("for i in T.Parallel(32):\n    one[i, 0] = T.exp(one[i, 0])") == ["TL733"]
    assert statement("for i in T.Parallel(32):\n    s[i] = T.exp(s[i])") == []
