"""``tl2npu check --target``: the limits of the code generator that is meant."""

from __future__ import annotations

import pytest

from tests.checks.support import PLAIN, source
from tl2npu.migration import check_text
from tl2npu.options import Backend, CodeGenerator, Options

PARAMS = 'A: T.Tensor((24, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((24, 64), "float32")'
BODY = """
a = T.alloc_L1((24, 64), "float16")
b = T.alloc_L1((64, 64), "float16")
c = T.alloc_L0C((24, 64), "float32")
T.copy(A[0, 0], a)
T.copy(B[0, 0], b)
T.gemm_v0(a, b, c, init=True)
T.copy(c, C[0, 0])
"""


@pytest.mark.parametrize(
    ("named", "asked", "severity"),
    [
        ("", None, "warning"),
        ("", "ascendc", "warning"),
        ("", "pto", "error"),
        ("pto", None, "error"),
        ("pto", "ascendc", "warning"),
        ("ascendc", "pto", "error"),
    ],
)
def test_rows_that_only_pto_rejects(named: str, asked: CodeGenerator | None, severity: str) -> None:
    jit = "out_idx=[2]" + (f', target="{named}"' if named else "")
    text = source(BODY, launch=PLAIN, params=PARAMS, jit=jit, keys=("AUTO_SYNC",))
    found = check_text(text, "k.py", Options(backend=Backend(target=asked))).diagnostics
    assert [(item.code, item.severity) for item in found if item.code == "TL899"] == [("TL899", severity)]
