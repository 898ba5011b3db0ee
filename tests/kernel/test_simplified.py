"""What the compiler makes of arithmetic: what is expected was read in the text that it generates (95acbd7f)."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.checks.support import ONE, errors
from tl2npu.kernel.expressions import code
from tl2npu.kernel.simplified import simplified

COPIES = ["r[i] - 0", "r[i] + 0", "0 + r[i]", "r[i] * 1", "1 * r[i]", "r[i] + 1 - 1", "r[i] - (r[i] - r[i])"]
COPIES += ["r[i] + q[i] * 0", "r[i] + q[i] - q[i]", "(0 + r[i]) * 1 - 0"]
OF_FLOATS = ["r[i] / 1", "r[i] / 1.0", "r[i] * 1.0", "r[i] - 0.0", "0.0 + r[i]"]
OF_INTEGERS = ["r[i] // 1", "-(-r[i])"]
OTHERS = ["r[i] - 1", "r[i] * 2 * 0.5", "0 - r[i]", "1 / r[i]", "r[i] * 0.5"]


def made(text: str, *, of_integers: bool) -> str:
    return code(simplified(cst.parse_expression(text), of_integers=of_integers))


@pytest.mark.parametrize("of_integers", [False, True])
def test_plain_copies(of_integers: bool) -> None:
    for text in COPIES:
        assert made(text, of_integers=of_integers) == "r[i]", text
    for text in OTHERS:
        assert made(text, of_integers=of_integers) == text


def test_a_float_makes_floats_of_integers() -> None:
    for text in OF_FLOATS:
        assert made(text, of_integers=False) == "r[i]", text
    for text in OF_FLOATS[1:]:
        assert made(text, of_integers=True) == text
    for text in OF_INTEGERS:
        assert made(text, of_integers=True) == "r[i]", text
    assert made("-(-r[i])", of_integers=False) == "-(-r[i])"  # two multiplications by -1.0


def test_numbers() -> None:
    for text in ("r[i] * 0", "0 * r[i]", "0 / r[i]", "0 // r[i]", "r[i] - r[i]"):
        assert made(text, of_integers=False) == "0", text


SHORT = """
r = T.alloc_ub((12,), "{dtype}")
s = T.alloc_ub((12,), "{dtype}")
for i in T.Parallel(12):
    {text}
"""


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_what_is_a_copy_moves_whole_blocks(dtype: str) -> None:
    """48 bytes are no whole blocks: a copy drops the last 16, an instruction has a count of elements."""
    zero, one = ("0.0", "1.0") if dtype == "float32" else ("0", "1")
    for value in ("r[i]", f"r[i] - {zero}", f"r[i] + {zero}", f"r[i] * {one}", "r[i] * scale", "r[i] + (scale - 1)"):
        body = SHORT.format(dtype=dtype, text=f"s[i] = {value}")
        assert errors(body, launch=ONE, factory="scale = 1\n") == ["TL700"], value
    for value in ("r[i] - 1", "r[i] + s[i]", "r[i] * scale"):
        body = SHORT.format(dtype=dtype, text=f"s[i] = {value}")
        assert errors(body, launch=ONE, factory="scale = 2\n") == [], value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T.max(q[i], r[i]) - r[i]", "T.max(q[i] - (r[i]), 0)"),
        ("T.min(r[i], q[i]) - r[i]", "T.min(q[i] - (r[i]), 0)"),
        ("r[i] - T.min(q[i], r[i])", "T.max(r[i] - (q[i]), 0)"),
        ("r[i] - max(q[i], r[i])", "min(r[i] - (q[i]), 0)"),
        ("(r[i] + 5) - T.min(q[i], r[i])", "T.max((r[i] + 5) - (q[i]), 5)"),
        ("T.max(q[i], r[i]) - r[i] + 1", "T.max(0, q[i] - (r[i])) + 1"),
        ("T.max(q[i], r[i]) - q[i] * 2", "T.max(q[i], r[i]) - q[i] * 2"),
        ("T.max(q[i], r[i]) + r[i]", "T.max(q[i], r[i]) + r[i]"),
    ],
)
def test_differences_with_a_maximum(text: str, expected: str) -> None:
    """Of int32 and int64 only, in which TVM computes indices; a part of an expression has the number in front."""
    assert code(simplified(cst.parse_expression(text), of_integers=True, of_indices=True)) == expected
    assert code(simplified(cst.parse_expression(text), of_integers=True)) == text


@pytest.mark.parametrize(
    ("value", "dtype", "told"),
    [
        ("r[i] - T.min(s[i], r[i])", "int32", ["TL896"]),
        ("T.max(s[i], r[i]) - s[i]", "int32", ["TL896"]),
        ("T.max(s[i], r[i]) - s[i] + 1", "int32", []),
        ("T.max(s[i], r[i]) - s[i]", "int16", []),
        ("T.max(s[i], r[i]) - s[i]", "float32", []),
        ("s[i] >> r[i]", "int32", ["TL896"]),
        ("s[i] << (r[i] + r[i])", "int16", ["TL896"]),
        ("s[i] << 2", "int32", []),
        ("T.max(s[i], 3)", "int16", []),
        ("~(s[i] + r[i])", "int32", []),
        ("~s[i]", "int16", []),
        ("~s[i]", "int32", ["TL710"]),
    ],
)
def test_what_the_compiler_dies_of(value: str, dtype: str, told: list[str]) -> None:
    """95acbd7f, a kernel for each line; a number beside 16 bits, and a sum in ``~``, make loops over the elements."""
    body = SHORT.replace("(12", "(64").format(dtype=dtype, text=f"s[i] = {value}")
    assert errors(body, launch=ONE) == told
