"""Forms that no pass rewrites: a check refuses them, or tells of them."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file, refused, result_of

PARAMS = 'X: T.Tensor((4, 64), "float32"), L: T.Tensor((4,), "int32"), Y: T.Tensor((4, 64), "float32")'
LATE = 'x = T.alloc_shared((64,), "float32")\nn = T.min(T.max(L[bx], 0), 64)\n'
FACTORS = 'A: T.Tensor((n, 32), "float16"), B: T.Tensor((n, 16), "float16"), C: T.Tensor((32, 16), "float32")'
TURNS = """
a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 16), "float16")
c = T.alloc_fragment((32, 16), "float32")
T.clear(c)
for i in T.serial(T.ceildiv(n, 64)):
    for j in T.serial(2):
        T.copy(A[i * 64 + j * 32, 0], a)
        T.copy(B[i * 64 + j * 32, 0], b)
        T.gemm(a, b, c, transpose_A=True)
T.copy(c, C)
"""
CALL = "\n\nimport torch\n\n\ndef run(x, y):\n    return factory(x.shape[0])(x, y)\n\n\nrun(torch.ones({}, 32), y)\n"


@pytest.mark.parametrize(
    "body",
    [
        "T.clear(x)\nT.copy(X[bx, 0:n], x[0:n])\nT.copy(x, Y[bx, 0])",
        "T.copy(X[bx, 0], x)\nT.copy(x[0:n], Y[bx, 0:n])",
    ],
)
def test_parts_of_a_late_size(body: str) -> None:
    text = gpu_file(PARAMS, LATE + body, launch="T.Kernel(4, threads=128) as bx")
    assert "TL741" in {code for code, _ in refused(text)}


@pytest.mark.parametrize(("rows", "severity"), [(70, "error"), (128, "warning")])
def test_turns_behind_the_end(rows: int, severity: str) -> None:
    """Of 70 rows the last part begins in row 96."""
    text = gpu_file(FACTORS, TURNS, launch="T.Kernel(1, threads=128) as bx", args="n", jit="@tilelang.jit")
    found = result_of(text + CALL.format(rows)).diagnostics
    assert ("TL885", severity) in {(one.code, one.severity) for one in found}
