"""The table of element types, against rows typed by hand from the vendor's pages and assertions."""

from __future__ import annotations

import pytest

from tl2npu.dialects import ascend
from tl2npu.dialects.element_types import CASTS, OPERATORS, SIGNS, copies, copy_mode, known, takes

# "Add.md", "Abs.md", "And.md", "ShiftLeft.md", "Relu.md", "Duplicate.md", "Broadcast.md" for A2 and A3.
SAMPLES = [
    ("tile.add", "int8", False),
    ("tile.add", "int16", True),
    ("tile.add", "bfloat16", False),
    ("tile.abs", "int32", False),
    ("tile.abs", "float16", True),
    ("tile.div", "int32", False),
    ("tile.relu", "int32", True),
    ("tile.relu", "int16", False),
    ("tile.bitwise_and", "int32", False),
    ("tile.bitwise_and", "uint16", True),
    ("tile.bitwise_lshift", "int32", True),
    ("tile.fill", "int8", False),
    ("tile.fill", "bfloat16", True),
    ("tile.broadcast", "uint8", True),
    ("tile.broadcast", "int32", False),
    ("tile.select", "int32", False),
    ("reduce_max", "int32", False),
    ("tile.exp", "float32", True),
    ("tile.unheard_of", "int4", True),
]


@pytest.mark.parametrize(("name", "dtype", "there"), SAMPLES)
def test_operators(name: str, dtype: str, there: bool) -> None:
    assert takes(name, dtype) is there


def test_integers_are_compared_for_equality_alone() -> None:
    assert takes("tile.compare", "int32", "EQ")
    assert not takes("tile.compare", "int32", "GT")
    assert not takes("tile.compare", "int16", "EQ")


def test_every_row_names_an_operator_and_one_of_its_operands() -> None:
    for name, (operand, _) in OPERATORS.items():
        found = ascend.OPERATORS[name]
        assert operand in [param.name for param in found.params], name
    assert set(SIGNS.values()) <= OPERATORS.keys()


def test_copies_ask_for_a_mode() -> None:
    """common.h:267-277."""
    assert [copy_mode(*pair) for pair in (("float16", "float32"), ("uint8", "float16"), ("int32", "int16"))] == [
        "CAST_NONE",
        "CAST_RINT",
        "CAST_NONE",
    ]
    assert copies("float32", "bfloat16")
    assert not copies("uint8", "float16")
    assert not copies("int64", "int32")
    assert not copies("float32", "int8")
    assert copies("int8", "int8")


def test_no_pair_is_listed_without_a_mode_and_no_type_is_unheard_of() -> None:
    assert all(CASTS.values())
    assert all(known(dtype) == dtype for pair in CASTS for dtype in pair)
    assert known("half") == "float16"
    assert known("dtype") == ""
