"""Pipelined loops with hand-overs (facts 2, E23)."""

from __future__ import annotations

import pytest

from tests.checks.cube_vector import LANDING, STEP, STORE, TWO_WAY, check, loop
from tests.checks.support import errors


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("for k in T.Pipelined(4, num_stages=2):", []),
        ("for k in T.Pipelined(4, num_stages=4):", []),
        ("for k in T.Pipelined(4, num_stages=3):", ["TL875"]),
        ("for k in T.Pipelined(3, num_stages=2):", ["TL875"]),
        ("for k in T.Pipelined(3, num_stages=1):", []),
        ("for k in T.Pipelined(3):", []),
        ("for k in T.Pipelined(1, 5, num_stages=2):", ["TL875"]),
        ("for k in T.Pipelined(1, 5, num_stages=1):", []),
        ("for k in T.Pipelined(cid + 1, num_stages=2):", ["TL876"]),
        ("for k in T.Pipelined(cid + 1, num_stages=1):", []),
        ("for k in T.Pipelined(n, num_stages=2):", []),
    ],
)
def test_steps_and_stages(head: str, found: list[str]) -> None:
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE, args="n") == found


@pytest.mark.parametrize(
    ("call", "found"), [("factory(6, 2)", []), ("factory(6, 4)", ["TL875"]), ("factory(6, s)", [])]
)
def test_steps_and_stages_of_a_call(call: str, found: list[str]) -> None:
    head = "for k in T.Pipelined(n, num_stages=depth):"
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE, args="n, depth", tail=call) == found


def test_a_remainder_is_harmless_where_only_the_cube_works() -> None:
    cube = "T.copy(A[cid * 32, 0], l)\nT.gemm_v0(l, r, c, init=(k == 0))"
    body = ("T.copy(B[0, 0], r)", loop(cube, "for k in T.Pipelined(5, num_stages=2):"))
    assert check(*body, "T.copy(c, x)\nT.tile.exp(y, x)", STORE) == []


@pytest.mark.parametrize(
    ("head", "load", "after", "found"),
    [
        ("T.Pipelined(4, num_stages=2)", "A[k * 32, 0]", "", []),  # a version of `l` for each of the two turns
        ("T.Pipelined(4, num_stages=2)", "A[k * 32, 0]", "T.gemm_v0(l, r, c)", ["TL877"]),
        ("T.Pipelined(4, num_stages=3)", "A[k * 32, 0]", "T.copy(A[0, 0], l)\nT.gemm_v0(l, r, c)", ["TL877"]),
        ("T.Pipelined(4, num_stages=1)", "A[k * 32, 0]", "T.gemm_v0(l, r, c)", []),  # loaded when it has been used
        ("T.Pipelined(1, num_stages=2)", "A[k * 32, 0]", "T.gemm_v0(l, r, c)", []),
        ("T.Pipelined(n, num_stages=2)", "A[k * 32, 0]", "T.gemm_v0(l, r, c)", ["TL877"]),
        ("T.Pipelined(4)", "A[k * 32, 0]", "T.gemm_v0(l, r, c)", []),
        ("T.Pipelined(4, num_stages=2)", "X[k * 32 + 64, 0]", "", []),
        ("T.Pipelined(4, num_stages=2)", "X[k * 32 + 32, 0]", "", []),  # the turn's own rows, where it has read them
        ("T.Pipelined(4, num_stages=2)", "X[k * 32, 0]", "", ["TL877"]),  # the rows of the turn before
        ("T.Pipelined(4, num_stages=1)", "X[k * 32, 0]", "", ["TL877"]),
    ],
)
def test_loads_that_run_ahead(head: str, load: str, after: str, found: list[str]) -> None:
    """Generated for two stages: both tiles are loaded in front of the first product, into one `l` if it is used behind
    the loop; a store to ``X`` comes behind the next turn's load."""
    turn = f"T.copy({load}, l)\nT.gemm_v0(l, r, c, init=(k == 0))\nT.copy(c, X[k * 32 + 32, 0])"
    body = ("T.copy(B[0, 0], r)", loop(turn, f"for k in {head}:"), after)
    assert check(*body, "T.copy(c, x)\nT.tile.exp(y, x)", STORE, args="n") == found


def test_one_cross_core_pipeline() -> None:
    head = "for k in T.Pipelined(4, num_stages=2):"
    second = STEP
    for name in ("c", "x", "h", "p", "o", "z2"):
        second = second.replace(f"({name},", f"({name}_,").replace(f", {name})", f", {name}_)")
        second = second.replace(f", {name},", f", {name}_,")
    copies = """
    c_ = T.alloc_fragment((32, 64), "float32")
    o_ = T.alloc_fragment((32, 64), "float32")
    x_ = T.alloc_ub((32, 64), "float32")
    z2_ = T.alloc_ub((32, 64), "float32")
    h_ = T.alloc_ub((32, 64), "float16")
    p_ = T.alloc_shared((32, 64), "float16")
    """
    both = (loop(STEP, head), loop(second, head))
    assert check(TWO_WAY, LANDING, copies, *both, STORE) == ["TL878"]
    assert check(TWO_WAY, LANDING, copies, both[0], loop(second), STORE) == []


def test_state_that_two_stages_start_from() -> None:
    head = "for k in T.Pipelined(4, num_stages=2):"
    state = STEP.replace("T.tile.exp(z, x)", "T.tile.add(z, x, y)")
    assert check(TWO_WAY, LANDING, loop(state, head), STORE) == ["TL877"]
    assert check(TWO_WAY, LANDING, loop(state), STORE) == []


def test_what_no_step_changes_is_no_state() -> None:
    """Two stages read ``w``, which was filled before the loop: every copy of it holds the same."""
    head = "for k in T.Pipelined(4, num_stages=2):"
    reads = STEP.replace("T.tile.exp(z, x)", "T.tile.add(z, x, w)") + "T.tile.add(y, y, w)\n"
    tile = 'w = T.alloc_ub((32, 64), "float32")\nT.tile.fill(w, 1.0)\n'
    assert check(TWO_WAY, LANDING, tile, loop(reads, head), STORE) == []
    assert check(TWO_WAY, LANDING, tile, loop(reads + "T.tile.add(w, w, y)\n", head), STORE) == ["TL877", "TL780"]


HEAD = "for k in T.Pipelined(4, num_stages=2):"
ROWS = """
m = T.alloc_ub((32,), "float32")
w = T.alloc_ub((32,), "float32")
n = T.alloc_ub((32,), "float32")
T.tile.fill(w, 1.0)
"""
WITH_MAXIMA = STEP.replace("T.copy(z, h)", "T.reduce_max(z, m, dim=1)\nT.copy(z, h)")
PARALLEL = "for i, j in T.Parallel(32, 64):\n    y[i, j] = y[i, j] * {}[i]\n"
BY_HAND = "for i in T.serial(32):\n    T.tile.{}(y[i, :], y[i, :], {}[i])\n"


@pytest.mark.parametrize(
    ("rows", "one", "two"),
    [
        (PARALLEL.format("m"), ["TL874"], ["TL874"]),
        (PARALLEL.format("w"), [], []),
        ("T.copy(m, n)\n" + PARALLEL.format("n"), [], []),
        (BY_HAND.format("mul", "m"), [], []),
        (BY_HAND.format("add", "m"), [], []),
        (BY_HAND.format("sub", "m"), [], ["TL874"]),
        (BY_HAND.format("div", "m"), [], ["TL874"]),
    ],
)
def test_rows_of_a_vector_that_parts_share(rows: str, one: list[str], two: list[str]) -> None:
    """As generated: ``m.GetValue(stage * 16 + 2 * i)`` in T.Parallel, ``m.GetValue(i)`` for sub and div, and for mul
    and add ``m.GetValue(stage * 16 + i)``; a vector of one part is ``GetValue(i)`` in all of them."""
    for stages, found in ((1, one), (2, two)):
        head = f"for k in T.Pipelined(4, num_stages={stages}):"
        assert check(TWO_WAY, LANDING, ROWS, loop(WITH_MAXIMA + rows, head), STORE) == found
    assert check(TWO_WAY, LANDING, ROWS, loop(WITH_MAXIMA + rows), STORE) == []


def test_a_vector_without_versions() -> None:
    """Filled before the loop, ``m`` is one for all stages: the second turn overwrites it before the first reads it."""
    body = WITH_MAXIMA + BY_HAND.format("mul", "m")
    filled = ROWS + "T.tile.fill(m, 0.0)\n"
    assert check(TWO_WAY, LANDING, filled, loop(body, HEAD), STORE) == ["TL877"]
    assert check(TWO_WAY, LANDING, filled, loop(body, HEAD.replace("2)", "1)")), STORE) == []


@pytest.mark.parametrize("stages", [1, 2])
def test_what_the_parts_do_not_keep(stages: int) -> None:
    head = f"for k in T.Pipelined(4, num_stages={stages}):"
    branch = STEP.replace("T.copy(z, h)", "if k > 1:\n    T.tile.mul(z, z, 2.0)\nT.copy(z, h)")
    assert check(TWO_WAY, LANDING, loop(branch, head), STORE) == ["TL879"]
    assert check(TWO_WAY, LANDING, loop(branch), STORE) == []
    in_loop = "for g in T.serial(2):\n    if k > g:\n        T.tile.mul(z, z, 2.0)\nT.copy(z, h)"
    inner = STEP.replace("T.copy(z, h)", in_loop)
    assert check(TWO_WAY, LANDING, loop(inner, head), STORE) == []
    for value, found in (("k * 2", []), ("T.float32(k)", ["TL879"]), ("k * weight", ["TL879"]), ("k * n", [])):
        named = STEP.replace("T.copy(z, h)", f"q0 = {value}\nT.tile.mul(z, z, T.float32(q0))\nT.copy(z, h)")
        other = loop("T.tile.exp(y, y)", "for g in T.serial(n):")
        assert check(TWO_WAY, LANDING, loop(named, head), other, STORE, args="n, weight") == found


@pytest.mark.parametrize(
    ("stages", "call", "found"),
    [
        ("2 if n % 2 == 0 else 0", "factory(5, 2)", []),
        ("2 if n % 2 == 0 else 0", "factory(4, 2)", []),
        ("2 if n > 4 else 0", "factory(5, 2)", ["TL875"]),
        ("depth if depth > 1 and n % depth == 0 else 0", "factory(6, 4)", []),
        ("depth if depth > 1 and n > depth else 0", "factory(6, 4)", ["TL875"]),
        ("0 if n % 2 or not depth else 2", "factory(5, 2)", []),
        ("0 if not depth else 2", "factory(5, 2)", ["TL875"]),
    ],
)
def test_sizes_decide_the_stages(stages: str, call: str, found: list[str]) -> None:
    head = f"for k in T.Pipelined(n, num_stages={stages}):"
    assert check(TWO_WAY, LANDING, loop(STEP, head), STORE, args="n, depth", tail=call) == found


def test_the_end_of_a_tensor_in_a_tile_with_versions() -> None:
    """Both products read ``r``, which has a version for each stage; the first has four whole tiles of 64 rows."""
    tile = STEP.replace("T.copy(B[0, 0], r)", "T.copy(X[k * {step}, 0], r)").replace("(p, q, o", "(p, r, o")
    assert check(TWO_WAY, LANDING, loop(tile.format(step=64), HEAD), STORE) == []
    assert check(TWO_WAY, LANDING, loop(tile.format(step=66), HEAD), STORE) == ["TL873"]
    assert check(TWO_WAY, LANDING, loop(tile.format(step=66)), STORE) == []


def test_an_operator_in_place_reads_before_it_writes() -> None:
    """A load, elements, then ``z = z + 1``: the sum reads what the load's part has written, and the elements are stored
    as ``z.SetValue(stage * 65536 + ...)``, behind the end of every version."""
    elements = "for i in T.serial(32):\n    for j in T.serial(64):\n        g[i, j] = w[j, i]\n"
    add = "for i, j in T.Parallel(32, 64):\n    g[i, j] = g[i, j] + T.float16(1.0)\n"
    tiles = 'g = T.alloc_ub((32, 64), "float16")\nw = T.alloc_ub((64, 32), "float16")\nT.tile.fill(w, 1.0)\n'
    step = STEP.replace("T.copy(B[0, 0], r)", "T.copy(X[k * 32, 0], g)\nT.copy(B[0, 0], r)")
    step = step.replace("T.copy(h, p)", f"{elements}{add}T.copy(g, p)")
    assert "TL874" in check(TWO_WAY, LANDING, tiles, loop(step, HEAD), STORE)
    assert "TL874" not in check(TWO_WAY, LANDING, tiles, loop(step), STORE)


@pytest.mark.parametrize(("value", "found"), [("j % 2", True), ("w[i, j] + 1.0", False)])
def test_elements_that_are_stored_one_by_one_are_those_of_another_part(value: str, found: bool) -> None:
    """A load, then every element stored anew: by ``g.SetValue`` if the value is an index."""
    fill = f"for i, j in T.Parallel(32, 64):\n    g[i, j] = {value}\n"
    tiles = 'g = T.alloc_ub((32, 64), "float16")\nw = T.alloc_ub((32, 64), "float16")\nT.tile.fill(w, 1.0)\n'
    step = STEP.replace("T.copy(B[0, 0], r)", "T.copy(X[k * 32, 0], g)\nT.copy(B[0, 0], r)")
    step = step.replace("T.copy(h, p)", f"{fill}T.copy(g, p)")
    assert ("TL874" in check(TWO_WAY, LANDING, tiles, loop(step, HEAD), STORE)) == found


_PRODUCT = """
a = T.alloc_shared((64, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
{before}for k in {loop}:
    T.copy(A[cid * 64, k * 64], a)
    T.copy({load}, b)
    T.gemm_v0(a, b, c, init=(k == 0){turned})
T.copy(c, C[cid * 64, 0])
"""


@pytest.mark.parametrize(
    ("loop", "k", "found"),
    [
        ("T.Pipelined(T.ceildiv(K, 64), num_stages=2)", 200, True),
        ("T.Pipelined(T.ceildiv(K, 64), num_stages=stages)", 200, True),
        ("T.Pipelined(T.ceildiv(K, 64), num_stages=2)", 256, False),
        ("T.Pipelined(T.ceildiv(K, 64), num_stages=2)", 40, False),  # one turn: the first version
        ("T.Pipelined(T.ceildiv(K, 64), num_stages=1)", 200, False),
        ("T.Pipelined(T.ceildiv(K, 64))", 200, False),
        ("T.serial(T.ceildiv(K, 64))", 200, False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_sums_over_what_a_turn_left(loop: str, k: int, found: bool, turned: bool) -> None:
    """``copy_gm_to_l1(a[((k + 1) % 2) * 4096], ..., false)``: nothing is cleared."""
    load, flag = ("B[0, k * 64]", ", transpose_B=True") if turned else ("B[k * 64, 0]", "")
    body = _PRODUCT.format(before="", loop=loop, load=load, turned=flag)
    right = f'B: T.Tensor({"(64, K)" if turned else "(K, 64)"}, "float16")'
    settings = {
        "params": f'A: T.Tensor((500, K), "float16"), {right}, C: T.Tensor((500, 64), "float32")',
        "args": "K, stages=2",
        "launch": "T.Kernel(8, is_npu=True) as (cid, vid)",
        "tail": f"factory({k})",
        "jit": "out_idx=[2]",
    }
    assert ("TL873" in errors(body, **settings)) is found
    assert "TL873" not in errors(body, **settings | {"jit": 'out_idx=[2], target="pto"'})  # TFILLPAD for each version


def test_a_tile_that_is_used_behind_the_loop_has_one_version() -> None:
    body = _PRODUCT.format(
        before="T.copy(A[0, 0], a)\n", loop="T.Pipelined(4, num_stages=2)", load="B[k * 64, 0]", turned=""
    )
    params = 'A: T.Tensor((500, 200), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((500, 64), "float32")'
    assert "TL873" not in errors(body, launch="T.Kernel(8, is_npu=True) as (cid, vid)", params=params, jit="")
