"""TL144: a name of an element type that is float32 in every call is asserted to be, in place of conversions."""

from __future__ import annotations

import pytest

from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

TEXT = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def scaled(dtype, accum_dtype):
    @T.prim_func
    def main(X: T.Tensor((256, 64), dtype), G: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), dtype)):
        with T.Kernel(4, threads=128) as bx:
            x = T.alloc_shared((64, 64), dtype)
            g = T.alloc_shared((64, 64), "float32")
            y = T.alloc_fragment((64, 64), accum_dtype)
            T.copy(X[bx * 64, 0], x)
            T.copy(G[bx * 64, 0], g)
            for i, j in T.Parallel(64, 64):
                y[i, j] = x[i, j] * T.exp(g[i, j])
            T.copy(y, Y[bx * 64, 0])

    return main


def run(accum_dtype):
    return scaled("float32", accum_dtype)


"""
ASSERTION = 'assert accum_dtype == "float32"'


def migrated(calls: str) -> str:
    result = migrate_text(TEXT + calls, "kernel.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    told = [found.message for found in result.diagnostics if found.code == "TL144"]
    text = str(result.new_text)
    named = "every call gives float32 for `accum_dtype`: wrote an assertion in place of conversions"
    assert (named in told) == (ASSERTION in text)
    return text


@pytest.mark.parametrize("calls", ['run("float32")', "run(T.float32)"])
def test_one_type_in_every_call_needs_no_conversion(calls: str) -> None:
    text = migrated(calls)
    assert ASSERTION in text
    assert text.count("T.copy(") == 5  # two loads, `x` in float32, `y` in the type of its tensor, one store
    assert "dtype ==" not in text.replace(ASSERTION, "")  # other callers may have tensors of halves
    assert [found for found in check_text(text, "kernel.py", Options()).diagnostics if found.severity != "info"] == []
    assert migrate_text(text, "kernel.py", Options()).new_text == text


@pytest.mark.parametrize(
    "calls",
    [
        'run("float32")\nscaled("float32", "float16")',
        'run("float32")\nscaled(*types)',
        'run("float32")\nmake = scaled',
        'run("float")',  # the same type, and another text
        "run(torch.float32)",
        "def main(accum_dtype):\n    run(accum_dtype)",
    ],
)
def test_other_types_keep_their_conversions(calls: str) -> None:
    text = migrated(calls)
    assert ASSERTION not in text
    assert text.count("T.copy(") > 5
