"""TL126: what an autotuner varies in vain."""

from __future__ import annotations

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options

TEXT = """
import tilelang
import tilelang.language as T
from tilelang.autotuner import autotune

{decorator}
@tilelang.jit(out_idx=[1])
def halved(rows=64, threads=128, factor=2):
    @T.prim_func
    def main(X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")):
        with T.Kernel(256 // rows, threads={threads}) as bx:
            x = T.alloc_shared((rows, 64), "float32")
            T.copy(X[bx * rows, 0], x)
            for i, j in T.Parallel(rows, 64):
                x[i, j] = x[i, j] * factor
            T.copy(x, Y[bx * rows, 0])

    return main

{call}
"""


def said(decorator: str = "", call: str = "halved()", threads: str = "threads") -> list[str]:
    """The messages of TL126."""
    text = TEXT.format(decorator=decorator, call=call, threads=threads)
    result = migrate_text(text, "kernel.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    return [found.message for found in result.diagnostics if found.code == "TL126"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            '[{"rows": 32, "threads": 128}, {"rows": 32, "threads": 256}, {"rows": 64, "threads": 256}]',
            "nothing reads `threads` any more: the 3 configurations of the tuner make 2 different kernels",
        ),
        (
            '[{"threads": 128}, {"threads": 256}]',
            "nothing reads `threads` any more: the 2 configurations of the tuner make the same kernel",
        ),
        ('[{"rows": 32, "threads": 128}, {"rows": 64, "threads": 256}]', None),  # still two kernels
        ('[{"rows": 32}, {"rows": 64}]', None),
    ],
)
def test_a_tuner_that_makes_fewer_kernels(configs: str, message: str | None) -> None:
    assert said(f"@autotune(configs={configs})") == ([message] if message else [])


def test_calls_that_give_it_by_name() -> None:
    assert said(call="halved(threads=256)") == ["nothing reads `threads` any more, and a call still sets it"]
    assert said(call="halved(rows=32)") == []


def test_a_parameter_that_was_never_read_is_no_news() -> None:
    assert said(call="halved(threads=256)", threads="128") == []
