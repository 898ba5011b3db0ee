"""TL158: only what needs a value of the row or column runs row by row."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of
from tests.passes.gpu.test_elementwise import M, N, kernel, lines, values

INDICES = 'O: T.Tensor((64, 64), "float32")'


def body(statements: str) -> str:
    """What the loops over the tile are written as, from the first one to the store."""
    text = kernel(f"for i, j in T.Parallel({M}, {N}):\n{textwrap.indent(textwrap.dedent(statements), '    ')}")
    new = agree(text, values(), threads="1")
    first = new.index("for i, j in T.Parallel")
    return textwrap.dedent(" " * 12 + new[first : new.index("            T.copy(o, O)")]).rstrip()


@pytest.mark.parametrize(
    ("statements", "loops"),
    [
        ("o[i, j] = x[i, j] - r[i]\no[i, j] = o[i, j] * soft", [["x - r"], ["o * soft"]]),
        ("x[i, j] = x[i, j] * x[i, j]\no[i, j] = x[i, j] * w[j]", [["x * x"], ["x * w"]]),
        ("x[i, j] *= z[i, j]\no[i, j] = x[i, j] + z[i, j]", [["x z", "x + z"]]),
        ("x[i, j] = x[i, j] - r[i]\no[i, j] = x[i, j] * s[i]", [["x - r", "x * s"]]),
        ("o[i, j] = (x[i, j] * soft - r[i]) * s[i]", [["x * soft"], ["(o - r) * s"]]),
        ("o[i, j] = (x[i, j] - r[i]) * z[i, j] + v[j]", [["x - r"], ["o * z"], ["o + v"]]),
        ("o[i, j] = (x[i, j] - r[i]) * (x[i, j] - r[i])", [["x - r"], ["o * o"]]),
        ("o[i, j] = x[i, j] * (s[i] * w[j])", [["x * (w * s)"]]),  # one loop, without a tile for the product
        ("o[i, j] = z[i, j] * soft * (s[i] * w[j])", [["z * soft"], ["o * (w * s)"]]),
        ("o[i, j] = x[i, j] * (w[j] + 1.0)", [["x * w"]]),
    ],
)
def test_loops(statements: str, loops: list[list[str]]) -> None:
    found = re.sub(r"\[[ij, ]+\]", "", body(statements))
    blocks = [block.strip().splitlines() for block in found.split(f"for i, j in T.Parallel({M}, {N}):")[1:]]
    assert [[re.sub(r"^.* = |\*= ", "", line.strip()) for line in block] for block in blocks] == loops


def test_steps_are_made_in_the_tile_of_their_operand() -> None:
    """Two steps before the sum: nothing reads ``x`` again."""
    assert lines(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] += T.max(x[i, j], 0.0) * s[i]") == [
        "x[i, j] = T.max(x[i, j], 0.0)",
        "x[i, j] = x[i, j] * s[i]",
        "o[i, j] += x[i, j]",
    ]


def test_an_operand_is_not_overwritten() -> None:
    """``o`` is read again, so that the difference needs a tile of its own."""
    found = lines(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = (o[i, j] - r[i]) * z[i, j] / o[i, j]")
    assert found[0] == "o_minus_r[i, j] = o[i, j] - r[i]"


@pytest.mark.parametrize(
    ("value", "function"),
    [
        ("T.exp(r[i] - w[j])", "T.exp(o[i, j])"),
        ("T.exp2(r[i] * 1.44269504 - w[j] * 1.44269504)", "T.exp(o[i, j])"),
        ("T.abs((r[i] - w[j]) * 2.0)", None),
        ("T.exp(r[i] - w[j] * 0.5)", "T.exp(o[i, j])"),
        ("T.exp((r[i] * 0.25) * (w[j] * 0.25))", "T.exp(o[i, j])"),
        ("T.exp((r[i] * 0.25) / (w[j] * 0.25 + 9.0))", "T.exp(o[i, j])"),
    ],
)
def test_of_a_difference_of_vectors_nothing_is_negated(value: str, function: str | None) -> None:
    """That of the rows is spread, that of the columns is taken from it: a person would write it so. A factor of both
    is one of the difference, and not of a product."""
    found = lines(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = {value}")
    assert any(line in found for line in ("o[i, j] = r[i]", "o[i, j] = r_scaled[i]"))
    assert not any("-1.0" in line or "-0.5" in line for line in found)
    assert function is None or any(function in line for line in found)


def test_one_row_has_no_loop() -> None:
    text = gpu_file(
        'X: T.Tensor((1, 64), "float32"), S: T.Tensor((1,), "float32"), O: T.Tensor((1, 64), "float32")',
        """
        x = T.alloc_fragment((1, 64), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(X, x)
        T.copy(S, s)
        for i, j in T.Parallel(1, 64):
            x[i, j] = (x[i, j] - s[i]) * 2.0
        T.copy(x, O)
        """,
        launch="T.Kernel(1, threads=128) as bx",
    )
    assert "x[i, j] = (x[i, j] - s[i]) * 2.0" in (result_of(text).new_text or "")


def test_a_single_element_is_read_once() -> None:
    """In a loop, the compiler would read it and start an instruction for every row."""
    assert lines(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = (x[i, j] - r[i]) * s[3] * 2.0") == [
        "o[i, j] = x[i, j] - r[i]",
        "T.tile.mul(o, o, s[3])",
        "o[i, j] = o[i, j] * 2.0",
    ]


def test_it_is_reported() -> None:
    text = kernel(f"for i, j in T.Parallel({M}, {N}):\n    o[i, j] = x[i, j] - r[i]\n    o[i, j] *= soft")
    assert "TL158" in {change.code for change in result_of(text).changes}


def test_a_difference_of_indices_is_one_tile_for_all_turns() -> None:
    """|row - column| of every turn: the tile of differences is made before the loop, the rest is a number."""
    text = gpu_file(
        INDICES,
        """
        o = T.alloc_fragment((64, 64), "float32")
        T.clear(o)
        for k in T.serial(3):
            for i, j in T.Parallel(64, 64):
                o[i, j] += T.abs((bx * 64 + i) - (k * 32 + j)) * 0.5
        T.copy(o, O)
        """,
        launch="T.Kernel(1, threads=128) as bx",
    )
    new = agree(text, {})
    loop = new[new.index("for k in T.serial") :]
    assert "o_abs[i, j] = column_minus_row[i, j] * -1.0 + " in loop
    assert "index[" not in loop
