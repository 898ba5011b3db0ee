"""All checks together."""

from __future__ import annotations

import libcst as cst

from tests.checks.cube_vector import LANDING, PRODUCT, STEP, STORE, TWO_WAY, check, loop
from tests.checks.support import LOAD, SPLIT, TILES, findings, source
from tests.checks.support import STORE as STORE_B
from tl2npu.checks.run import CHECKS, _ranks
from tl2npu.codes import CODES
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.source.index import Index
from tl2npu.source.tree import walk


def test_findings_come_in_text_order_and_once() -> None:
    tiles = TILES + "c = T.alloc_ub((64,), 'float32')\n"
    body = tiles + LOAD + "T.tile.sigmoid(b, a)\nT.reduce_max(a, c, dim=0)\nT.tile.sigmoid(a, b)\n" + STORE_B
    text = source(body)
    found = [f for f in findings(text) if f.code != "TL812"]
    assert [f.code for f in found] == ["TL832", "TL833", "TL832", "TL780"]
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


GPU = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def doubled(n):
    @T.prim_func
    def main(X: T.Tensor((n, 64), "float16"), Y: T.Tensor((n, 64), "float16")):
        with T.Kernel(n // 64, threads=128) as bx:
            x = T.alloc_fragment((64, 64), "float16")
            T.copy(X[bx * 64, 0], x)
            for i, j in T.Parallel(64, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, Y[bx * 64, 0])

    return main
"""


def test_a_gpu_kernel_is_told_as_one() -> None:
    found = check_text(GPU, "k.py", Options()).diagnostics
    assert [(d.code, d.line) for d in found] == [("TL815", 10)]
    assert "a GPU kernel" in found[0].message
    assert "`tl2npu migrate`" in found[0].message


def test_one_that_was_begun_by_hand_is_judged_in_full() -> None:
    begun = GPU.replace("T.copy(x, Y", "T.tile.exp(x, x)\n            T.copy(x, Y")
    codes = {d.code for d in check_text(begun, "k.py", Options()).diagnostics}
    assert {"TL815", "TL816"} < codes


def test_one_kernel_of_a_file_with_two() -> None:
    """Both kernels of a file are read from one index; their findings do not mix."""
    text = source(TILES + LOAD + "T.tile.exp(b, a)\n" + STORE_B)
    second = source(TILES + "T.tile.sigmoid(b, a)\n").replace("factory", "other").split("\n", 2)[2]
    file = FileKernels(Index.parse(text + second))
    assert len(file.located) == 2


_ORDER = """
@d(a0)
def f(a1, b=a2):
    x = a3; y = a4
    with a5 as c:
        for i in a6:
            if a7:
                z = a8
            elif a9:
                z = g(b0)
            else:
                z = b1
    while b2: z = b3
"""


def test_statements_tell_the_order_as_positions_do() -> None:
    index = Index.parse(_ORDER)
    nodes = [node for node in walk(index.module) if isinstance(node, cst.Name) and node.value[1:].isdigit()]
    pairs = [(left, right) for left in nodes for right in nodes]
    assert len(pairs) > 100
    assert any(index.statement(left) is index.statement(right) for left, right in pairs if left is not right)
    for left, right in pairs:
        ranks = _ranks(index, [left, right])
        assert ranks is not None
        places = [(index.position(node).line, index.position(node).column) for node in (left, right)]
        assert (ranks[id(left)] < ranks[id(right)]) == (places[0] < places[1])


def test_statements_do_not_always_tell_the_order() -> None:
    index = Index.parse("try:\n    y = 1\nexcept E:\n    pass\n")
    names = {node.value: node for node in walk(index.module) if isinstance(node, cst.Name)}
    assert _ranks(index, [names["y"], names["E"]]) is None  # the `try` begins before `y`
    assert _ranks(index, [names["y"], cst.Name("other")]) is None
