"""Macros and helpers that several statements share: what is right for one call must be right for all."""

from __future__ import annotations

import pytest

from tests.passes.support import (
    GEMM_SCALE,
    LOAD,
    STORE,
    developer,
    gemm_file,
    migrated,
    only,
    right_or_refused,
    same_results,
    vector_file,
)

SMALL = 'w = T.alloc_ub((8, 64), "float32")\nT.copy(B[0, 0], w)\n'
USE = "for i in range(8):\n    T.tile.add(w[i, :], w[i, :], 1.0)\n"
TWICE = "@T.macro\ndef twice(x, rows):\n    for i, j in T.Parallel(rows, 64):\n        x[i, j] = x[i, j] * 2.0"
TILE = 'def tile(rows):\n    return T.alloc_ub((rows, 64), "float32")'

CASES = {
    "one call": (LOAD + "twice(a, 16)\n" + STORE, TWICE),
    "two calls alike": (LOAD + "twice(a, 16)\ntwice(a, 16)\n" + STORE, TWICE),
    "two sizes, half first": (LOAD + SMALL + "twice(a, 16)\ntwice(w, 8)\nT.copy(w, A[cid * 32, 0])\n" + STORE, TWICE),
    "two sizes, half last": (LOAD + SMALL + "twice(w, 8)\ntwice(a, 16)\n" + STORE, TWICE),
    "a size by keyword": (LOAD + "twice(rows=16, x=a)\n" + STORE, TWICE),
    "a default size": (LOAD + "twice(a)\n" + STORE, TWICE.replace("rows)", "rows=16)", 1)),
    "a size that is no name": (LOAD + "twice(a, 32 // 2)\n" + STORE, TWICE),
    "a literal in the macro": (
        LOAD + "twice(a)\n" + STORE,
        TWICE.replace("x, rows)", "x)").replace("rows, 64", "16, 64"),
    ),
    "a literal in the macro for two": (
        LOAD + 'w = T.alloc_ub((16, 64), "float32")\nT.copy(B[0, 0], w)\ntwice(a)\ntwice(w)\n' + STORE,
        TWICE.replace("x, rows)", "x)").replace("rows, 64", "16, 64"),
    ),
    "an offset as argument": (
        'a = T.alloc_ub((16, 64), "float32")\nload(A, a, cid * 32 + vid * 16)\n' + STORE,
        "@T.macro\ndef load(src, dst, row):\n    T.copy(src[row, 0], dst)",
    ),
    "an offset behind a name": (
        'a = T.alloc_ub((16, 64), "float32")\nr = vid * 16\nload(A, a, r)\n' + "T.tile.add(a, a, cid)\n" + STORE,
        "@T.macro\ndef load(src, dst, row):\n    T.copy(src[row, 0], dst)",
    ),
    "an offset for one call only": (
        'a = T.alloc_ub((16, 64), "float32")\nw = T.alloc_ub((8, 64), "float32")\nload(A, a, vid * 16)\nload(B, w, 5)\n'
        "for i in range(8):\n    T.tile.add(w[i, :], w[i, :], 1.0)\n" + STORE,
        "@T.macro\ndef load(src, dst, row):\n    T.copy(src[row, 0], dst)",
    ),
    "core and half as arguments": (
        'a = T.alloc_ub((16, 64), "float32")\nload(A, a, cid, vid, 16)\n' + STORE,
        "@T.macro\ndef load(src, dst, block, core, half):\n    T.copy(src[block * 2 * half + core * half, 0], dst)",
    ),
    "an assigned macro": (
        LOAD + "done = twice(a)\n" + STORE,
        TWICE.replace("x, rows)", "x)").replace("rows, 64", "16, 64") + "\n    return 0",
    ),
    "an allocation helper": ("a = tile(16)\nT.copy(A[cid * 32 + vid * 16, 0], a)\n" + STORE, TILE),
    "an allocation helper for two sizes": (
        "a = tile(16)\nw = tile(8)\nT.copy(A[cid * 32 + vid * 16, 0], a)\nT.copy(B[0, 0], w)\n" + USE + STORE,
        TILE,
    ),
    "an allocation helper for two sizes, small first": (
        "w = tile(8)\na = tile(16)\nT.copy(A[cid * 32 + vid * 16, 0], a)\nT.copy(B[0, 0], w)\n" + USE + STORE,
        TILE,
    ),
    "an allocation helper with a half in it": (
        "a = tile(32)\nT.copy(A[cid * 32 + vid * 16, 0], a)\n" + STORE,
        'def tile(rows):\n    half = rows // 2\n    return T.alloc_ub((half, 64), "float32")',
    ),
    "a shape helper": (
        "a = T.alloc_ub(shape(16), 'float32')\nT.copy(A[cid * 32 + vid * 16, 0], a)\n" + STORE,
        "def shape(rows):\n    return (rows, 64)",
    ),
    "a row helper": (
        'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[row(cid, vid), 0], a)\nT.copy(a, O[row(cid, vid), 0])',
        "def row(block, core):\n    return block * 32 + core * 16",
    ),
    "a half helper": (
        (
            'a = T.alloc_ub((half(32), 64), "float32")\n'
            "T.copy(A[cid * 32 + vid * half(32), 0], a)\n"
            "T.copy(a, O[cid * 32 + vid * half(32), 0])"
        ),
        "def half(rows):\n    return rows // 2",
    ),
    "a lambda": (
        (
            'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[row(vid), 0], a)\n'
            "T.copy(a, O[row(vid), 0])\nT.copy(a, O[row(vid) + 32, 0])"
        ),
        "row = lambda core: core * 16",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("case", CASES)
def test_shared_code(case: str, threads: str) -> None:
    body, factory = CASES[case]
    right_or_refused(vector_file(body, factory=factory), threads)


@pytest.mark.parametrize(
    "case", ["one call", "two calls alike", "a default size", "a literal in the macro", "an allocation helper"]
)
def test_simple_macros_reach_the_full_form(case: str) -> None:
    body, factory = CASES[case]
    old = vector_file(body, factory=factory)
    same_results(old, developer(old))


def test_a_macro_of_two_kernels() -> None:
    """The first kernel's edit of the macro is also the second one's, which stays as it is."""
    from tests.passes.support import kernel

    macro = "\n\n" + TWICE.replace("x, rows)", "x)").replace("rows, 64", "16, 64") + "\n"
    first = LOAD + "twice(a)\n" + STORE
    second = (
        'a = T.alloc_ub((16, 64), "float32")\nfor t in range(2):\n'
        "    T.copy(A[cid * 32 + t * 16, 0], a)\n    twice(a)\n"
        "    T.copy(a, O[cid * 32 + t * 16, 0])\n"
    )
    text = vector_file(first).replace("\n\n@tilelang.jit", macro + "\n\n@tilelang.jit", 1) + kernel(
        second, name="second"
    )
    result = migrated(text)
    assert result.new_text is not None
    same_results(text, result.new_text, factory="second")
    same_results(text, result.new_text)


STORE_MACRO = "@T.macro\ndef store(src, dst, block):\n    T.copy(src, dst[block, 0, 0])"
STORED = GEMM_SCALE.replace("T.copy(c_l0, workspace_1[cid, 0, 0])", "store(c_l0, workspace_1, cid)")


def test_a_hand_over_in_a_macro_is_fused_in_place() -> None:
    old = gemm_file(STORED, factory=STORE_MACRO)
    new = developer(old)
    same_results(old, new)
    assert "store" not in new
    assert {"TL117", "TL210", "TL211"} <= {change.code for change in migrated(old).changes}


def test_macros_that_are_not_in_the_way_stay() -> None:
    body, factory = CASES["a literal in the macro"]
    assert "twice(a)" in developer(vector_file(body, factory=factory))


def test_macros_of_one_name_in_two_factories() -> None:
    """Each factory has a ``store`` of its own; neither is in the way of the other."""
    text = gemm_file(STORED, factory=STORE_MACRO)
    second = gemm_file(STORED, factory=STORE_MACRO).split("@tilelang.jit", 1)[1].replace("def factory", "def second", 1)
    result = migrated(text + "\n\n@tilelang.jit" + second)
    assert [kernel.target for kernel in result.kernels] == ["developer", "developer"]


def test_a_scope_in_a_macro() -> None:
    macro = (
        "@T.macro\ndef work(a, o, cid, vid):\n    with T.Scope('V'):\n        T.tile.exp(a, a)\n        T.barrier_all()"
    )
    old = vector_file(
        LOAD + "T.barrier_all()\nwork(a, O, cid, vid)\n" + STORE, factory=macro, head="pass_configs = {}\n"
    )
    new = developer(old)
    same_results(old, new)
    assert "Scope" not in new


def test_a_macro_in_a_loop_over_tiles() -> None:
    """The loop is in the macro, and the hand-over in the loop."""
    macro = "@T.macro\ndef rounds(a, a_l1, b, b_l1, c_l0, w, cid):\n    for k in T.serial(1):\n" + "".join(
        f"        {line}\n"
        for line in (
            "T.copy(a[cid * 32, 0], a_l1)",
            "T.copy(b, b_l1)",
            "T.gemm_v0(a_l1, b_l1, c_l0, init=(k == 0))",
            "T.copy(c_l0, w[cid, 0, 0])",
        )
    )
    cube = GEMM_SCALE[GEMM_SCALE.index("T.copy(A[cid") : GEMM_SCALE.index("T.copy(workspace_1")]
    body = GEMM_SCALE.replace(cube, "rounds(A, a_l1, B, b_l1, c_l0, workspace_1, cid)\n")
    right_or_refused(gemm_file(body, factory=macro))


def test_the_reason_is_not_the_macro() -> None:
    """With the macro written out the kernel is still no split of rows, and that is what is said."""
    macro = "@T.macro\ndef load(src, dst, row):\n    T.copy(src[row, 0], dst)"
    body = 'a = T.alloc_ub((16, 64), "float32")\nload(A, a, cid * 32 + vid * 8)\n' + STORE
    found = only(migrated(vector_file(body, factory=macro)))
    assert "TL221" in found.reason or "TL220" in found.reason, found.reason


def test_a_sync_macro_goes_with_its_calls() -> None:
    macro = "@T.macro\ndef sync():\n    T.barrier_all()"
    old = vector_file(
        'with T.Scope("V"):\n    '
        + (LOAD + "sync()\nT.tile.exp(a, a)\nsync()\n" + STORE).strip().replace("\n", "\n    "),
        factory=macro,
        head="pass_configs = {}\n",
    )
    new = developer(old)
    same_results(old, new)
    assert "sync" not in new.split("with T.Kernel")[1]
