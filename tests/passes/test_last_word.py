"""``--explain`` tells what became of a tile, not what it was in between."""

from __future__ import annotations

from tests.passes.gpu.support import gpu_file, result_of

PARAMS = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'
BODY = """
x = T.alloc_fragment((64, 64), "float32")
h = T.alloc_fragment((64, 64), "float32")
T.copy(X, x)
for i, j in T.Parallel(64, 64):
    h[i, j] = x[i, j] * 2.0
for i, j in T.Parallel(64, 64):
    x[i, j] = h[i, j] + x[i, j]
T.copy(x, Y)
"""


def test_a_tile_is_allocated_once() -> None:
    said = [item.message for item in result_of(gpu_file(PARAMS, BODY)).changes if item.code == "TL130"]
    assert said.count("`x`: alloc_fragment -> alloc_shared") == 1
    of_h = [message for message in said if message.startswith("`h`")]
    assert of_h == ["`h` is only used element by element: wrote alloc_ub"]
