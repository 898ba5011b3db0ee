"""Casts and broadcasts that ``threads=2`` would not halve."""

from __future__ import annotations

import pytest

from tests.passes.support import LOAD, STORE, developer, migrated, refused, right_or_refused, same_results, vector_file

HALF = 'b = T.alloc_ub((16, 64), "float16")\n'
BACK = "T.copy(b, a)\n"


def codes(text: str) -> set[str]:
    return {change.code for change in migrated(text).changes}


@pytest.mark.parametrize(
    "cast",
    [
        'T.tile.cast(b, a, "CAST_RINT", 16 * 64)',
        'T.tile.cast(b, a, "CAST_RINT", 1024)',
        'T.tile.cast(b, a, mode="CAST_RINT", count=1024)',
        "T.tile.cast(dst=b, src=a, mode=MODE, count=N)",
    ],
)
def test_a_cast_of_the_whole_tile_becomes_a_copy(cast: str) -> None:
    old = vector_file(LOAD + HALF + cast + "\n" + BACK + STORE, factory='MODE = "CAST_RINT"\nN = 1024')
    new = developer(old)
    assert "cast" not in new
    assert "T.copy(a, b)" in new
    assert "TL232" in codes(old)
    same_results(old, new)


@pytest.mark.parametrize(
    "cast",
    [
        'T.tile.cast(b, a, "CAST_FLOOR", 1024)',
        'T.tile.cast(b, a, "CAST_RINT", 512)',
        "T.tile.cast(b, a, mode, 1024)",
        'T.tile.cast(b, a, "CAST_RINT", n)',
    ],
)
def test_other_casts_stay(cast: str) -> None:
    old = vector_file(LOAD + HALF + "T.tile.fill(b, 0.0)\n" + cast + "\n" + BACK + STORE, args="mode, n")
    assert "TL232" not in codes(old)
    right_or_refused(old, args=("CAST_RINT", 512))


@pytest.mark.parametrize(("dtype", "mode"), [("int32", "CAST_NONE"), ("int8", "CAST_NONE"), ("float16", "CAST_CEIL")])
def test_a_cast_that_a_copy_would_round_in_another_way_stays(dtype: str, mode: str) -> None:
    tile = f'b = T.alloc_ub((16, 64), "{dtype}")\n'
    old = vector_file(LOAD + tile + f'T.tile.cast(b, a, "{mode}", 1024)\n' + BACK + STORE)
    assert "TL232" not in codes(old)


def test_two_casts_in_one_macro_with_different_modes() -> None:
    macro = "@T.macro\ndef to(dst, src, mode):\n    T.tile.cast(dst, src, mode, 16 * 64)"
    body = (
        LOAD + HALF + 'c = T.alloc_ub((16, 64), "float16")\nto(b, a, "CAST_RINT")\nto(c, a, "CAST_FLOOR")\n'
        "T.tile.add(b, b, c)\n" + BACK + STORE
    )
    for threads in ("auto", "1"):
        right_or_refused(vector_file(body, factory=macro), threads)


ROWS = """
m = T.alloc_ub((16, 1), "float32")
t = T.alloc_ub((16, 64), "float32")
"""
PEAK = "T.reduce_max(a, m, dim=-1)\n"
SPREAD = "T.tile.broadcast(t, m)\n"
SUB = "T.tile.sub(a, a, t)\n"


@pytest.mark.parametrize(
    "use", [SUB, "T.tile.add(a, t, a)\n", "T.tile.mul(a, a, t)\n", "T.tile.div(a, a, t)\nT.tile.add(a, a, t)\n"]
)
def test_a_broadcast_row_vector_becomes_an_element_wise_loop(use: str) -> None:
    old = vector_file(LOAD + ROWS + PEAK + "T.tile.add(m, m, 9.0)\n" + SPREAD + use + STORE)
    new = developer(old)
    assert "broadcast" not in new
    assert "T.Parallel(32, 64)" in new
    assert "TL233" in codes(old)
    same_results(old, new)


def test_a_row_vector_on_the_left_stays_a_tile() -> None:
    """``m[i, 0] - a[i, j]`` is miscompiled, so it must not be written."""
    old = vector_file(LOAD + ROWS + PEAK + SPREAD + "T.tile.sub(a, t, a)\n" + STORE)
    assert "m[i, 0] -" not in (migrated(old).new_text or "")
    right_or_refused(old)


def test_the_loop_variables_are_new_names() -> None:
    body = "for i in range(2):\n    for j in range(2):\n" + "".join(
        f"        {line}\n" for line in (PEAK + SPREAD + SUB).strip().split("\n")
    )
    old = vector_file(LOAD + ROWS + body + STORE)
    new = developer(old)
    same_results(old, new)
    assert "for i, j in T.Parallel" not in new


# Each of these uses a broadcast tile whose value is not the vector's present one.
STALE = {
    "the vector changes first": SPREAD + "T.tile.add(m, m, 1.0)\n" + SUB,
    "broadcast in the first iteration": (
        "for k in range(4):\n    T.reduce_max(a, m, dim=-1)\n    if k == 0:\n"
        "        T.tile.broadcast(t, m)\n    T.tile.sub(a, a, t)\n"
    ),
    "broadcast in one branch": (
        "if n > 0:\n    T.tile.fill(t, 2.0)\nelse:\n    T.tile.broadcast(t, m)\nT.tile.sub(a, a, t)\n"
    ),
    "broadcast in the other branch": (
        "if n > 0:\n    T.tile.broadcast(t, m)\nelse:\n    T.tile.fill(t, 2.0)\nT.tile.sub(a, a, t)\n"
    ),
    "used before": (
        "T.tile.fill(t, 1.0)\nfor k in range(3):\n    T.tile.sub(a, a, t)\n"
        "    T.reduce_max(a, m, dim=-1)\n    T.tile.broadcast(t, m)\n"
        "    T.tile.add(a, a, t)\n"
    ),
    "changed later in the loop": (
        "T.tile.broadcast(t, m)\nfor k in range(3):\n    T.tile.sub(a, a, t)\n    T.tile.add(m, m, 1.0)\n"
    ),
    "the tile changes": SPREAD + "T.tile.add(t, t, 1.0)\n" + SUB,
    "an element changes": SPREAD + "t[0, 0] = 5.0\n" + SUB,
    "an element of the vector changes": SPREAD + "for i in range(16):\n    m[i, 0] = 5.0\n" + SUB,
    "used by a copy": SPREAD + "T.copy(t, a)\n",
    "used in a loop over elements": SPREAD + "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] - t[i, j]\n",
    "used in place": SPREAD + "T.tile.sub(t, a, t)\nT.copy(t, a)\n",
    "used inside a branch": SPREAD + "if n > 0:\n    T.tile.sub(a, a, t)\nelse:\n    T.tile.add(a, a, t)\n",
    "two broadcasts": SPREAD + SUB + "T.tile.add(m, m, 1.0)\n" + SPREAD + SUB,
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", STALE)
def test_broadcasts_that_are_not_the_vectors_present_value(case: str) -> None:
    old = vector_file(LOAD + ROWS + PEAK + STALE[case] + STORE, args="n")
    for n in (0, 1):
        right_or_refused(old, args=(n,))


def test_a_tile_from_an_allocation_helper() -> None:
    helper = 'def tile(rows, cols):\n    return T.alloc_ub((rows, cols), "float32")'
    body = LOAD + "m = tile(16, 1)\nt = tile(16, 64)\n" + PEAK + SPREAD + SUB + STORE
    right_or_refused(vector_file(body, factory=helper))


def test_a_column_broadcast_is_not_rewritten() -> None:
    old = vector_file(
        LOAD
        + 'm = T.alloc_ub((1, 64), "float32")\nT.copy(B[0, 0], m)\n'
        + ROWS.split("\n")[2]
        + "\n"
        + SPREAD
        + SUB
        + STORE
    )
    refused(old)
