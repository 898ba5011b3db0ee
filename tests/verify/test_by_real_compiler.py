"""``--backend compile`` with a real TileLang-Ascend: ``TL2NPU_TILELANG_PYTHON`` names an interpreter that has it."""

from __future__ import annotations

import os

import pytest

from tests.verify.support import HEAD, source
from tl2npu.options import Backend
from tl2npu.verified import VerifyResult
from tl2npu.verify.backends import verify
from tl2npu.verify.settings import Settings

PYTHON = os.environ.get("TL2NPU_TILELANG_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="TL2NPU_TILELANG_PYTHON names no interpreter with TileLang-Ascend")

KERNEL = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def scale(rows, columns):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 32, threads=2, is_npu=True) as cid:
            x = T.alloc_ub((32, columns), "float32")
            y = T.alloc_ub((32, columns), "float32")
            T.copy(X[cid * 32, 0], x)
            {statement}
            T.copy(y, Y[cid * 32, 0])

    return main


scale(64, {columns})
"""
GOOD = "T.tile.mul(y, x, 0.5)"


def judged(statement: str = GOOD, columns: int = 64, **given: str) -> tuple[VerifyResult, str]:
    if os.environ.get("TL2NPU_TILELANG_BRANCH", "") == "npuir":
        pytest.skip("these kernels are for the other branch")
    text = HEAD + KERNEL.format(statement=statement, columns=columns)
    backend = Backend("compile", python=PYTHON, **given)  # type: ignore[arg-type]
    result = verify(source(text, "old.py"), source(text, "new.py"), Settings(backend=backend, check=None))
    return result, "; ".join(f"{d.code} {d.message}" for d in result.diagnostics)


@pytest.mark.parametrize("target", ["ascendc", "pto"])
@pytest.mark.parametrize("platform", ["A2", "A3", "A5"])
def test_accepted(target: str, platform: str) -> None:
    result, said = judged(target=target, platform=platform)
    assert (result.ok, said) == (True, "")
    assert any("is that of the old kernel" in note for note in result.notes)


def test_rejected_by_the_front_end_a_pass_and_by_death() -> None:
    line = (HEAD + KERNEL).split("\n").index("            {statement}") + 1
    _, said = judged("T.tile.no_such_operator(y, x)")
    assert said.startswith(f"TL930 new.py line {line}: the compiler rejects the kernel: ")
    assert "no_such_operator" in said
    _, said = judged("y[0, 0] = T.exp(x[0, 0])")
    assert said.startswith(f"TL930 new.py line {line}: ")
    assert "Unresolved call Op(tir.exp)" in said
    assert "TL733" in said
    _, said = judged(columns=65536)  # 8 MiB for each of two tiles
    assert "TL801" in said
    assert said.startswith(("TL930", "TL931"))
