"""TL889 of GPU kernels and eager ones: a name that nothing binds is all that is said of a kernel."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file, result_of
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.results import FileResult

PARAMS = 'X: T.Tensor((512, 64), "float32"), O: T.Tensor((512, 64), "float32")'
BODY = """rows = T.alloc_fragment((32, 64), "float32")
sums = T.alloc_fragment((32,), "float32")
T.copy(X[bx * 32, 0], rows)
for i, j in T.Parallel(32, 64):
    rows[i, j] = rows[i, j] * 2.0
T.reduce_sum(rows, sums, dim=1)
T.copy(rows, O[bx * 32, 0])
"""
ELSEWHERE = "\n\ndef reference(x, bias):\n    return x + bias\n"


def kernel(old: str = "", new: str = "", tail: str = ELSEWHERE) -> str:
    return gpu_file(PARAMS, BODY.replace(old, new, 1), launch="T.Kernel(16, threads=128) as bx") + tail


def said(result: FileResult) -> list[str]:
    return [d.message for d in result.diagnostics if d.code == "TL889"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("* 2.0", "* scale", "`scale` is not defined"),
        ("* 2.0", "+ bias[j]", "`bias` is not defined"),  # a parameter of another function
        ("sum(rows", "sum(row", "`row` is not defined; did you mean `rows`?"),
        ("dim=1", "dim=axis", "`axis` is not defined"),
        ("(32, 64)", "(32, Block)", "`Block` is not defined"),
        ("O[bx", "O[by", "`by` is not defined"),
        ("bx * 32", "bx * sizes.rows", "`sizes` is not defined"),
    ],
)
def test_a_name_that_nothing_binds(old: str, new: str, message: str) -> None:
    text = kernel(old, new)
    result = result_of(text)
    assert [d.message for d in result.diagnostics] == said(result) == [message]
    assert [(k.disposition, k.codes) for k in result.kernels] == [("refused", ("TL889",))]
    assert result.new_text == text
    checked = check_text(text, "k.py", Options())
    assert said(checked) == [message]
    (line,) = (d.line for d in result.diagnostics)
    assert new.split("[")[0].strip("(* +") in text.split("\n")[line - 1]


def test_an_undefined_name_of_an_eager_kernel() -> None:
    """It has no form of a factory either, of which nothing is said before the name is mended."""
    text = """import tilelang
import tilelang.language as T


@tilelang.jit
def f(A, eps=1e-6):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(M, threads=128) as row:
        a = T.alloc_fragment((N,), "float32")
        T.copy(A[row, 0], a)
        for j in T.Parallel(N):
            a[j] = a[j] + epss
        T.copy(a, B[row, 0])
    print("launched")
    return B
"""
    assert [d.message for d in result_of(text).diagnostics] == ["`epss` is not defined; did you mean `eps`?"]
    checked = check_text(text, "k.py", Options())
    assert [(d.code, d.severity) for d in checked.diagnostics] == [("TL102", "error"), ("TL889", "error")]
    mended = result_of(text.replace("epss", "eps"))
    assert [d.code for d in mended.diagnostics] == ["TL103"]


@pytest.mark.parametrize(
    ("old", "new", "tail"),
    [
        ("* 2.0", "* scale", "\n\nscale = 2.0\n"),
        ("* 2.0", "* scale", "\n\ndef tune():\n    global scale\n    scale = 2.0\n"),
        ("* 2.0", "* scale", '\n\nglobals()["scale"] = 2.0\n'),
        ("* 2.0", "* scale", "\n\nif (scale := 2.0) > 1:\n    pass\n"),
        ("* 2.0", "* scale", "\n\nfrom numbers_of_mine import *\n"),
        ("* 2.0", "* scale  # tl2npu: ignore[TL889]", ""),
        ("* 2.0", "* max([scale for scale in (1, 2)])", ""),
        ("* 2.0", "* float(__file__ == __name__)", ""),
        ("sums = T", "@T.macro\ndef add(tile, by=1):\n    tile[0, 0] = by\nadd(rows)\nsums = T", ""),
    ],
)
def test_names_that_something_may_bind(old: str, new: str, tail: str) -> None:
    result = result_of(kernel(old, new, tail))
    assert not any("refused" in k.disposition and k.codes == ("TL889",) for k in result.kernels)


GUARD = '\n\nif __name__ == "__main__":\n    import math\n\n    scale = 2.0\n'


def test_a_name_that_only_the_script_binds() -> None:
    """It runs as a script, so it is migrated; whoever imports the file gets a NameError."""
    text = kernel("* 2.0", "* scale", GUARD)
    (warning,) = (d for d in check_text(text, "k.py", Options()).diagnostics if d.code == "TL889")
    assert (warning.severity, text.split("\n")[warning.line - 1].strip()) == (
        "warning",
        "rows[i, j] = rows[i, j] * scale",
    )
    assert "only `if __name__ == ...` binds `scale`" in warning.message


@pytest.mark.parametrize(
    "text",
    [
        kernel(tail=GUARD),
        "scale = 1.0\n" + kernel("* 2.0", "* scale", GUARD),
        kernel("* 2.0", "* scale", GUARD.replace("if __name__", "scale = 1.0\nif __name__")),
        kernel("sums = T", "scale = 3.0\nsums = T", GUARD),
    ],
)
def test_names_that_an_import_binds_too(text: str) -> None:
    assert said(check_text(text, "k.py", Options())) == []
