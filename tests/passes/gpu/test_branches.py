"""Names that the arms of an ``if`` bind and that are used behind it."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused, result_of

X = np.random.default_rng(3).standard_normal((512, 64)).astype(np.float32)
PARAMS = 'X: T.Tensor((512, 64), "float32"), N: T.Tensor((4,), "int32"), Y: T.Tensor((4, 64, 64), "float32")'
USE = """
x = T.alloc_shared((64, 64), "float32")
y = T.alloc_fragment((64, 64), "float32")
T.clear(y)
for k in T.serial(end - start):
    T.copy(X[(start + k) * 64, 0], x)
    for i, j in T.Parallel(64, 64):
        y[i, j] += x[i, j]
T.copy(y, Y[bx, 0, 0])
"""


def kernel(arms: str, use: str = USE) -> str:
    body = textwrap.dedent(arms).strip("\n") + use
    return gpu_file(PARAMS, body, launch="T.Kernel(4, threads=128) as bx", args="flag, window=None, n=2")


ARMS = {
    "two arms": (
        """
        if flag:
            start = 0
            end = bx + 1
        else:
            start = bx
            end = 6
        """,
        "start = 0 if flag else bx\nend = bx + 1 if flag else 6\n",
    ),
    "elif": (
        """
        if window is not None:
            start = 0
            end = 2
        elif flag:
            start = 1
            end = 2
        else:
            start = 2
            end = 5
        """,
        "start = 0 if window is not None else 1 if flag else 2\n",
    ),
    "one arm": ("start = 0\nend = 5\nif flag:\n    start = bx", "start = bx if flag else start\n"),
    "of each other": (
        """
        if flag:
            start = 1
            end = start + 3
        else:
            start = bx
            end = 6
        """,
        "end = 1 + 3 if flag else 6\n",
    ),
    "nested": (
        """
        if flag:
            if window is not None:
                start = T.max(0, bx - window)  # a window
                end = bx + 1
            else:
                # all of it
                start = 0
                end = bx + 1
        else:
            if window is not None:
                start = T.max(0, bx - window)
                end = 5
            else:
                start = 0
                end = 5
        """,
        "# a window\n# all of it\nstart = T.max(0, bx - window_or_1) if window is not None else 0\nend = bx + 1 if",
    ),
}


@pytest.mark.parametrize(("arms", "expected"), ARMS.values(), ids=ARMS)
@pytest.mark.parametrize("args", [(True,), (False,), (True, 2), (False, 2)])
def test_one_conditional_value_for_each_name(arms: str, expected: str | None, args: tuple[object, ...]) -> None:
    new = agree(kernel(arms), {"X": X, "N": np.arange(4, dtype=np.int32)}, args=args)
    found = "\n".join(line.strip() for line in new.splitlines())
    assert expected is None or expected in found


REFUSED = {
    "more than values": "end = 5\nif flag:\n    start = 0\n    T.copy(X[0, 0], Y[bx, :, :])\nelse:\n    start = 1",
    "on the device": "end = 5\nif bx > 1:\n    start = 0\nelse:\n    start = 1",
    "an element": "end = 5\nif N[bx] > 1:\n    start = 0\nelse:\n    start = 1",
    "a condition that changes": "k = 1\nif k > n:\n    k = 0\n    start = 2\nelse:\n    start = 1\nend = 5 - k",
    "exchanged": "start = 1\nend = 5\nif flag:\n    end = start\n    start = 0\nelse:\n    start = end\n    end = 6",
}


@pytest.mark.parametrize("arms", REFUSED.values(), ids=REFUSED)
def test_what_is_more_than_values_is_refused(arms: str) -> None:
    assert [code for code, _ in refused(kernel(arms))] == ["TL120"]


def test_names_that_end_with_their_arm_stay() -> None:
    arms = "start = 0\nend = 4\nif flag:\n    n = bx + 1\n    T.copy(X[n * 64 : n * 64 + 64, 0:64], Y[bx, :, :])"
    assert "n = bx + 1\n" in migrated(kernel(arms))


TWICE = """
x = T.alloc_shared((64, 64), "float32")
if {condition}:
    T.copy(X[bx * 64, 0], x)
else:
    for i, j in T.Parallel(64, 64):
        t = bx * 64 + i
        c, d = j, j
        x[i, j] = X[t, c] * 2.0
for i, {column} in T.Parallel(64, 64):
{second}
"""
SECOND = """\
    t = i
    c = {column}
    Y[bx, t, c] = x[i, {column}]
"""


@pytest.mark.parametrize("condition", ["flag", "bx < 2"])
@pytest.mark.parametrize("column", ["j", "d"])
def test_a_name_that_gets_a_value_again_is_another(condition: str, column: str) -> None:
    text = kernel(TWICE.format(condition=condition, column=column, second=SECOND.format(column=column)), "")
    new = agree(text, {"X": X, "N": np.arange(4, dtype=np.int32)}, args=(False,))
    assert f"if {condition}:" in new


@pytest.mark.parametrize(
    "second",
    [
        "    Y[bx, i, j] = x[i, j] * d",
        "    c = t\n    t = i\n    Y[bx, i, j] = x[i, j] + c",
        "    if bx > t:\n        t = 1\n    Y[bx, i, j] = x[i, j]",
        "    if bx > 1:\n        t = 1\n    Y[bx, i, j] = x[i, j] * t",
    ],
)
def test_a_name_that_is_used_before_it_gets_a_value_again_is_refused(second: str) -> None:
    found = refused(kernel(TWICE.format(condition="bx < 2", column="j", second=second), ""))
    assert [code for code, _ in found] == ["TL120"]


TILES = """
if flag:
    p = T.alloc_shared((64, 64), "float16")
else:
    q = T.alloc_fragment((64, 64), "float16")
x = T.alloc_shared((64, 64), "float32")
y = T.alloc_fragment((64, 64), "float32")
T.copy(X[0, 0], x)
"""
CHOSEN = """
if flag:
    T.copy(x, p)
    t = p
else:
    T.copy(x, q)
    t = q
"""
END = "T.copy(t, y)\nT.copy(y, Y[bx, 0, 0])\n"


@pytest.mark.parametrize(
    "arms", [CHOSEN, "if flag:\n    T.copy(x, p)\nelse:\n    T.copy(x, q)\nt = p if flag else q\n"]
)
@pytest.mark.parametrize("flag", [True, False])
def test_one_tile_for_two_of_which_python_allocates_one(arms: str, flag: bool) -> None:
    text = kernel(TILES + arms + END, "")
    new = agree(text, {"X": X, "N": np.zeros(4, np.int32)}, args=(flag,))
    assert "q = " not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('q = T.alloc_fragment((64, 64), "float16")', 'q = T.alloc_fragment((64, 64), "float32")'),
        ("    T.copy(x, q)\n    t = q", "    T.copy(x, q)\n    t = q\nif n > 1:\n    T.copy(x, q)"),
    ],
)
def test_two_tiles_that_stay_two(old: str, new: str) -> None:
    result = result_of(kernel((TILES + CHOSEN).replace(old, new) + END, ""))
    assert not any("one tile for" in change.message for change in result.changes)
