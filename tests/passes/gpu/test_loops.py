"""Loops in the forms that the NPU's front end knows."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tests.passes.simulated import run
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.plain.branches.conditions import to_python
from tl2npu.passes.plain.loops.normal import normalise

PARAMS = "A: T.Tensor((32, 16), 'float32'), B: T.Tensor((32, 16), 'float32')"
START = "a = T.alloc_fragment((32, 16), 'float32')\ns = T.alloc_fragment((32,), 'float32')\nT.copy(A, a)\nT.clear(s)\n"
END = "\nT.copy(a, B)"


def kernel(body: str, args: str = "") -> str:
    whole = START + textwrap.dedent(body).strip("\n") + END
    return gpu_file(PARAMS, whole, launch="T.Kernel(1, threads=128) as bx", args=args)


def same(old: str, new: str, args: str = "", values: tuple[int, ...] = ()) -> None:
    """The loops come out as expected and compute the same."""
    before, expected = kernel(old, args), kernel(new, args)
    assert after(normalise, before) == expected
    inputs = {"A": np.random.default_rng(5).standard_normal((32, 16)).astype(np.float32)}
    found = [run(text, inputs, args=values)["B"] for text in (before, expected)]
    np.testing.assert_array_equal(found[1], found[0])
    assert not np.array_equal(found[0], inputs["A"])


ROW = "a[k, 0] = a[k, 0] + k"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.Serial(32)", "T.serial(32)"),
        ("T.Unroll(32)", "T.unroll(32)"),
        ("T.unroll(32, explicit=False, unroll_factor=4)", "T.unroll(32)"),
        ("T.unroll(bx + 32)", "T.serial(bx + 32)"),
        ("T.Unroll(bx, 32)", "T.serial(bx, 32)"),
        ("T.unroll(bx * 2, bx * 2 + 32)", "T.unroll(bx * 2, bx * 2 + 32)"),
        ("T.unroll(bx + 32, explicit=True)", "T.serial(bx + 32)"),
        ("T.serial(4, 32, 1)", "T.serial(4, 32)"),
        ("range(0, 32, 1)", "range(0, 32)"),
        ("T.serial(0, 32, step=1)", "T.serial(0, 32)"),
        ("T.Vectorized(32)", "T.Parallel(32)"),
        ("T.vectorized(32)", "T.Parallel(32)"),
    ],
)
def test_spelling(old: str, new: str) -> None:
    same(f"for k in {old}:\n    {ROW}", f"for k in {new}:\n    {ROW}")


@pytest.mark.parametrize(
    ("old", "count", "value"),
    [
        ("range(0, 32, 4)", "range(8)", "k_step * 4"),
        ("T.serial(0, 30, 4)", "T.serial(8)", "k_step * 4"),
        ("T.serial(3, 30, step=4)", "T.serial(7)", "3 + k_step * 4"),
        ("range(31, -1, -1)", "range(32)", "31 - k_step"),
        ("T.serial(31, 2, -3)", "T.serial(10)", "31 - k_step * 3"),
        ("range(0, 32, n)", "range(T.ceildiv(32, n))", "k_step * n"),
        ("range(n, 32 - n, n * 2)", "range(T.ceildiv(32 - n - n, n * 2))", "n + k_step * (n * 2)"),
        ("T.unroll(bx, 32, 8)", "T.serial(T.ceildiv(32 - bx, 8))", "bx + k_step * 8"),
    ],
)
def test_steps(old: str, count: str, value: str) -> None:
    same(
        f"for k in {old}:\n    # a row\n    {ROW}",
        f"for k_step in {count}:\n    k = {value}\n    # a row\n    {ROW}",
        "n=3",
        (3,),
    )


def test_three_axes() -> None:
    params = "A: T.Tensor((4, 8, 16), 'float32'), B: T.Tensor((4, 8, 16), 'float32')"
    body = "a = T.alloc_fragment((4, 8, 16), 'float32')\nT.copy(A, a)\n{}\nT.copy(a, B)"
    old = "for x, y, z in T.Parallel(4, 8, 16):\n    a[x, y, z] += x * y - z  # signs"
    new = "for x in T.serial(4):\n    for y, z in T.Parallel(8, 16):\n        a[x, y, z] += x * y - z  # signs"
    launch = "T.Kernel(1, threads=128) as bx"
    before, expected = (gpu_file(params, body.format(text), launch=launch) for text in (old, new))
    assert after(normalise, before) == expected
    inputs = {"A": np.ones((4, 8, 16), np.float32)}
    np.testing.assert_array_equal(run(before, inputs)["B"], run(expected, inputs)["B"])


def test_parallel_inside_parallel() -> None:
    old = """
    for i in T.Parallel(32):
        for j in T.Parallel(16):
            a[i, j] = a[i, j] * 2
    """
    new = """
    for i, j in T.Parallel(32, 16):
        a[i, j] = a[i, j] * 2
    """
    same(old, new)


def test_serial_inside_parallel_stands_outside() -> None:
    old = """
    for i in T.Parallel(32):
        s[i] = 1
        # the sum of a row
        for k in T.serial(16):
            s[i] += a[i, k]
        a[i, 0] = s[i]
    """
    new = """
    for i in T.Parallel(32):
        s[i] = 1
    # the sum of a row
    for k in T.serial(16):
        for i in T.Parallel(32):
            s[i] += a[i, k]
    for i in T.Parallel(32):
        a[i, 0] = s[i]
    """
    same(old, new)


def test_vectorised_loop_inside_parallel() -> None:
    old = """
    for i in T.Parallel(32):
        for v in T.vectorized(16):
            a[i, v] = a[i, v] + i
    """
    new = """
    for i, v in T.Parallel(32, 16):
        a[i, v] = a[i, v] + i
    """
    same(old, new)


def test_assignments_stand_where_they_are_used() -> None:
    old = """
    for i in T.Parallel(32):
        row = i * 2
        other = i + 1
        s[i] = other
        for k in T.serial(16):
            a[i, k] += row
    """
    new = """
    for i in T.Parallel(32):
        other = i + 1
        s[i] = other
    for k in T.serial(16):
        for i in T.Parallel(32):
            row = i * 2
            a[i, k] += row
    """
    same(old, new)


def test_two_levels() -> None:
    old = """
    for i in T.Parallel(32):
        for k in T.serial(4):
            for j in T.Parallel(4):
                a[i, k * 4 + j] += k
    """
    new = """
    for k in T.serial(4):
        for i, j in T.Parallel(32, 4):
            a[i, k * 4 + j] += k
    """
    same(old, new)


@pytest.mark.parametrize(
    ("test", "opposite"),
    [
        ("k > 3", "k <= 3"),
        ("k == bx", "k != bx"),
        ("not (k < 2)", "(k < 2)"),
        ("k > 3 and k < 9", "not (k > 3 and k < 9)"),
    ],
)
def test_continue(test: str, opposite: str) -> None:
    old = f"for k in T.serial(32):\n    # skip\n    if {test}:\n        continue\n    {ROW}\n    a[k, 1] = 3"
    new = f"for k in T.serial(32):\n    # skip\n    if {opposite}:\n        {ROW}\n        a[k, 1] = 3"
    same(old, new)


def test_continue_after_work() -> None:
    old = f"for k in T.serial(32):\n    if k > 3:\n        a[k, 1] = 2\n        continue\n    {ROW}"
    new = f"for k in T.serial(32):\n    if k > 3:\n        a[k, 1] = 2\n    else:\n        {ROW}"
    same(old, new)


def test_choices_at_run_time() -> None:
    old = """
    last = 32 if flag else 16
    first = 0 if bx > 0 else 2
    for k in T.serial(first, last):
        a[k, 0] = a[k, 0] if flag and k > 5 else (1.0 if k > 3 else a[k, 1])
    """
    new = """
    last = 32 if flag else 16
    first = T.if_then_else(bx > 0, 0, 2)
    for k in T.serial(first, last):
        a[k, 0] = T.if_then_else(flag and k > 5, a[k, 0], T.if_then_else(k > 3, 1.0, a[k, 1]))
    """
    same(old, new, "flag=True")


BUILDER = """
# the last one is special
with T.If(bx + 1 < 2):
    with T.Then():
        # all rows
        for k in T.serial(32):
            a[k, 0] = 1.0
    with T.Else():
        with T.If(s[0] > 0.0), T.Then():  # nothing else
            a[0, 0] = 2.0
"""
AS_IF = """
# the last one is special
if bx + 1 < 2:
    # all rows
    for k in T.serial(32):
        a[k, 0] = 1.0
else:
    if s[0] > 0.0:  # nothing else
        a[0, 0] = 2.0
"""


def test_branches_of_the_builder() -> None:
    before, expected = kernel(BUILDER), kernel(AS_IF)
    assert after(to_python, before) == expected
    inputs = {"A": np.random.default_rng(5).standard_normal((32, 16)).astype(np.float32)}
    found = [run(text, inputs)["B"] for text in (before, expected)]
    np.testing.assert_array_equal(found[1], found[0])
    assert (found[0][:, 0] == 1.0).all()


def test_a_branch_without_else_whose_condition_is_long() -> None:
    old = """
    with T.If(
        T.And(bx < 2, bx >= 0),
    ):  # noqa: SIM117
        with T.Then():
            a[0, 0] = 1.0
    """
    new = """
    if T.And(bx < 2, bx >= 0):
        a[0, 0] = 1.0
    """
    assert after(to_python, kernel(old)) == kernel(new)


@pytest.mark.parametrize(
    "body",
    [
        "with T.If(bx < 2):\n    a[0, 0] = 1.0\n    with T.Then():\n        a[0, 0] = 2.0",
        "with T.If(bx < 2):\n    with T.Else():\n        a[0, 0] = 2.0",
        "with T.Then():\n    a[0, 0] = 2.0",
        "with T.If(bx < 2) as c:\n    with T.Then():\n        a[0, 0] = 2.0",
    ],
)
def test_other_blocks_are_no_branches(body: str) -> None:
    assert after(to_python, kernel(body)) == kernel(body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.Pipelined(32, num_stages=2) if n > 1 else T.serial(32)", "T.serial(32)"),
        ("T.serial(0, n * 4) if n > 1 else T.unroll(4 * n)", "T.serial(0, n * 4) if n > 1 else T.unroll(4 * n)"),
        ("T.serial(n * 4) if n > 1 else T.unroll(4 * n)", "T.serial(n * 4)"),
        ("T.serial(32) if n > 1 else T.serial(16)", "T.serial(32) if n > 1 else T.serial(16)"),
        ("T.Parallel(32) if n > 1 else T.serial(32)", "T.Parallel(32) if n > 1 else T.serial(32)"),
    ],
)
def test_a_choice_of_loops(old: str, new: str) -> None:
    text = kernel(f"for k in {old}:\n    {ROW}", "n=8")
    assert after(to_python, text) == kernel(f"for k in {new}:\n    {ROW}", "n=8")


def test_branches_of_the_builder_end_to_end() -> None:
    body = """
    x = T.alloc_shared((16, 64), "float16")
    f = T.alloc_fragment((16, 64), "float32")
    m = T.alloc_fragment((16,), "float32")
    T.fill(m, -T.infinity("float32"))
    for t in T.Serial(3):
        with T.If(t < 2):
            with T.Then():
                T.copy(A[bx * 16, t * 64], x)
                for i, j in T.Parallel(16, 64):
                    f[i, j] = x[i, j]
            with T.Else():
                for i, j in T.Parallel(16, 64):
                    f[i, j] = T.if_then_else(t * 64 + j < 150, T.cast(A[bx * 16 + i, t * 64 + j], "float32"), -1e30)
        T.reduce_max(f, m, dim=1, clear=False)
    for i in T.Parallel(16):
        with T.If(bx * 16 + i < 24), T.Then():
            B[bx * 16 + i] = m[i]
    """
    params = 'A: T.Tensor((24, 150), "float16"), B: T.Tensor((24,), "float32")'
    values = np.random.default_rng(8).standard_normal((24, 150)).astype(np.float16)
    new = agree(gpu_file(params, body), {"A": values})
    assert "T.If" not in new


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.Parallel(32):\n    for k in T.serial(i // 2):\n        a[i, k] = a[i, k] * 2 + i",
        "for i in T.Parallel(32):\n    if a[i, 0] > 0:\n        for k in T.serial(16):\n            a[i, 0] -= a[i, k]",
        "for i in T.Parallel(32):\n    v = a[i, 0]\n    for k in T.serial(16):\n        a[i, 0] += v + k",
        "for i, j in T.Parallel(32, 8):\n    for k in T.serial(j):\n        a[i, j] += k",
    ],
)
def test_iterations_that_follow_their_own_data_run_in_order(body: str) -> None:
    """Bounds, conditions and values that are different for each iteration, around or in front of a loop."""
    in_order = body.replace("for i in T.Parallel(32)", "for i in T.serial(32)")
    two = "for i in T.serial(32):\n    for j in T.serial(8):\n        for k in T.serial(j):\n            a[i, j] += k"
    same(body, two if "i, j in" in body else in_order)


def test_the_largest_of_each_row_in_order() -> None:
    """A list of the best values of a row, which is kept sorted while the row is read."""
    body = """
    x = T.alloc_shared((16, 32), "float32")
    v = T.alloc_shared((16, 8), "float32")
    T.copy(A[bx * 16, 0], x)
    T.fill(v, -T.infinity("float32"))
    for r in T.Parallel(16):
        for l in T.serial(32):
            if x[r, l] > v[r, 7]:
                v[r, 7] = x[r, l]
                for s in T.serial(7):
                    if v[r, 7 - s] > v[r, 6 - s]:
                        w = v[r, 7 - s]
                        v[r, 7 - s] = v[r, 6 - s]
                        v[r, 6 - s] = w
    T.copy(v, B[bx * 16, 0])
    """
    params = 'A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 8), "float32")'
    values = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    new = agree(gpu_file(params, body), {"A": values})
    found = run(new, {"A": values})["B"]
    np.testing.assert_array_equal(found, -np.sort(-values, axis=1)[:, :8])


def test_annotated_assignments() -> None:
    old = "x: T.int32 = bx + 1\ny: int = x + 1\nz: T.bfloat16 = y\na[x, y] = z"
    new = 'x: T.int32 = bx + 1\ny = x + 1\nz = T.cast(y, "bfloat16")\na[x, y] = z'
    same(old, new)


@pytest.mark.parametrize(
    "body",
    [
        "k = T.alloc_var('int32')\nwhile k < 3:\n    k += 1",
        "for k in T.serial(32):\n    if a[k, 0] > 0:\n        break\n    a[k, 0] = 1",
        "for k in T.serial(32):\n    if k > 1:\n        if k > 3:\n            continue\n        a[k, 0] = 1",
        "for i in T.Parallel(32):\n    v = T.alloc_var('float32')\n    v = 0\n    w = v + 1\n"
        "    for k in T.serial(16):\n        v += a[i, k]\n    s[i] = w + v",
    ],
)
def test_refused(body: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(normalise, kernel(body))
    assert caught.value.code == "TL120"


def test_a_loop_that_runs_once_names_the_only_element() -> None:
    """The number of the only row: ``s[0]`` in a loop over ``i`` is ``s[i]``; of longer tiles it stays."""
    body = """a = T.alloc_fragment((1, 64), "float32")
s = T.alloc_fragment((1,), "float32")
m = T.alloc_fragment((1,), "float32")
T.clear(s)
T.copy(A[bx, 0], a)
T.reduce_max(a, m, dim=1)
for i in T.Parallel(1):
    new = m[0] * 0.5
    s[0] = T.exp2(m[0] - new) + s[0] + a[0, 3]
    m[0] = new
for j in T.Parallel(64):
    a[0, j] = (a[0, j] - m[0]) * s[0]
T.copy(a, O[bx, 0])
"""
    values = np.random.default_rng(3).standard_normal((2, 64)).astype(np.float32)
    new = agree(gpu_file('A: T.Tensor((2, 64), "float32"), O: T.Tensor((2, 64), "float32")', body), {"A": values})
    half = values.max(1, keepdims=True) / 2
    expected = (values - half) * (np.exp2(half) + values[:, 3:4])
    np.testing.assert_allclose(run(new, {"A": values})["O"], expected, rtol=1e-4, atol=1e-4)
