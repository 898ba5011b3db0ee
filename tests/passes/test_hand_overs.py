"""Round trips through global memory become copies on chip, where that changes nothing."""

from __future__ import annotations

import pytest

from tests.passes.support import (
    CV_ALLOCS,
    CV_CUBE,
    CV_PARAMS,
    CV_VECTOR,
    GEMM_SCALE,
    developer,
    gemm_file,
    migrated,
    refused,
    right_or_refused,
    same_results,
)

WS2 = (*CV_PARAMS, 'workspace_2: T.Tensor((2, 32, 64), "float32")')
JIT2 = "out_idx=[2], workspace_idx=[3, 4], pass_configs=pass_configs"
F16 = (*CV_PARAMS[:3], 'workspace_1: T.Tensor((2, 32, 64), "float16")')


def codes(text: str) -> set[str]:
    return {change.code for change in migrated(text).changes}


def test_the_round_trip_becomes_one_copy_where_the_writer_stood() -> None:
    new = developer(gemm_file())
    same_results(gemm_file(), new)
    assert "T.copy(c_l0, u)" in new
    assert "workspace" not in new
    assert new.index("gemm_v0") < new.index("T.copy(c_l0, u)") < new.index("T.tile.mul")


@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("workspace_1[cid, 0, 0]", "workspace_1[cid, vid * 16, 0]"),
        ("workspace_1[cid, :, :]", "workspace_1[cid, vid * 16 : vid * 16 + 16, :]"),
        ("workspace_1[cid, 0:32, 0:64]", "workspace_1[cid, 16 * vid : (vid + 1) * 16, 0:64]"),
        ("workspace_1[cid, 0, 0]", "workspace_1[cid + 0, 32 * vid // 2, 0]"),
    ],
)
def test_regions_spelled_in_different_ways(write: str, read: str) -> None:
    old = gemm_file(GEMM_SCALE.replace("workspace_1[cid, 0, 0]", write).replace("workspace_1[cid, vid * 16, 0]", read))
    same_results(old, developer(old))


def test_names_order_and_keywords() -> None:
    body = GEMM_SCALE.replace("T.copy(c_l0, workspace_1[cid, 0, 0])", "T.copy(dst=workspace_1[cid, 0, 0], src=c_l0)")
    body = body.replace(
        "T.copy(workspace_1[cid, vid * 16, 0], u)", "T.copy(\n    src=workspace_1[cid, vid * 16, 0],\n    dst=u,\n)"
    )
    old = gemm_file(body.replace("cid", "block").replace("vid", "core")).replace("as (cid, vid)", "as (block, core)")
    new = developer(old)
    same_results(old, new)
    assert "core" not in new


WRITE, READ = "T.copy(c_l0, workspace_1[cid, 0, 0])", "T.copy(workspace_1[cid, vid * 16, 0], u)"
ELSEWHERE = "cannot prove that this copy reads the tile of `workspace_1` that the other core writes"
ONE_SIDED = "the tile is written and read under different conditions"
OFTEN = "the tile is written and read a different number of times"


def under(head: str, statement: str) -> str:
    return f"{head}\n    {statement}"


@pytest.mark.parametrize(
    ("replaced", "why"),
    [
        ({WRITE: "T.copy(c_l0, workspace_1[0, 0, 0])"}, f"TL841 {ELSEWHERE}"),
        (
            {READ: READ.replace("vid * 16", "16 - vid * 16")},
            "TL221 the vector cores' offset is not half of the tile `u`: `16 - vid * 16`",
        ),
        ({READ: READ.replace("[cid", "[1 - cid")}, f"TL841 {ELSEWHERE}"),
        ({READ: READ.replace(", 0]", ", 32]")}, f"TL841 {ELSEWHERE}"),
        ({WRITE: under("if cid == 0:", WRITE)}, f"TL846 {ONE_SIDED}"),
        ({READ: under("if cid == 0:", READ)}, f"TL846 {ONE_SIDED}"),
        (
            {WRITE: under("if cid == 0:", WRITE), READ: under("if cid == 1:", READ)},
            f"TL846 {ONE_SIDED}",
        ),
        ({WRITE: under("for t in range(2):", WRITE)}, f"TL868 {OFTEN}"),
        ({READ: under("for t in range(2):", READ)}, f"TL868 {OFTEN}"),
        ({WRITE: under("for t in range(2):", WRITE), READ: under("for t in range(3):", READ)}, f"TL868 {OFTEN}"),
        (
            {READ: READ.replace(" u)", " u[0:8, :])")},
            "TL220 vid selects a work item, not half of the rows of a tile",
        ),
        (
            {READ: under("for i, j in T.Parallel(16, 64):", "u[i, j] = workspace_1[cid, vid * 16 + i, j]")},
            "TL842 the cores also access `workspace_1` without `T.copy`",
        ),
        ({READ: READ.replace(" u)", " u, pad_value=1.0)")}, "TL841 a copy through the workspace pads the tile"),
        ({READ: READ + "\n" + READ.replace(" u)", " v)")}, "TL840 several copies read the same tile of `workspace_1`"),
    ],
)
def test_near_misses(replaced: dict[str, str], why: str) -> None:
    body = GEMM_SCALE
    for old, new in replaced.items():
        assert old in body
        body = body.replace(old, new)
    text = gemm_file(body)
    refused(text)
    assert why in [f"{d.code} {d.message}" for d in migrated(text).diagnostics]


def test_loops_of_both_cores_that_run_equally_often_run_in_step() -> None:
    old = gemm_file(
        GEMM_SCALE.replace(WRITE, under("for t in range(2):", WRITE)).replace(READ, under("for s in range(2):", READ))
    )
    assert right_or_refused(old)


def test_the_dtype_on_the_way_must_be_that_of_the_landing_buffer() -> None:
    refused(gemm_file(params=F16), "TL844")


# anchors -------------------------------------------------------------------------------------------------------------

# The compiler reloads the landing buffer before the first call in the text that reads it; these stand elsewhere.
ANCHORED = {
    "rows in place": "for i in range(16):\n    T.tile.mul(u[i, :], u[i, :], 2.0)\nT.tile.abs(v, u)\n",
    "row vector in place": (
        'm = T.alloc_ub((16,), "float32")\nT.tile.fill(m, 2.0)\n'
        "for i, j in T.Parallel(16, 64):\n    u[i, j] = u[i, j] * m[i]\n"
        "T.tile.abs(v, u)\n"
    ),
    "accumulated into": "T.tile.fill(v, 1.0)\nT.tile.axpy(u, v, 2.0)\nT.tile.abs(v, u)\n",
    "under a condition": "T.tile.fill(v, 0.0)\nif cid >= 0:\n    T.tile.abs(v, u)\n",
    "element": "T.tile.fill(v, 0.0)\nfor i in range(16):\n    v[i, 0] = u[i, 0]\nT.tile.abs(u, v)\nT.tile.abs(v, u)\n",
    "inner loop": "T.tile.fill(v, 0.0)\nfor t in range(2):\n    T.tile.add(v, v, u)\n",
}


@pytest.mark.parametrize("case", ANCHORED)
def test_readers_that_need_an_anchor(case: str) -> None:
    old = gemm_file(GEMM_SCALE.replace("T.tile.mul(v, u, 2.0)\n", ANCHORED[case]))
    if right_or_refused(old):
        new = migrated(old).new_text or ""
        assert "TL216" in codes(old)
        assert "T.copy(c_l0, u_landing)" in new
        assert "T.copy(u_landing, u)" in new


def test_a_whole_tile_reader_needs_none() -> None:
    for reader in ("T.tile.mul(v, u, 2.0)", "T.tile.mul(u, u, 2.0)\nT.tile.abs(v, u)", "T.copy(u, v)"):
        old = gemm_file(GEMM_SCALE.replace("T.tile.mul(v, u, 2.0)", reader))
        same_results(old, developer(old))
        assert "TL216" not in codes(old)


def test_a_landing_buffer_that_is_used_before() -> None:
    old = gemm_file(
        CV_ALLOCS
        + "T.tile.fill(u, 3.0)\nT.tile.abs(v, u)\nT.copy(v, O[cid * 32 + vid * 16, 0])\n"
        + CV_CUBE
        + CV_VECTOR
    )
    same_results(old, developer(old))
    assert "TL216" in codes(old)


def test_a_taken_name_of_a_landing_buffer() -> None:
    body = "u_landing = 1\n" + GEMM_SCALE.replace(
        "T.tile.mul(v, u, 2.0)", ANCHORED["rows in place"] + "T.tile.mul(v, v, u_landing)"
    )
    right_or_refused(gemm_file(body))


ALLOCATIONS = {
    "tuple": (
        'u = T.alloc_ub((16, 64), "float32")\nv = T.alloc_ub((16, 64), "float32")',
        'u, v = T.alloc_ub((16, 64), "float32"), T.alloc_ub((16, 64), "float32")',
    ),
    "annotated": ('u = T.alloc_ub((16, 64), "float32")', 'u: T.Buffer = T.alloc_ub((16, 64), "float32")'),
    "several on a line": ('u = T.alloc_ub((16, 64), "float32")\n', 'u = T.alloc_ub((16, 64), "float32"); '),
}


@pytest.mark.parametrize("case", ALLOCATIONS)
def test_anchors_for_allocations_written_in_other_ways(case: str) -> None:
    old, new = ALLOCATIONS[case]
    assert old in GEMM_SCALE
    text = gemm_file(GEMM_SCALE.replace(old, new).replace("T.tile.mul(v, u, 2.0)\n", ANCHORED["rows in place"]))
    if right_or_refused(text):
        assert (
            'alloc_ub((32, 64), "float32"), T.'
            not in (migrated(text).new_text or "").split("u_landing =")[1].split("\n")[0]
        )


def test_an_allocation_helper_and_an_anchor() -> None:
    body = GEMM_SCALE.replace('u = T.alloc_ub((16, 64), "float32")', "u = tile(16)")
    text = gemm_file(
        body.replace("T.tile.mul(v, u, 2.0)\n", ANCHORED["rows in place"]),
        factory='def tile(rows):\n    return T.alloc_ub((rows, 64), "float32")',
    )
    right_or_refused(text)


# one hand-over, one pair of buffers ----------------------------------------------------------------------------------

AGAIN = (
    "T.gemm_v0(a_l1, b_l1, {src}, init=True)\nT.copy({src}, workspace_2[cid, 0, 0])\n"
    "T.copy(workspace_2[cid, vid * 16, 0], u)\nT.tile.add(v, v, u)\nT.copy(v, O[cid * 32 + vid * 16, 0])\n"
)


def test_a_landing_buffer_of_two_hand_overs_gets_a_twin() -> None:
    old = gemm_file(
        CV_ALLOCS + 'd_l0 = T.alloc_L0C((32, 64), "float32")\n' + CV_CUBE + CV_VECTOR + AGAIN.format(src="d_l0"),
        params=WS2,
        jit=JIT2,
    )
    new = developer(old)
    same_results(old, new)
    assert new.count("u_landing") == 3


def test_one_pair_of_buffers_for_two_hand_overs_is_refused() -> None:
    """Two copies from one L0C are rejected: cube has 2 sync points, vector has 1 (facts, g2_same_pair)."""
    refused(gemm_file(GEMM_SCALE + AGAIN.format(src="c_l0"), params=WS2, jit=JIT2), "TL840")


def test_a_source_of_two_hand_overs_is_refused() -> None:
    body = GEMM_SCALE.replace(
        "T.copy(v, O", "T.copy(c_l0, workspace_2[cid, 0, 0])\nT.copy(workspace_2[cid, vid * 16, 0], w)\nT.copy(v, O"
    )
    text = gemm_file('w = T.alloc_ub((16, 64), "float32")\n' + body, params=WS2, jit=JIT2)
    refused(text)
    assert "`c_l0` is the source of two cross-core transfers" in [d.message for d in migrated(text).diagnostics]


def test_three_hand_overs_to_one_buffer() -> None:
    body = (
        CV_ALLOCS
        + 'd_l0 = T.alloc_L0C((32, 64), "float32")\ne_l0 = T.alloc_L0C((32, 64), "float32")\n'
        + CV_CUBE
        + CV_VECTOR
    )
    body += AGAIN.format(src="d_l0") + AGAIN.format(src="e_l0").replace("workspace_2", "workspace_3")
    params = (*WS2, 'workspace_3: T.Tensor((2, 32, 64), "float32")')
    right_or_refused(
        gemm_file(body, params=params, jit="out_idx=[2], workspace_idx=[3, 4, 5], pass_configs=pass_configs")
    )


def test_an_l1_buffer_that_was_loaded_from_elsewhere_before() -> None:
    """The reload would stand before the first gemm, which multiplies what was loaded from A (R-ONE2ONE)."""
    body = CV_ALLOCS + (
        'p = T.alloc_ub((16, 64), "float16")\nT.copy(A[cid * 32, 0], a_l1)\nT.copy(B, b_l1)\n'
        "T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nT.copy(A[cid * 32 + vid * 16, 0], p)\nT.tile.mul(p, p, 2.0)\n"
        "T.copy(p, workspace_1[cid, vid * 16, 0])\nT.copy(workspace_1[cid, 0, 0], a_l1)\nT.gemm_v0(a_l1, b_l1, c_l0)\n"
        "T.copy(c_l0, O[cid * 32, 0])\n"
    )
    refused(gemm_file(body, params=F16))


TO_CUBE = CV_ALLOCS + """
p = T.alloc_ub((16, 64), "float16")
T.copy(A[cid * 32 + vid * 16, 0], p)
T.tile.mul(p, p, 2.0)
T.copy(p, workspace_1[cid, vid * 16, 0])
T.copy(workspace_1[cid, 0, 0], a_l1)
T.copy(B, b_l1)
T.gemm_v0(a_l1, b_l1, c_l0, init=True)
T.copy(c_l0, O[cid * 32, 0])
"""


def test_vector_to_cube() -> None:
    old = gemm_file(TO_CUBE, params=F16)
    new = developer(old)
    same_results(old, new)
    assert "T.copy(p, a_l1)" in new


@pytest.mark.parametrize(
    ("old_text", "new_text", "code"),
    [
        ("T.gemm_v0(a_l1, b_l1, c_l0, init=True)", "if cid == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)", "TL846"),
        (
            "T.gemm_v0(a_l1, b_l1, c_l0, init=True)",
            "if cid == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
            "TL846",
        ),
        (
            "T.gemm_v0(a_l1, b_l1, c_l0, init=True)",
            "for t in range(2):\n    T.gemm_v0(a_l1, b_l1, c_l0, init=(t == 0))",
            "TL845",
        ),
        ('p = T.alloc_ub((16, 64), "float16")', 'p = T.alloc_ub((16, 64), "float32")', "TL844"),
    ],
)
def test_vector_to_cube_near_misses(old_text: str, new_text: str, code: str) -> None:
    assert old_text in TO_CUBE
    refused(gemm_file(TO_CUBE.replace(old_text, new_text), params=F16), code)


def test_a_result_that_is_parked_in_an_output() -> None:
    body = GEMM_SCALE.replace("workspace_1[cid, 0, 0]", "O[cid * 32, 0]").replace(
        "workspace_1[cid, vid * 16, 0]", "O[cid * 32 + vid * 16, 0]"
    )
    old = gemm_file(body, params=CV_PARAMS[:3], jit="out_idx=[-1], pass_configs=pass_configs")
    new = developer(old)
    same_results(old, new)
    assert "out_idx=[2]" in new
    assert "TL215" in codes(old)


def test_an_output_that_keeps_what_was_parked_in_it() -> None:
    """Nothing overwrites the parked tile, so it is a result."""
    body = GEMM_SCALE.replace("workspace_1[cid, 0, 0]", "O[cid * 32, 0]").replace(
        "workspace_1[cid, vid * 16, 0]", "O[cid * 32 + vid * 16, 0]"
    )
    body = body.replace("T.copy(v, O[cid * 32 + vid * 16, 0])", "T.copy(v, A[cid * 32 + vid * 16, 0])")
    refused(gemm_file(body, params=CV_PARAMS[:3], jit="out_idx=[2], pass_configs=pass_configs"))
