"""``while`` loops that count in equal steps; tiles that are allocated in an arm of an ``if``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of
from tests.passes.simulated import run

X = np.random.default_rng(3).standard_normal((320, 64)).astype(np.float32)
PARAMS = "X: T.Tensor((320, 64), 'float32'), Y: T.Tensor((320, 64), 'float32')"
LAUNCH = "T.Kernel(3, threads=128) as bx"
WORK = """\
    current = i
    x = T.alloc_shared((32, 64), "float32")
    T.copy(X[current * 32, 0], x)
    for r, c in T.Parallel(32, 64):
        x[r, c] = x[r, c] * 2.0 + i
    T.copy(x, Y[current * 32, 0])
"""
VARIABLE = 'i = T.alloc_var("int32")\ni = bx\nn = T.ceildiv(320, 32)\n'


def kernel(head: str, last: str, test: str = "i < n", **more: str) -> str:
    return gpu_file(PARAMS, f"{head}while {test}:\n{WORK}    {last}\n", launch=LAUNCH, **more)


@pytest.mark.parametrize(
    ("head", "last"),
    [
        (VARIABLE, "i = i + 3"),
        (VARIABLE, "i = 3 + i"),
        (VARIABLE, "i += 3"),
        (VARIABLE, "i = current + blocks"),
        ("n = 10\ni = bx\n", "i += blocks"),
    ],
)
def test_every_block_counts_its_tasks(head: str, last: str) -> None:
    new = migrated(kernel(head, last, args="blocks=3"))
    assert "while" not in new
    found = run(new, {"X": X}, args=(3,))["Y"]
    tasks = np.repeat(np.arange(10, dtype=np.float32), 32)[:, None]
    np.testing.assert_allclose(found, X * 2 + tasks, rtol=1e-6)


def test_a_block_without_a_task() -> None:
    """Of 5 blocks the last two start behind the end of 3 tasks."""
    text = kernel("n = 3\ni = bx\n", "i += 5").replace("T.Kernel(3,", "T.Kernel(5,")
    found = run(migrated(text), {"X": X})["Y"]
    tasks = np.repeat(np.arange(3, dtype=np.float32), 32)[:, None]
    np.testing.assert_allclose(found[:96], X[:96] * 2 + tasks, rtol=1e-6)
    assert np.isnan(found[96:]).all()


@pytest.mark.parametrize(
    ("head", "last", "test"),
    [
        (VARIABLE, "i = i * 2 + 1", "i < n"),
        (VARIABLE, "i = i - 1", "i < n"),
        (VARIABLE, "i = i + 0", "i < n"),
        (VARIABLE, "i = i + n", "i < n + i"),
        (VARIABLE, "i += 3", "i <= n"),
        (VARIABLE, "if bx > 1:\n        continue\n    i += 3", "i < n"),
        (VARIABLE, "n = n - 1\n    i += 3", "i < n"),
        ('i = T.alloc_var("int32")\nn = 10\nfor k in T.serial(2):\n    i = k\n', "i += 3", "i < n"),
    ],
)
def test_other_loops_are_refused(head: str, last: str, test: str) -> None:
    result = result_of(kernel(head, last, test))
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL120"]


def test_a_counter_that_is_used_behind_the_loop() -> None:
    text = kernel(VARIABLE, "i += 3").replace("    return main", "            Y[i, 0] = 0.0\n\n    return main")
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]


ARMS = """
x = T.alloc_shared((32, 64), "float32")
T.copy(X[bx * 32, 0], x)
{0}
for k in T.serial(2):
    if wide:
        for r, c in T.Parallel(32, 64):
            y[r, c] = x[r, c] + 1.0
        for r, c in T.Parallel(32, 64):
            x[r, c] = x[r, c] * y[r, c]
T.copy(x, Y[bx * 32, 0])
"""


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    "arm",
    [
        'if wide:\n    y = T.alloc_shared((32, 64), "float32")',
        'if wide:\n    y = T.alloc_shared((32, 64), "float32")\n    T.clear(y)',
        'if not wide:\n    T.fill(x, 3.0)\nelse:\n    y = T.alloc_fragment((32, 64), "float32")',
    ],
)
def test_a_tile_of_an_arm_is_allocated_in_front(arm: str, wide: bool) -> None:
    text = gpu_file(PARAMS, ARMS.format(arm), launch="T.Kernel(10, threads=128) as bx", args="wide=True")
    new = agree(text, {"X": X}, args=(wide,))
    assert new.index("y = T.alloc") < new.index("if wide" if "not" not in arm else "if not wide")


def test_a_condition_of_the_device_keeps_its_tile() -> None:
    text = gpu_file(
        PARAMS,
        ARMS.format('if bx > 3:\n    y = T.alloc_shared((32, 64), "float32")').replace("if wide", "if bx > 3"),
        launch="T.Kernel(10, threads=128) as bx",
    )
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]


def test_the_parallel_loop_of_tir() -> None:
    body = """
        x = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 32, 0], x)
        for r in T.parallel(32):
            for c in T.parallel(64):
                x[r, c] = x[r, c] * 2.0
        T.copy(x, Y[bx * 32, 0])
    """
    new = migrated(gpu_file(PARAMS, body, launch="T.Kernel(10, threads=128) as bx"))
    assert "for r, c in T.Parallel(32, 64):" in new
    np.testing.assert_array_equal(run(new, {"X": X})["Y"], X * 2)
