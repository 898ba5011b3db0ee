"""A ``T.alloc_var`` with one value becomes a name for that value; others stay."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tests.passes.simulated import run
from tl2npu.passes.plain.assigned_once import name_values

PARAMS = "L: T.Tensor((3,), 'int32'), A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')"
COPY = """
a = T.alloc_shared((32, 64), "float32")
T.copy(A[first, 0], a)
for i, j in T.Parallel(32, 64):
    a[i, j] = a[i, j] * last
T.copy(a, B[first, 0])
"""
VARIABLES = """
first = T.alloc_var("int32")
last = T.alloc_var("int32")
first = L[bx]
last = first + L[bx + 1]
"""


def test_names_for_elements_and_what_is_computed_of_them() -> None:
    text = gpu_file(PARAMS, VARIABLES + COPY)
    lines = VARIABLES.strip().split("\n")
    assert after(name_values, text) == gpu_file(PARAMS, "\n".join(lines[2:]) + "\n" + COPY)
    rng = np.random.default_rng(0)
    shape = (64, 64)
    agree(text, {"L": np.array([0, 32, 64], np.int32), "A": rng.normal(size=shape).astype("float32")})


def test_a_value_of_another_type_is_converted_as_the_variable_did_it() -> None:
    params = PARAMS.replace("'int32'", "'int64'")
    new = after(name_values, gpu_file(params, VARIABLES + COPY))
    assert "first = T.cast(L[bx], 'int32')" in new
    assert "alloc_var" not in new


@pytest.mark.parametrize(
    "changed",
    [
        "first = first + 1\nlast = L[bx]",
        "last = L[bx]\nif bx > 0:\n    first = 0",
        "last = first\nfirst = L[bx]",
        "for k in T.serial(2):\n    first = L[k]\nlast = L[bx]",
    ],
)
def test_a_variable_that_changes_stays(changed: str) -> None:
    body = VARIABLES.split("last = first")[0] + changed + COPY
    assert 'first = T.alloc_var("int32")' in after(name_values, gpu_file(PARAMS, body))


def test_what_the_kernel_writes_is_not_read_later_than_before() -> None:
    body = VARIABLES + "L[bx] = 0" + COPY
    text = gpu_file(PARAMS, body)
    assert after(name_values, text) == text


def test_a_float_stays_a_tile_of_the_vector_unit() -> None:
    text = gpu_file(PARAMS, VARIABLES.replace('last = T.alloc_var("int32")', 'last = T.alloc_var("float32")') + COPY)
    assert 'last = T.alloc_var("float32")' in after(name_values, text)


ELEMENT = """
a = T.alloc_shared((32, 64), "float32")
w = T.alloc_shared((32,), {dtype!r})
for k in T.serial(2):
    T.copy(A[k * 32, 0], a)
    T.copy(W[k * 32], w)
    last = T.alloc_local([1], 'float32')
    last[0] = w[31]
    for i, j in T.Parallel(32, 64):
        a[i, j] = a[i, j] * T.exp(last[0] - w[i])
    {after}
    T.copy(a, B[k * 32, 0])
"""
WEIGHTED = PARAMS.replace("L: T.Tensor((3,), 'int32')", "W: T.Tensor((64,), 'float32')")


@pytest.mark.parametrize("dtype", ["'float32'", "dtype"])
def test_an_element_of_a_tile_is_read_where_the_variable_was(dtype: str) -> None:
    body = ELEMENT.format(dtype="float32", after="T.clear(w)").replace("([1], 'float32')", f"([1], {dtype})")
    text = gpu_file(WEIGHTED, body.replace("((32,), 'float32')", f"((32,), {dtype})"), args="dtype='float32'")
    new = after(name_values, text)
    assert "last" not in new
    assert "T.exp(w[31] - w[i])" in new
    rng = np.random.default_rng(0)
    agree(text, {"W": rng.normal(size=64).astype("float32"), "A": rng.normal(size=(64, 64)).astype("float32")})


@pytest.mark.parametrize(
    "settings",
    [
        {"dtype": "float16", "after": "T.clear(a)"},
        {"dtype": "float32", "after": "w[0] = 0.0\n    a[0, 0] = last[0]"},  # the tile is written before the last use
        {"dtype": "float32", "after": "last[0] = w[0]"},
    ],
)
def test_any_other_element_stays_in_its_variable(settings: dict[str, str]) -> None:
    text = gpu_file(WEIGHTED, ELEMENT.format(**settings))
    assert "last[0] = w[31]" in after(name_values, text)


ARMS = """
first = {alloc}
last = T.alloc_var("int32")
if whole:
    {first} = 0
elif shift is not None:
    {first} = T.max(L[bx], bx * shift)
else:
    {first} = L[bx + 1]
last = {first} + 2
"""


@pytest.mark.parametrize(
    "alloc", ['T.alloc_var("int32")', 'T.alloc_local([1], "int32")', 'T.alloc_local((1,), "int32")']
)
@pytest.mark.parametrize("args", ["whole=True, shift=4", "whole=False, shift=4", "whole=False, shift=None"])
def test_one_value_in_each_arm_that_python_chooses(alloc: str, args: str) -> None:
    first = "first" if "var" in alloc else "first[0]"
    text = gpu_file(PARAMS, ARMS.format(alloc=alloc, first=first) + COPY.replace("first", first), args=args)
    new = after(name_values, text)
    assert "alloc_var" not in new
    assert "alloc_local" not in new
    assert "first[0]" not in new
    agree(text, {"L": np.array([0, 32, 16], np.int32), "A": np.ones((64, 64), np.float32)})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("elif shift is not None:", "elif bx > 1:"),  # the device decides
        ("else:\n    first[0] = L[bx + 1]\n", ""),
        ("last = ", "first[0] = 3\nlast = "),
        ("first[0] = 0", "first[0] = shift * 0.5"),
        ("    first[0] = 0", "    first[0] = 0\n    first[0] = first[0] + 1"),
        ("last = first[0] + 2", "last = first[0] + 2\nT.fill(first, 0)"),
    ],
)
def test_any_other_number_of_values_is_none(old: str, new: str) -> None:
    body = ARMS.format(alloc='T.alloc_local([1], "int32")', first="first[0]")
    assert old in body
    text = gpu_file(PARAMS, body.replace(old, new) + COPY.replace("first", "first[0]"), args="whole=False, shift=4")
    assert 'first = T.alloc_local([1], "int32")' in after(name_values, text)


CHOICES = {
    "two arms": ("if bx > 0:\n    first = L[bx] - 32\nelse:\n    first = 32\n", [32, 0]),
    "a value before": ("first = L[bx] + 32\nif first >= 64:\n    first = 64 - first\n", [32, 0]),
    "one choice behind another": (
        "first = L[bx]\nif first > 8:\n    first = first - 24\nif first == 8:\n    first = 0\nelse:\n    first = 32\n",
        [32, 0],
    ),
}
CHOSEN = """
a = T.alloc_shared((32, 64), "float32")
T.copy(A[first, 0], a)
for i, j in T.Parallel(32, 64):
    a[i, j] = a[i, j] * 2.0
T.copy(a, B[bx * 32, 0])
"""


@pytest.mark.parametrize("loop", ["", "for k in T.serial(1):\n"])
@pytest.mark.parametrize(("given", "rows"), CHOICES.values(), ids=CHOICES)
def test_a_choice_of_values_is_one_value(given: str, rows: list[int], loop: str) -> None:
    body = given + CHOSEN.strip()
    text = gpu_file(PARAMS, 'first = T.alloc_var("int32")\n' + loop + (indent(body, "    ") if loop else body))
    new = after(name_values, text)
    assert new.count("first = ") == 1
    assert "if first" not in new
    values = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    made = agree(text, {"L": np.array([0, 32, 64], np.int32), "A": values})
    found = run(made, {"L": np.array([0, 32, 64], np.int32), "A": values})["B"]
    np.testing.assert_array_equal(found, 2 * np.concatenate([values[row : row + 32] for row in rows]))


@pytest.mark.parametrize(
    "given",
    [
        "if bx > 0:\n    first = 32\n",  # else what it was
        "if first > 0:\n    first = 32\nelse:\n    first = 0\n",
        "if bx > 0:\n    first = 32\n    last = 1\nelse:\n    first = 0\n",
        "first = 0\nlast = first\nif bx > 0:\n    first = 32\n",
        "first = 0\nfor k in T.serial(2):\n    if bx > k:\n        first = first + 16\n",
        "first = 0\nif last > 0:\n    first = 32\n",  # a variable that changes
        "first = 0\nif L[bx] > 0:\n    first = 32\nL[bx] = 1\n",  # read again behind the store
    ],
)
def test_any_other_choice_stays_a_variable(given: str) -> None:
    alloc = 'first = T.alloc_var("int32")\nlast = T.alloc_var("int32")\nlast = 0\nlast = last + 1\n'
    text = gpu_file(PARAMS, alloc + given + CHOSEN.strip())
    assert 'first = T.alloc_var("int32")' in after(name_values, text)
