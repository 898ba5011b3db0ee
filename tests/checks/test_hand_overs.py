"""On-chip copies (facts 2)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import LANDING, PRODUCT, STEP, STORE, TWO_WAY, check, loop, warned
from tests.checks.support import ONE, PLAIN, SPLIT


@pytest.mark.parametrize("launch", [SPLIT, ONE, PLAIN])
@pytest.mark.parametrize(
    "reader",
    [
        "T.tile.exp(y, x)",
        "T.tile.add(x, x, x)\nT.copy(x, y)",
        "for i, j in T.Parallel(32, 64):\n    y[i, j] = x[i, j] * 2.0",
        "for i, j in T.Parallel(32, 64):\n    y[i, j] = x[i, j] * s[i]",
        "T.reduce_max(x, s, dim=-1)",
        "T.copy(x, h)",
        "T.copy(x, O[cid * 32, 0])",
    ],
)
def test_whole_tile_readers(launch: str, reader: str) -> None:
    assert check("T.tile.fill(s, 1.0)", PRODUCT, "T.copy(c, x)", reader, STORE, launch=launch) == []


def test_without_threads_both_vector_cores_do_the_work() -> None:
    body = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", STORE)
    assert warned(*body) == []
    assert warned(*body, launch=PLAIN) == ["TL813"]
    to_cube = ("T.tile.fill(h, 1.0)", "T.copy(h, l)", "T.copy(B[0, 0], r)", "T.gemm_v0(l, r, c, init=True)")
    assert check(*to_cube) == []
    assert check(*to_cube, launch=PLAIN) == ["TL856"]


@pytest.mark.parametrize(
    ("copies", "found"),
    [
        ("T.copy(c, x)\nT.copy(c, y)", "TL840"),
        ("T.copy(c, x)\nT.copy(d, x)", "TL840"),
        ("T.copy(c, x)\nT.copy(c, x)", "TL840"),
        ("T.copy(c, x)\nT.copy(d, y)", ""),
    ],
)
def test_one_source_one_landing(copies: str, found: str) -> None:
    second = 'd = T.alloc_fragment((32, 64), "float32")\nT.gemm_v0(l, r, d, init=True)'
    got = check(PRODUCT, second, copies, "T.tile.add(y, x, y)", STORE)
    assert got == ([found] if found else [])


@pytest.mark.parametrize(
    ("copy", "found"),
    [
        ("T.copy(c, x[:, 0:64])", []),
        ("T.copy(c[:, 0:32], x[:, 0:32])", ["TL841"]),
        ("T.copy(c, narrow)", ["TL741", "TL841"]),
        ("T.copy(c, flat)", ["TL741", "TL843"]),
    ],
)
def test_whole_tiles_only(copy: str, found: list[str]) -> None:
    extra = 'narrow = T.alloc_ub((32, 32), "float32")\nflat = T.alloc_ub((2048,), "float32")'
    used = "T.tile.exp(narrow, narrow)\nT.tile.exp(flat, flat)\nT.tile.exp(x, x)"
    assert check(extra, PRODUCT, copy, used) == found


def test_tiles_of_a_size_known_at_run_time() -> None:
    extra = 'g = T.alloc_fragment((32, n), "float32")\nu = T.alloc_ub((32, n), "float32")'
    product = "T.gemm_v0(l, r, g, init=True)\nT.copy(g, u)\nT.tile.exp(u, u)"
    assert "TL843" in check(extra, PRODUCT, product, factory='n = T.symbolic("n")')
    assert check(extra, PRODUCT, product, args="n") == []


def test_dtypes_of_a_tile_for_the_cube() -> None:
    body = ("T.tile.fill(x, 1.0)", "T.copy(x, l)", "T.copy(B[0, 0], r)", "T.gemm_v0(l, r, c, init=True)")
    assert check(*body) == ["TL844"]
    assert check(*body, jit="out_idx=[3], target='pto'") == []
    half = (PRODUCT, "T.copy(c, h)", "T.copy(h, y)", "T.copy(y, O[cid * 32, 0])")
    assert check(*half) == []


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        ("for i in range(32):\n    T.tile.mul(x[i, :], x[i, :], s[i])", ["TL845"]),
        ("for i, j in T.Parallel(32, 64):\n    x[i, j] = x[i, j] * s[i]", ["TL845"]),
        ("for i, j in T.Parallel(32, 64):\n    x[i, j] = x[i, j] * 2.0", []),
        ("for i in range(32):\n    T.tile.mul(y[i, :], y[i, :], x[i, 0])", ["TL745", "TL845"]),
        ("for i, j in T.Parallel(32, 64):\n    y[i, j] = 1.0 - x[i, j]", ["TL845"]),
        ("for i in T.serial(32):\n    for j in T.serial(64):\n        y[i, j] = x[i, j]", ["TL845"]),
        ("T.tile.fill(x, 0.0)\nT.tile.exp(y, x)", ["TL845"]),
        ("T.tile.axpy(x, y, 2.0)\nT.tile.exp(y, x)", ["TL835"]),
        ("T.tile.exp(y, x)\nT.tile.axpy(x, y, 2.0)\nT.tile.exp(y, x)", []),
        ("T.tile.fill(y, 0.0)", ["TL845"]),
        ("if cid == 0:\n    T.tile.exp(y, x)", ["TL846"]),
    ],
)
def test_first_readers(reader: str, found: list[str]) -> None:
    assert check("T.tile.fill(s, 1.0)", PRODUCT, "T.copy(c, x)", reader, STORE) == found


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ("T.copy(h, p)", ["TL845"]),
        ("T.copy(h, p)\nT.tile.exp(k, h)", ["TL845", "TL780"]),
        ("T.copy(h, k)\nT.copy(k, p)", []),
        ("T.tile.exp(h, h)\nT.copy(h, p)", []),
    ],
)
def test_a_tile_that_goes_on_to_l1(between: str, found: list[str]) -> None:
    """A copy to L1 is a store to a workspace before loads are inserted: it would store what the tile held before."""
    tiles = """
p = T.alloc_shared((32, 64), "float16")
k = T.alloc_ub((32, 64), "float16")
o = T.alloc_fragment((32, 64), "float32")
"""
    store = "T.gemm_v0(p, r, o, init=True)\nT.copy(o, O[cid * 32, 0])\n"
    assert check(tiles, PRODUCT, "T.copy(c, h)", between, store) == found


def test_a_reader_in_a_row_loop_loads_the_tile_again_and_again() -> None:
    reader = "for i in range(32):\n    T.tile.add(y[i, :], y[i, :], x[i, :])"
    assert warned(PRODUCT, "T.copy(c, x)", reader, STORE) == ["TL845"]
    assert check(PRODUCT, "T.copy(c, x)", reader, STORE) == []


def test_one_condition_around_everything() -> None:
    inside = loop(PRODUCT + "T.copy(c, x)\nT.tile.exp(y, x)", "if cid > 0:")
    assert check(inside, STORE) == []
    outside = loop(PRODUCT + "T.copy(c, x)", "if cid == 0:")
    assert check(outside, "T.tile.exp(y, x)", STORE) == ["TL846"]


@pytest.mark.parametrize(
    ("readers", "found"),
    [
        ("if flag:\n    T.tile.exp(x, x)\nT.tile.exp(y, x)", []),
        ("if flag:\n    T.tile.exp(x, x)\nelse:\n    T.tile.mul(x, x, 2.0)\nT.tile.exp(y, x)", []),
        ("if flag:\n    T.tile.exp(x, x)\nfor i in range(32):\n    T.tile.mul(x[i, :], x[i, :], s[i])", ["TL845"]),
        ("if flag:\n    for i in range(32):\n        T.tile.mul(x[i, :], x[i, :], s[i])\nT.tile.exp(y, x)", ["TL845"]),
        ("if flag:\n    T.tile.exp(x, x)\nT.tile.fill(x, 0.0)\nT.tile.exp(y, x)", ["TL845"]),
        ("if flag:\n    T.tile.exp(y, x)", ["TL845"]),
        ("if cid > flag:\n    T.tile.exp(x, x)\nT.tile.exp(y, x)", ["TL846"]),
    ],
)
def test_a_condition_of_the_factory_is_none_of_the_kernel(readers: str, found: list[str]) -> None:
    """Each outcome is a kernel of its own, with a first reader of its own."""
    assert check("T.tile.fill(s, 1.0)", PRODUCT, "T.copy(c, x)", readers, STORE, args="flag") == found


@pytest.mark.parametrize("late", ["n > 64", "n > 64 and flag", "rows > 1"])
def test_a_condition_of_a_launch_is_one_of_the_kernel(late: str) -> None:
    """Of a size that is only known when the kernel is launched, the compiler has both arms."""
    readers = f"if {late}:\n    T.tile.exp(x, x)\nelse:\n    T.tile.mul(x, x, 2.0)\nT.tile.exp(y, x)"
    factory = 'n = T.symbolic("n")\nrows = T.ceildiv(n, 64)'
    body = ("T.tile.fill(s, 1.0)", PRODUCT, "T.copy(c, x)", readers, STORE)
    assert check(*body, args="flag", factory=factory) == ["TL846"]
    assert check(*body, args="flag, n", factory="rows = T.ceildiv(n, 64)") == []


def test_two_arms_read_one_tile() -> None:
    prepare = "T.tile.fill(h, 1.0)\nT.copy(B[0, 0], r)"
    arms = """
    T.copy(h, l)
    if cid == 0:
        T.gemm_v0(l, r, c, init=True)
    else:
        T.gemm_v0(l, r, c)
    """
    assert check(prepare, arms) == ["TL846"]
    assert check(prepare, "T.copy(h, l)\nT.gemm_v0(l, r, c, init=(cid == 0))") == []


def test_two_buffers_of_one_name() -> None:
    body = (PRODUCT, "T.copy(c, x)", "T.tile.exp(y, x)", 'x = T.alloc_ub((32, 64), "float32")', "T.tile.fill(x, 0.0)")
    assert check(*body) == ["TL847"]


def test_the_number_of_flags() -> None:
    def body(count: int, start: int = 0) -> str:
        lines = []
        for i in range(start, start + count):
            lines += [f'c{i} = T.alloc_fragment((32, 64), "float32")', f'u{i} = T.alloc_ub((32, 64), "float32")']
            lines += [f"T.gemm_v0(l, r, c{i}, init=True)", f"T.copy(c{i}, u{i})", f"T.tile.exp(u{i}, u{i})"]
        return "\n".join(lines)

    assert check(PRODUCT, body(11)) == []
    assert check(PRODUCT, body(12)) == ["TL869"]
    for condition, codes in (("causal", []), ("n_heads > 4", []), ("cid > 4", ["TL869"]), ("A[0, 0] > 0", ["TL869"])):
        arms = loop(body(6), f"if {condition}:") + "\n" + loop(body(6, 6), "else:")
        assert check(PRODUCT, arms, args="causal, n_heads") == codes
    for arms in ((body(12), "pass"), ("pass", body(12))):  # the arm that has them may be the one that is there
        text = loop(arms[0], "if causal:") + "\n" + loop(arms[1], "else:")
        assert check(PRODUCT, text, args="causal") == ["TL869"]


def test_a_landing_buffer_that_is_read_in_front_of_the_copy() -> None:
    """The compiler loads the tile there, once, and never where the copy stands."""
    straight = (PRODUCT, "T.copy(c, x)", "T.tile.add(y, x, x)", STORE)
    assert check("T.tile.fill(x, 1.0)", *straight) == []
    assert check("T.tile.fill(x, 1.0)\nT.tile.exp(x, x)", *straight) == ["TL845"]
    assert check("T.tile.fill(x, 1.0)\nT.copy(x, y)", *straight) == ["TL845"]


GEMM_FIRST = ("T.tile.fill(h, 1.0)", "T.copy(B[0, 0], r)", "T.gemm_v0(l, r, c, init=True)", "T.copy(h, l)")


def test_a_gemm_in_front_of_the_copy_of_its_operand() -> None:
    """The real compiler makes one program of both orders; another tile that is in the buffer is lost."""
    assert check(*GEMM_FIRST) == []
    assert check("T.copy(A[0, 0], l)", *GEMM_FIRST) == ["TL845"]


def test_what_a_turn_puts_into_the_landing_buffer_before_it_is_read() -> None:
    """In a loop the first reader may stand in front of the copy, but then it reads the tile and nothing else."""
    vector_first = "T.tile.exp(z, x)\n" + STEP.replace("T.tile.exp(z, x)\n", "")
    assert "TL845" not in check(TWO_WAY, LANDING, loop(vector_first), STORE)
    assert check(TWO_WAY, LANDING, loop("T.tile.fill(x, 0.0)\n" + vector_first), STORE) == ["TL845"]
    assert check(TWO_WAY, LANDING, loop("T.tile.fill(x, 0.0)\nT.tile.exp(x, x)\n" + STEP), STORE) == ["TL845"]
    assert check(TWO_WAY, LANDING, loop(STEP), STORE) == []
