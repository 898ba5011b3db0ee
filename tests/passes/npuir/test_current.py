"""The older spelling of AscendNPU IR kernels, which is refused."""

from __future__ import annotations

import pytest

from tests.passes.npuir.test_from_ascend import ascend, result_of

LAUNCH = "T.Kernel(2, is_npu=True) as (cid, _)"
TENSORS = 'X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")'
TILES = """
x = T.alloc_shared((32, 32), "float32")
y = T.alloc_fragment((32, 32), "float32")
"""


def npuir(body: str, params: str = TENSORS) -> str:
    text = ascend(params, TILES + body, LAUNCH)
    return text.replace("out_idx=[-1]", 'out_idx=[-1], target="npuir"')


@pytest.mark.parametrize(
    "body",
    [
        "T.copy(X[cid * 32, 0], x, [32, 32])\nT.copy(x, Y[cid * 32, 0], [32, 32])\n",
        "T.copy(X[cid * 32, 0], x)\nT.exp(x, y)\nT.copy(y, Y[cid * 32, 0])\n",
        "T.copy(X[cid * 32, 0], x)\nT.abs(x, y)\nT.copy(y, Y[cid * 32, 0])\n",
        'm = T.alloc_shared((32, 1), "float32")\nT.copy(X[cid * 32, 0], x)\nT.reduce_sum(x, m, 1, True)\n',
    ],
)
def test_what_meant_something_else_once_is_refused(body: str) -> None:
    result = result_of(npuir(body))
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL436"]
    assert not result.changed


def test_the_function_of_one_number_stays() -> None:
    body = """
    T.copy(X[cid * 32, 0], x, size=[32, 32])
    for i, j in T.Parallel(32, 32):
        y[i, j] = T.exp(x[i, j])
    T.copy(y, Y[cid * 32, 0])
    """
    assert result_of(npuir(body.replace("\n    ", "\n"))).kernels[0].disposition == "unchanged"


def test_what_is_up_to_date_stays() -> None:
    body = "T.copy(X[cid * 32, 0], x, size=[32, 32])\nT.vexp(x, y)\nT.copy(y, Y[cid * 32, 0])\n"
    result = result_of(npuir(body))
    assert result.kernels[0].disposition == "unchanged"
    assert not result.changed
