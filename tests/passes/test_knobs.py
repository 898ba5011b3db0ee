"""TL126, TL315: parameters that nothing reads any more, and what an autotuner varies in vain."""

from __future__ import annotations

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult

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


def migrated(decorator: str = "", call: str = "halved()", threads: str = "threads") -> FileResult:
    """What becomes of the file."""
    text = TEXT.format(decorator=decorator, call=call, threads=threads)
    result = migrate_text(text, "kernel.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    return result


def said(decorator: str = "", call: str = "halved()", threads: str = "threads") -> list[str]:
    """The messages of TL126."""
    return [found.message for found in migrated(decorator, call, threads).diagnostics if found.code == "TL126"]


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


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("kernel = halved(threads=256)", "kernel = halved()"),
        ("kernel = halved(32, 256, factor=3)", "kernel = halved(32, factor=3)"),
        ("n = 256\nkernel = halved(32, n)", "kernel = halved(32)"),  # nothing else used its variable
        ("kernel = halved(threads=print(1) or 256)", None),  # what an argument does would be lost
        ("kernel = halved(**{'threads': 256})", None),
        ("kernels = [make(threads=256) for make in (halved,)]", None),
    ],
)
def test_it_goes_where_all_calls_are_known(call: str, becomes: str | None) -> None:
    text = str(migrated(call=call).new_text)
    assert ("def halved(rows=64, factor=2):" in text) == (becomes is not None)
    assert text.endswith(f"return main\n\n{becomes or call}\n")


@pytest.mark.parametrize("decorator", ["@autotune(configs=tried())", "@of_our_own"])
def test_it_stays_where_a_decorator_may_give_it(decorator: str) -> None:
    assert "threads=128" in str(migrated(decorator, "kernel = halved(rows=32)").new_text)


def test_calls_that_give_it_by_name() -> None:
    given = "nothing reads `threads` any more, and a call still sets it"
    assert said("@of_our_own", "halved(threads=256)") == [given]
    assert said("@of_our_own", "halved(rows=32)") == []


def test_a_parameter_that_was_never_read_is_no_news() -> None:
    assert "halved(threads=256)" in str(migrated(call="halved(threads=256)", threads="128").new_text)
