"""Two programs in two Scopes become one text that means the same."""

from __future__ import annotations

import pytest

from tests.passes.expert import two_way
from tests.passes.support import (
    CV_PARAMS,
    developer,
    gemm_file,
    migrated,
    only,
    right_or_refused,
    same_results,
    vector_file,
)
from tl2npu.results import SelfCheck


def kernel_text(text: str) -> str:
    return text.split("with T.Kernel")[1]


def test_loops_that_wait_for_each_other_become_one() -> None:
    old = two_way()
    new = developer(old)
    same_results(old, new)
    assert "Scope" not in new
    assert "flag" not in new
    assert kernel_text(new).count("for ") == 1
    assert "TL307" in {change.code for change in migrated(old).changes}


@pytest.mark.parametrize(
    ("cube", "vector"),
    [
        ("for i in T.serial(4):", "for j in T.serial(4):"),
        ("for i in T.serial(4):", "for _ in T.serial(4):"),
        ("for i in range(4):", "for k in range(2 + 2):"),
        ("for i in T.serial(4):", "for i in T.serial(0, 4):"),
    ],
)
def test_other_names_of_the_loop_variable(cube: str, vector: str) -> None:
    old = two_way(cube_loop=cube, vector_loop=vector)
    new = developer(old)
    same_results(old, new)
    assert kernel_text(new).count("for ") == 1


@pytest.mark.parametrize(
    ("cube", "vector"),
    [
        ("for i in T.serial(4):", "for i in T.serial(3):"),
        ("for i in T.serial(4):", "for i in T.serial(1, 5):"),
        ("for i in T.serial(0, 4, 2):", "for i in T.serial(4):"),
        ("for i in T.Pipelined(4, num_stages=2):", "for i in T.serial(4):"),
    ],
)
def test_loops_that_run_differently_are_not_joined(cube: str, vector: str) -> None:
    text = two_way(cube_loop=cube, vector_loop=vector)
    result = migrated(text)
    assert "TL307" not in {change.code for change in result.changes}
    assert only(result).disposition == "refused"  # their flags order nothing that one text could say


# Names mean one thing per core in the old text and one thing altogether in the new one -------------------------------

NAMES = {
    "the same name for two values": {
        "cube_start": "off = i * 16",
        "k_row": "off",
        "w_row": "off",
        "vector_late": "off = i * 3",
    },
    "the same name for the same value": {
        "cube_start": "off = i * 16",
        "k_row": "off",
        "w_row": "off",
        "vector_late": "off = i * 16",
    },
    "a value that is carried on": {
        "cube_top": "off = 0",
        "k_row": "off",
        "w_row": "off",
        "cube_late": "",
        "vector_late": "off = 32",
    },
    "counters": {
        "cube_top": "n = 0",
        "k_row": "n",
        "w_row": "n",
        "vector_top": "n = 16",
        "vector_late": "T.tile.add(t, t, n)",
    },
    "a name that is added to": {"cube_top": "n = 0", "w_row": "n", "vector_late": "n = 16\nn += 16"},
    "an outer variable in the cube": {
        "around": "for h in T.serial(2):",
        "cube_loop": "for _ in T.serial(4):",
        "vector_loop": "for h in T.serial(4):",
        "k_row": "h * 16",
        "w_row": "h * 16",
    },
    "buffers of the same name": {
        "cube_top": 'x = T.alloc_L1((16, 64), "float16")\nT.copy(B[0, 0], x)',
        "cube_late": "T.gemm_v0(q_l1, x, s_l0, transpose_B=True, init=True)",
        "vector_late": 'x = T.alloc_ub((16, 16), "float32")\nT.tile.fill(x, 1.0)\nT.tile.add(t, t, x)',
    },
}


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("case", NAMES)
def test_names_of_both_cores(case: str, threads: str) -> None:
    old = two_way(**NAMES[case])
    if right_or_refused(old, threads) and case == "buffers of the same name":
        assert kernel_text(migrated(old).new_text or "").count(" x = ") < 2, "the compiler goes by buffer names"


def test_comments_in_scopes_stay() -> None:
    new = developer(
        two_way(
            cube_top="# load the queries",
            vector_late="# scale\nT.tile.mul(t, t, 2.0)  # twice",
            between="# now the vector core",
        )
    )
    for comment in ("# load the queries", "# scale", "# twice", "# now the vector core"):
        assert comment in new


def test_statements_of_one_core_keep_their_order() -> None:
    old = two_way(vector_late="T.tile.add(t, t, 1.0)\nT.tile.mul(t, t, 2.0)\nT.tile.sub(t, t, 3.0)")
    new = developer(old)
    same_results(old, new)
    places = [new.index(f"T.tile.{name}(t, t") for name in ("add", "mul", "sub")]
    assert places == sorted(places)


TWICE = """
a = T.alloc_L1((32, 64), "float16")
b = T.alloc_L1((64, 64), "float16")
p_l1 = T.alloc_L1((32, 64), "float16")
s_l0 = T.alloc_L0C((32, 64), "float32")
o_l0 = T.alloc_L0C((32, 64), "float32")
s = T.alloc_ub((16, 64), "float32")
p = T.alloc_ub((16, 64), "float16")
o = T.alloc_ub((16, 64), "float32")
with T.Scope("C"):
    T.copy(A[cid * 32, 0], a)
    T.copy(B, b)
    T.gemm_v0(a, b, s_l0, init=True)
    T.copy(s_l0, ws_s[cid, 0, 0])
    T.set_cross_flag("FIX", 0)
    T.wait_cross_flag(1)
    T.copy(ws_p[cid, 0, 0], p_l1)
    T.gemm_v0(p_l1, b, o_l0, init=True)
    T.copy(o_l0, ws_s[cid, 0, 0])
    T.set_cross_flag("FIX", 2)
with T.Scope("V"):
    T.wait_cross_flag(0)
    T.copy(ws_s[cid, vid * 16, 0], s)
    T.copy(s, p)
    T.copy(p, ws_p[cid, vid * 16, 0])
    T.set_cross_flag("MTE3", 1)
    T.wait_cross_flag(2)
    T.copy(ws_s[cid, vid * 16, 0], o)
    T.tile.add(o, o, s)
    T.copy(o, O[cid * 32 + vid * 16, 0])
"""


def test_a_workspace_that_is_filled_twice() -> None:
    """The cube core writes ``ws_s`` again behind the vector core's first read, as the flags say."""
    params = (*CV_PARAMS[:3], 'ws_s: T.Tensor((2, 32, 64), "float32")', 'ws_p: T.Tensor((2, 32, 64), "float16")')
    old = gemm_file(TWICE, params=params, jit="out_idx=[2], workspace_idx=[3, 4], pass_configs=pass_configs")
    result = migrated(old)
    assert only(result).target == "fallback"
    assert only(result).checked == SelfCheck(True)
    assert result.new_text is not None
    same_results(old, result.new_text)


def test_a_vector_kernel_in_a_scope() -> None:
    old = vector_file(
        'a = T.alloc_ub((16, 64), "float32")\nwith T.Scope("V"):\n    # rows\n'
        "    T.copy(A[cid * 32 + vid * 16, 0], a)\n"
        "    T.barrier_all()\n    T.tile.exp(a, a)\n    T.barrier_all()\n    T.copy(a, O[cid * 32 + vid * 16, 0])",
        head="pass_configs = {}\n",
    )
    new = developer(old)
    same_results(old, new)
    assert "# rows" in new


def test_scopes_one_after_the_other() -> None:
    text = two_way().replace("    T.tile.fill(acc, 0.0)\n", "    pass\n", 1)
    text = text.replace(
        'with T.Scope("C"):',
        'with T.Scope("V"):\n                T.tile.fill(acc, 0.0)\n            with T.Scope("C"):',
        1,
    )
    same_results(text, developer(text))


# An inner loop hides the variable of an outer one only inside itself: that is the rule of the script parser, not of the
# Python that the emulator runs, so these are judged by their text.
HIDDEN = {
    "an outer variable in the vector core": {
        "around": "for h in T.serial(2):",
        "cube_loop": "for h in T.serial(4):",
        "vector_loop": "for _ in T.serial(4):",
        "k_row": "h * 16",
        "w_row": "h * 16",
        "vector_late": "T.tile.mul(t, t, h)",
    },
    "an outer variable that both shadow": {
        "around": "for i in T.serial(2):",
        "vector_loop": "for j in T.serial(4):",
        "vector_late": "T.tile.mul(t, t, i)",
    },
}


@pytest.mark.parametrize("case", HIDDEN)
def test_an_outer_variable_keeps_its_meaning(case: str) -> None:
    new = kernel_text(developer(two_way(**HIDDEN[case])))
    outer = "h" if "vector core" in case else "i"
    assert f"for {outer}_cube in T.serial(4):" in new
    assert f"B[{outer}_cube * 16, 0]" in new
    assert f"T.tile.mul(t, t, {outer})" in new
