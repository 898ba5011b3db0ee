"""TL612: pipelined loops over both cores. Results are judged by the old kernel, texts by what the compiler can keep."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tl2npu.migration import migrate_text
from tl2npu.options import Options

RNG = np.random.default_rng(11)
Q = RNG.standard_normal((32, 32)).astype(np.float16)
K = RNG.standard_normal((128, 32)).astype(np.float16)
INPUTS = {"Q": Q, "K": K}
PARAMS = 'Q: T.Tensor((32, 32), "float16"), K: T.Tensor((128, 32), "float16"), C: T.Tensor((32, 32), "float32")'
TILES = """
q = T.alloc_shared((32, 32), "float16")
k = T.alloc_shared((32, 32), "float16")
s = T.alloc_fragment((32, 32), "float32")
p = T.alloc_fragment((32, 32), "float16")
m = T.alloc_fragment((32,), "float32")
o = T.alloc_fragment((32, 32), "float32")
T.copy(Q, q)
T.clear(o)
"""
LOOP = "for i in T.Pipelined(4, num_stages=2):\n"
STEP = """
    T.copy(K[i * 32, 0], k)
    T.clear(s)
    T.gemm(q, k, s, transpose_B=True)
    T.reduce_max(s, m, dim=1)
    {early}
    T.copy(s, p)
    for a, b in T.Parallel(32, 32):
        o[a, b] = o[a, b] * m[a]
    T.gemm(p, k, o)
"""
STORE = "T.copy(o, C)\n"


def kernel(loop: str = LOOP, early: str = "", tiles: str = TILES, after: str = "") -> str:
    step = STEP.format(early=early.replace("\n", "\n    "))
    return gpu_file(PARAMS, "".join((tiles, loop, step, after, STORE)))


@pytest.mark.parametrize(
    ("loop", "head"),
    [
        (LOOP, "T.Pipelined(4, num_stages=2)"),
        ("for i in T.Pipelined(4, num_stages=4):\n", "T.Pipelined(4, num_stages=4)"),
        ("for i in T.Pipelined(0, 4, num_stages=2):\n", "T.Pipelined(0, 4, num_stages=2)"),
        ("for i in T.Pipelined(T.ceildiv(128, 32), num_stages=2):\n", "T.Pipelined(T.ceildiv(128, 32), num_stages=2)"),
        ("for i in T.Pipelined(start=0, stop=4, num_stages=2):\n", "T.Pipelined(0, 4, num_stages=2)"),
        ("for i in T.Pipelined(4, num_stages=2, order=[0], stage=[0]):\n", "T.Pipelined(4, num_stages=2)"),
        ("for i in T.Pipelined(4, num_stages=3):\n", "T.serial(4)"),  # the last turn would be dropped
        ("for i in T.Pipelined(4, num_stages=1):\n", "T.serial(4)"),
        ("for i in T.Pipelined(4):\n", "T.serial(4)"),
        ("for i in T.Pipelined(1, 3, num_stages=2):\n", "T.serial(1, 3)"),
    ],
)
def test_turns_and_stages(loop: str, head: str) -> None:
    assert f"for i in {head}:" in agree(kernel(loop), INPUTS, atol=5e-1, rtol=1e-2)


def test_what_lives_on_moves_and_rows_are_copied() -> None:
    new = agree(kernel(), INPUTS, atol=5e-1, rtol=1e-2)
    lines = [line.strip() for line in new.splitlines()]
    assert lines.index("T.copy(m, m_now)") > lines.index("T.copy(o_l0c, o_part)")
    order = ["T.copy(m, m_now)", "o[a, b] = o[a, b] * m_now[a]", "o[a, b] += o_part[a, b]"]
    assert sorted(order, key=lines.index) == order


@pytest.mark.parametrize(
    "early",
    [
        "if i > 1:\n    for a, b in T.Parallel(32, 32):\n        s[a, b] = s[a, b] + 1.0",  # runs twice
        "w = T.float32(i)\nfor a, b in T.Parallel(32, 32):\n    s[a, b] = s[a, b] + w",  # has no value in a part
        "for a, b in T.Parallel(32, 32):\n    s[a, b] = s[a, b] + o[a, b]",  # needs the sum before it is complete
        "for a, b in T.Parallel(32, 32):\n    s[a, b] = s[a, b] - m[a]",  # reads rows where they are made
    ],
)
def test_turns_where_stages_would_be_wrong(early: str) -> None:
    assert "for i in T.serial(4):" in agree(kernel(early=early), INPUTS, atol=5e-1, rtol=2e-2)


def test_two_vectors_of_one_statement() -> None:
    more = TILES + 'w = T.alloc_fragment((32,), "float32")\n'
    early = "T.reduce_sum(s, w, dim=1)"
    text = kernel(early=early, tiles=more).replace("o[a, b] * m[a]", "o[a, b] * m[a] + w[a]")
    new = agree(text, INPUTS, atol=5e-1, rtol=1e-2)
    assert "o[a, b] = o[a, b] * m_now[a] + w_now[a]" in new
    assert "T.Pipelined(4, num_stages=2)" in new


def test_a_vector_that_no_turn_changes() -> None:
    """Two parts read rows of ``w``: one of them has a copy from before the loop."""
    more = TILES + 'w = T.alloc_fragment((32,), "float32")\nT.fill(w, 0.5)\n'
    early = "for a, b in T.Parallel(32, 32):\n    s[a, b] = s[a, b] * w[a]"
    text = kernel(early=early, tiles=more).replace("o[a, b] * m[a]", "o[a, b] * w[a]")
    new = agree(text, INPUTS, atol=5e-1, rtol=1e-2)
    assert "T.Pipelined(4, num_stages=2)" in new
    assert new.index("T.copy(w, w_now)") < new.index("T.Pipelined")
    assert "s[a, b] = s[a, b] * w[a]" in new
    assert "o[a, b] * w_now[a]" in new


def test_the_report_says_why_a_loop_is_plain() -> None:
    branch = "if i > 1:\n    for a, b in T.Parallel(32, 32):\n        s[a, b] = s[a, b] + 1.0"
    for text, why in (
        (kernel(early=branch), "an `if` in it is decided at run time"),
        (kernel("for i in T.Pipelined(4, num_stages=3):\n"), "its turns do not come out even in its stages"),
        (kernel("for i in T.Pipelined(4):\n"), "it is given no more than one stage"),
        (kernel("for i in T.Pipelined(bx + 3, num_stages=2):\n"), "not known when the kernel is built"),
    ):
        result = migrate_text(text, "kernel.py", Options())
        assert any(change.code == "TL139" and why in change.message for change in result.changes)


def test_a_vector_that_is_used_behind_the_loop() -> None:
    """It has no versions: with stages the second turn would overwrite the first one's maxima."""
    after = "for a, b in T.Parallel(32, 32):\n    o[a, b] = o[a, b] + m[a]\n"
    assert "for i in T.serial(4):" in agree(kernel(after=after), INPUTS, atol=5e-1, rtol=1e-2)


def test_loads_of_a_tile_with_versions_end_with_their_tensor() -> None:
    """Both products read ``k``; its last load has 16 rows, and only the first version of a tile in L1 is cleared."""
    short = PARAMS.replace("(128, 32)", "(112, 32)")
    text = gpu_file(short, "".join((TILES, LOOP, STEP.format(early=""), STORE)))
    new = agree(text, {"Q": Q, "K": K[:112]}, atol=5e-1, rtol=1e-2)
    assert "for i in T.serial(4):" in new


SIZED = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[2])
def factory(n, causal=False, block=32, stages=2):
    @T.prim_func
    def main(
        Q: T.Tensor((block, block), "float16"),
        K: T.Tensor((n, block), "float16"),
        C: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
{body}
    return main
"""


def sized(turns: str) -> str:
    loop = f"for i in T.Pipelined({turns}, num_stages=stages):\n"
    body = "".join((TILES, loop, STEP.format(early=""), STORE)).replace("32", "block").replace("floatblock", "float32")
    return SIZED.format(body="\n".join(" " * 12 + line for line in body.splitlines() if line.strip()))


def test_what_the_factory_asserts_is_not_asked_again() -> None:
    asserted = sized("n // block").replace("    @T.prim_func", "    assert n % block == 0\n\n    @T.prim_func")
    assert "stages > 1 and (n // block) % stages == 0 else 0" in " ".join(migrated(asserted).split())


@pytest.mark.parametrize(
    ("turns", "head"),
    [
        ("T.ceildiv(n, block)", "npu_stages = stages if stages > 1 and n % (stages * block) == 0 else 0"),
        ("n // block", "npu_stages = stages if stages > 1 and (n // block) % stages == 0 and n % block == 0 else 0"),
        ("bx + 4", None),
    ],
)
def test_sizes_of_the_factory(turns: str, head: str | None) -> None:
    new = migrated(sized(turns))
    if head is None:
        assert "T.serial" in new
        assert "num_stages=" not in new
    else:
        assert head in " ".join(new.split())
        assert f"T.Pipelined({turns}, num_stages=npu_stages)" in new


@pytest.mark.parametrize(("second", "head"), [("k", "T.serial(4)"), ("r", "T.Pipelined(4, num_stages=2)")])
def test_a_tile_of_two_pipelined_loops_has_one_version(second: str, head: str) -> None:
    """The compiler would load both turns of ``k`` in front of the first product (TL877)."""
    tiles = TILES + f'{second} = T.alloc_shared((32, 32), "float16")\n' * (second != "k")
    turn = "    T.copy(K[i * 32, 0], {0})\n    T.gemm(q, {0}, o, transpose_B=True)\n"
    new = agree(gpu_file(PARAMS, tiles + "".join(LOOP + turn.format(tile) for tile in ("k", second)) + STORE), INPUTS,
                atol=5e-1, rtol=1e-2)  # fmt: skip
    assert new.count(f"for i in {head}:") == 2


@pytest.mark.parametrize(
    ("turns", "line"),
    [
        ("n // 32", ""),
        ("T.ceildiv(n, 32)", ""),
        ("n // 32 - 1", 'assert int(n // 32 - 1) > 0, "no turn for the product"'),
    ],
)
def test_a_product_of_no_turns_is_never_launched(turns: str, line: str) -> None:
    """L0C holds anything until a product has begun with ``init``."""
    params = PARAMS.replace("128", "n")
    body = (
        TILES
        + f"for i in T.serial({turns}):\n    T.copy(K[i * 32, 0], k)\n    T.gemm(q, k, o, transpose_B=True)\n"
        + STORE
    )
    new = migrated(gpu_file(params, body, args="n=64"))
    assert [text.strip() for text in new.splitlines() if "assert" in text] == [line] * bool(line)
