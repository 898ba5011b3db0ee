"""TL620: one block for each core, with a loop over its tasks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, result_of
from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RNG = np.random.default_rng(7)
ROWS = 16 * 50  # two turns of 24 cores, and two tasks
PARAMS = f'X: T.Tensor(({ROWS}, 64), "float32"), B: T.Tensor((64,), "float32"), O: T.Tensor(({ROWS}, 64), "float32")'
TILE = 'x = T.alloc_fragment((16, 64), "float32")\n'
LAUNCH = f"T.Kernel({ROWS} // 16, threads=128) as bx"
ARRAYS = {
    "X": RNG.standard_normal((ROWS, 64)).astype(np.float32),
    "B": RNG.standard_normal(64).astype(np.float32),
    "O": np.zeros((ROWS, 64), np.float32),
}


def text_of(body: str, params: str = PARAMS, launch: str = LAUNCH, **given: str) -> str:
    return gpu_file(params, TILE + body, jit="@tilelang.jit", launch=launch, **given)


def fixed(text: str) -> FileResult:
    result = migrate_text(text, "k.py", Options(fixed_core=True))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    return result


def loop_of(text: str, expected: np.ndarray, output: str = "O") -> tuple[str, str]:
    """What stands in the new launch in front of its loop over tasks, and in it; the results are ``expected``."""
    new = fixed(text).new_text
    assert new is not None
    for reading in (IDEAL, ACTUAL):
        found = run(new, ARRAYS, "factory", (), reading)
        np.testing.assert_allclose(found[output], expected, 1e-4, 1e-4)
    front, loop = new.split("T.Kernel(")[1].split("for task in")
    return front, loop


def test_every_task_is_done_and_the_vector_loaded_once() -> None:
    body = """b = T.alloc_fragment((64,), "float32")
T.copy(X[bx * 16, 0], x)
T.copy(B, b)
for i, j in T.Parallel(16, 64):
    x[i, j] = x[i, j] * b[j]
T.copy(x, O[bx * 16, 0])
"""
    front, loop = loop_of(text_of(body), ARRAYS["X"] * ARRAYS["B"])
    assert "T.copy(B, b)" in front
    assert "bx = task * core_num + core_id" in loop
    assert "T.copy(X[bx * 16, 0], x)" in loop


def test_what_another_task_changes_is_made_anew() -> None:
    """``s`` is filled with what is the same in every block, but then added to."""
    body = """s = T.alloc_fragment((16, 64), "float32")
T.copy(X[bx * 16, 0], x)
T.clear(s)
for i, j in T.Parallel(16, 64):
    s[i, j] = s[i, j] + x[i, j]
T.copy(s, O[bx * 16, 0])
"""
    _, loop = loop_of(text_of(body), ARRAYS["X"])
    assert "T.tile.fill(s, 0.0)" in loop


def test_a_tensor_that_the_kernel_adds_to_is_read_in_every_task() -> None:
    body = """b = T.alloc_fragment((64,), "float32")
T.copy(B, b)
T.copy(X[bx * 16, 0], x)
for i, j in T.Parallel(16, 64):
    x[i, j] = x[i, j] * 0.0
T.copy(x, O[bx * 16, 0])
T.atomic_add(B, b)
"""
    new = fixed(text_of(body)).new_text
    assert new is not None
    assert "T.copy(B, b)" in new.split("for task in")[1]


def test_names_of_the_block_may_be_bound_in_several_steps() -> None:
    body = """first = bx * 16
row = first + 0
T.copy(X[row, 0], x)
T.copy(x, O[row, 0])
"""
    _, loop = loop_of(text_of(body), ARRAYS["X"])
    assert "T.copy(X[row, 0], x)" in loop


GEMM = """a = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.copy(A[bx * 64, 0], a)
T.copy(B, b)
T.clear(c)
T.gemm(a, b, c)
{after}T.copy(c, C[bx * 64, 0])
"""
GEMM_PARAMS = (
    'A: T.Tensor((64 * 30, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64 * 30, 64), "float32")'
)


def gemm(after: str = "") -> str:
    launch = "T.Kernel(30, threads=128) as bx"
    return gpu_file(GEMM_PARAMS, GEMM.format(after=after), jit="@tilelang.jit", launch=launch)


def test_a_product_of_the_cube_core() -> None:
    arrays = {
        "A": RNG.integers(-3, 4, (64 * 30, 64)).astype(np.float16),
        "B": RNG.integers(-3, 4, (64, 64)).astype(np.float16),
        "C": np.zeros((64 * 30, 64), np.float32),
    }
    new = fixed(gemm()).new_text
    assert new is not None
    found = run(new, arrays, "factory", (), ACTUAL)["C"]
    np.testing.assert_array_equal(found, arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32))
    assert "T.copy(B, b)" in new.split("for task in")[0]


def test_a_race_between_tasks_keeps_a_block_for_each() -> None:
    """The cube could overwrite the only tile of the hand-over while the vector cores still read it."""
    text = gemm("for i, j in T.Parallel(64, 64):\n    c[i, j] = c[i, j] * 0.5\n")
    result = fixed(text)
    (note,) = (d for d in result.diagnostics if d.code == "TL620")
    assert "TL848" in note.message
    assert result.new_text == result_of(text).new_text


@pytest.mark.parametrize(("tasks", "loops"), [("M // 16", False), ("M", True)])
def test_a_call_tells_how_many_tasks_there_are(tasks: str, loops: bool) -> None:
    """24 tasks are one for each core."""
    params = 'X: T.Tensor((M * 16, 64), "float32"), O: T.Tensor((M * 16, 64), "float32")'
    body = "T.copy(X[bx * 16, 0], x)\nT.copy(x, O[bx * 16, 0])\n"
    text = text_of(body, params, f"T.Kernel({tasks}, threads=128) as bx", args="M") + "\nkernel = factory(384)\n"
    new = fixed(text).new_text
    assert new is not None
    assert ("for task in" in new) is loops


def test_the_cores_are_asked_for_where_the_file_has_torch() -> None:
    body = "T.copy(X[bx * 16, 0], x)\nT.copy(x, O[bx * 16, 0])\n"
    new = fixed("import torch as th\n" + text_of(body)).new_text
    assert new is not None
    assert f'core_num = min({ROWS} // 16, int(th.npu.get_device_properties("npu").cube_core_num))' in new


def test_a_persistent_loop_of_the_author() -> None:
    """It is written out, with or without the option, and each of its 50 tiles is copied once by 24 or 7 blocks."""
    body = """for tile in T.Persistent([50], {blocks}, bx):
    T.copy(X[tile * 16, 0], x)
    for i, j in T.Parallel(16, 64):
        x[i, j] = x[i, j] + 1.0
    T.copy(x, O[tile * 16, 0])
"""
    for blocks in (24, 7):
        text = text_of(body.format(blocks=blocks), launch=f"T.Kernel({blocks}, threads=128) as bx")
        new = result_of(text).new_text
        assert new is not None
        assert "T.Persistent" not in new
        np.testing.assert_allclose(run(new, ARRAYS, "factory", (), ACTUAL)["O"], ARRAYS["X"] + 1.0)
        assert fixed(text).new_text == new


def test_without_the_option_there_is_a_block_for_each_task() -> None:
    body = "T.copy(X[bx * 16, 0], x)\nT.copy(x, O[bx * 16, 0])\n"
    new = result_of(text_of(body)).new_text
    assert new is not None
    assert "for task in" not in new
