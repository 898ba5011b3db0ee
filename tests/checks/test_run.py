"""All checks together."""

from __future__ import annotations

from tests.checks.cube_vector import LANDING, PRODUCT, STEP, STORE, TWO_WAY, check, loop
from tests.checks.support import LOAD, SPLIT, TILES, findings, source
from tests.checks.support import STORE as STORE_B
from tl2npu.checks.run import CHECKS
from tl2npu.codes import CODES
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.kernel.factory import FileKernels
from tl2npu.source.index import Index


def test_findings_come_in_text_order_and_once() -> None:
    body = TILES + LOAD + "T.tile.sigmoid(b, a)\nT.reduce_max(a, b, dim=0)\nT.tile.sigmoid(a, b)\n" + STORE_B
    text = source(body)
    found = [f for f in findings(text) if f.code != "TL812"]
    assert [f.code for f in found] == ["TL832", "TL833", "TL832"]
    assert all(f.code in CODES for f in found)


def test_a_prim_func_without_a_launch_has_no_findings() -> None:
    text = source("pass").replace(f"with {SPLIT}:", "if True:")
    assert findings(text) == []


def test_every_code_of_the_checks_is_in_the_catalogue() -> None:
    """A code that a check yields and no compiler version holds would never be seen."""
    held = {code for compiler in COMPILERS.values() for code in compiler.limits}
    assert held <= set(CODES)
    assert len(CHECKS) == len(set(CHECKS))


def test_attention_under_both_thread_counts() -> None:
    body = (TWO_WAY, LANDING, loop(STEP), STORE)
    assert check(*body) == []
    assert check(*body, launch=SPLIT.replace("2", "1")) == []
    assert check(PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE) == []


def test_one_kernel_of_a_file_with_two() -> None:
    """Both kernels of a file are read from one index; their findings do not mix."""
    text = source(TILES + LOAD + "T.tile.exp(b, a)\n" + STORE_B)
    second = source(TILES + "T.tile.sigmoid(b, a)\n").replace("factory", "other").split("\n", 2)[2]
    file = FileKernels(Index.parse(text + second))
    assert len(file.located) == 2
