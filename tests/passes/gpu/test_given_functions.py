"""TL605: functions that callers give a factory."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import IMPORTS, migrated, refused

FILE = """
def relu(x):
    return T.max(x, 0.0)


@tilelang.jit(out_idx=[1])
def make(N, {params}):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            x = T.alloc_fragment((256,), "float32")
            T.copy(X[bx * 256], x)
            for i in T.Parallel(256):
                x[i] = {value}
            T.copy(x, Y[bx * 256])

    return main


made = make(1024, {given})
"""


@pytest.mark.parametrize("given", ["relu", "op=relu", "lambda v: v * v", "T.exp"])
def test_a_function_of_the_callers_is_refused(given: str) -> None:
    text = IMPORTS + FILE.format(params="op", value="op(x[i])", given=given)
    assert ("TL605", text[: text.index("op(x")].count("\n") + 1) in refused(text)


def test_a_name_of_the_callers_is_not() -> None:
    value = "T.max(x[i], 0.0) if op == 'relu' else T.exp(x[i])"
    assert "T.Parallel" in migrated(IMPORTS + FILE.format(params="op", value=value, given="'relu'"))
