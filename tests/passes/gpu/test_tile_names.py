"""Two tiles of one name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated

PARAMS = "X: T.Tensor((2, 64), 'float32'), Y: T.Tensor((2, 64), 'float32')"
LOOP = """
for k in T.serial(2):
    t = T.alloc_fragment((32,), 'float32')
    T.copy({source}[bx, k * 32], t)
    for i in T.Parallel(32):
        t[i] = t[i] * {factor}
    T.copy(t, Y[bx, k * 32])
"""
TWO = LOOP.format(source="X", factor="2.0") + LOOP.format(source="Y", factor="3.0")


def test_the_second_gets_a_name_of_its_own() -> None:
    inputs = {"X": np.random.default_rng(2).standard_normal((2, 64), np.float32)}
    new = agree(gpu_file(PARAMS, TWO), inputs)
    assert [line.split()[0] for line in new.splitlines() if "alloc_shared" in line] == ["t", "t_2"]


def test_tiles_of_another_shape_too() -> None:
    text = gpu_file(PARAMS, TWO.replace("(32,)", "(16,)", 1).replace("T.Parallel(32)", "T.Parallel(16)", 1))
    assert "t_2 = T.alloc_shared((32,)" in migrated(text.replace("k * 32], t)", "k * 16], t)", 1))


@pytest.mark.parametrize(
    "body",
    [
        TWO + "T.copy(t, Y[bx, 0])",  # of which of them?
        TWO.replace("    t = T.alloc_fragment((32,), 'float32')\n    T.copy(Y", "    T.copy(Y"),
        "if n > 1:"
        + LOOP.format(source="X", factor="2.0").replace("\n", "\n    ")
        + "\nelse:"
        + LOOP.format(source="X", factor="3.0").replace("\n", "\n    "),
    ],
)
def test_other_names_stay(body: str) -> None:
    from tests.passes.gpu.one_pass import after
    from tl2npu.passes.plain.tile_names import apart

    text = gpu_file(PARAMS, body, args="n=2")
    assert after(lambda job: job.take(apart(job)), text) == text
