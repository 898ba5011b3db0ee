"""Views of a tile that only reuse its memory are tiles of their own; through others a value may pass."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, refused

PARAMS = 'X: T.Tensor((128, 32), "float16"), Y: T.Tensor((128, 16), "float32")'
TILES = 'x = T.alloc_shared((32, 32), "float16")\ny = T.alloc_fragment((32, 32), "float32")\n'
LOAD, STORE = "T.copy(X[(bx * 2 + k) * 32, 0], x)", "T.copy(v, Y[(bx * 2 + k) * 32, 0])"
FILL = "for i, j in T.Parallel(32, 16):\n    v[i, j] = y[i, j + 16] * 2.0"
VIEW = 'v = T.view(x, (32, 16), "float32")'


def kernel(lines: list[str], view: str = VIEW) -> str:
    """A loop over two blocks of rows that runs some lines."""
    inner = "\n".join(lines).replace("\n", "\n    ")
    return gpu_file(PARAMS, f"{TILES}{view}\nfor k in T.serial(2):\n    {inner}")


@pytest.mark.parametrize(
    "view", [VIEW, 'v = T.view(x, shape=[32, 16], dtype="float32")', "v = T.view(x, (32, 16), dtype=y.dtype)"]
)
@pytest.mark.parametrize(
    "lines",
    [
        [LOAD, "T.copy(x, y)", FILL, STORE],
        [LOAD, "T.copy(x, y)", "T.clear(v)", FILL.replace("= y", "+= y"), STORE],
        [
            LOAD,
            "T.copy(x, y)",
            FILL.replace("Parallel(32", "Parallel(64").replace("v[i", "if i < 32:\n        v[i"),
            STORE,
        ],
        ["for s in T.serial(1):", "    " + LOAD, "    T.copy(x, y)", FILL, STORE],
    ],
)
def test_a_view_that_reuses_memory(lines: list[str], view: str) -> None:
    new = agree(kernel(lines, view), {"X": np.random.default_rng(3).standard_normal((128, 32)).astype(np.float16)})
    assert "v = T.alloc_shared(" in new
    assert "view" not in new


@pytest.mark.parametrize(
    "lines",
    [
        [LOAD, "T.copy(x, y)", STORE],  # the bits of `x`
        [LOAD, "T.copy(x, y)", FILL.replace("= y", "+= y"), STORE],
        [LOAD, "T.copy(x, y)", FILL.replace("(32, 16)", "(16, 16)"), STORE],
        [LOAD, "T.copy(x, y)", FILL.replace("32, 16)", "32, 16)").replace("v[i", "if i < 31:\n        v[i"), STORE],
        [LOAD, "T.copy(x, y)", "if k == 0:\n    T.clear(v)", STORE],
        ["if k == 0:\n    " + LOAD, "T.copy(x, y)", FILL, STORE],
        [LOAD, FILL, "T.copy(x, y)", STORE],
    ],
)
def test_a_view_through_which_a_value_may_pass(lines: list[str]) -> None:
    assert {code for code, _ in refused(kernel(lines))} == {"TL903"}


def test_two_views_of_one_tile() -> None:
    lines = [LOAD, "T.copy(x, y)", FILL, FILL.replace("v[", "w["), STORE]
    assert {code for code, _ in refused(kernel(lines, f"{VIEW}\n{VIEW.replace('v =', 'w =')}"))} == {"TL903"}
