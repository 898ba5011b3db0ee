"""Half tiles become whole tiles: spelled in many ways, and refused where that would change a result."""

from __future__ import annotations

import pytest

from tests.passes.support import (
    LOAD,
    STORE,
    developer,
    migrated,
    only,
    refused,
    right_or_refused,
    same_results,
    vector_file,
)

EXP = "T.tile.exp(a, a)\n"


def tile(rows: str, start: str, body: str = EXP, **around: str) -> str:
    """A kernel that loads, changes and stores one half tile."""
    return vector_file(
        f'a = T.alloc_ub(({rows}, 64), "float32")\nT.copy(A[{start}, 0], a)\n{body}T.copy(a, O[{start}, 0])', **around
    )


SPELLINGS = {
    "literals": ("16", "cid * 32 + vid * 16", "", ()),
    "vid * bm // 2": ("bm // 2", "cid * bm + vid * bm // 2", "bm", (32,)),
    "vid * (bm // 2)": ("bm // 2", "cid * bm + vid * (bm // 2)", "bm", (32,)),
    "shift": ("bm >> 1", "cid * bm + ((vid * bm) >> 1)", "bm", (32,)),
    "half as parameter": ("h", "cid * 2 * h + vid * h", "h", (16,)),
    "half first": ("h", "(cid * 2 + vid) * h", "h", (16,)),
    "reversed product": ("bm // 2", "bm * cid + bm * vid // 2", "bm", (32,)),
    "ceildiv": ("T.ceildiv(bm, 2)", "cid * bm + vid * T.ceildiv(bm, 2)", "bm=32", (32,)),
    "int of a quotient": ("int(bm / 2)", "cid * bm + vid * int(bm / 2)", "bm", (32,)),
    "floordiv": ("bm // 2", "T.ceildiv(cid * bm * 2, 2) + bm // 2 * vid", "bm", (32,)),
    "minus": ("16", "(cid + 1) * 32 - 32 + vid * 16", "", ()),
    "task number": ("16", "16 * (2 * cid + vid)", "", ()),
    "quarter tiles": ("bm // 4", "cid * (bm // 4 * 2) + vid * (bm // 4)", "bm", (64,)),
}


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_a_half(spelling: str, threads: str) -> None:
    rows, start, args, values = SPELLINGS[spelling]
    old = tile(rows, start, args=args)
    new = developer(old, threads)
    same_results(old, new, values)
    assert "vid" not in new
    assert f"threads={'2' if threads == 'auto' else '1'}" in new


FACTORIES = {
    "two names": ("h = bm // 2\nv = h", "v", "cid * bm + vid * h"),
    "number of parts": ("PARTS = 2\nh = bm // PARTS", "h", "cid * bm + vid * bm // PARTS"),
    "quarter of a half": ("h = bm // 2\nq = h // 2", "q * 2", "cid * bm + vid * h"),
    "unpacked": ("h, w = bm // 2, 64", "h", "cid * bm + vid * h"),
    "annotated": ("h: int = bm // 2", "h", "cid * bm + vid * h"),
    "used elsewhere": ("h = bm // 2\nprint(h)", "h", "cid * bm + vid * h"),
    "chosen": ("h = 16 if bm == 32 else 8", "h", "cid * 2 * h + vid * h"),
    "constant": ("h = 16", "h", "cid * 32 + vid * h"),
}


@pytest.mark.parametrize("case", FACTORIES)
def test_names_of_a_half_in_the_factory(case: str) -> None:
    factory, rows, start = FACTORIES[case]
    old = tile(rows, start, f"for i in range({rows}):\n    T.tile.exp(a[i, :], a[i, :])\n", factory=factory, args="bm")
    assert right_or_refused(old, args=(32,)) or case == "quarter of a half"


def test_a_name_keeps_its_value_where_others_need_it() -> None:
    """``h`` also counts tiles: the definition must stay, the uses change."""
    old = vector_file(
        'a = T.alloc_ub((h, 64), "float32")\nfor t in range(32 // (2 * h)):\n'
        "    T.copy(A[cid * 32 + t * 2 * h + vid * h, 0], a)\n    T.tile.exp(a, a)\n"
        "    T.copy(a, O[cid * 32 + t * 2 * h + vid * h, 0])",
        factory="h = bm // 2",
        args="bm",
    )
    for bm in (8, 16, 32):
        assert right_or_refused(old, args=(bm,))


def test_a_halved_name_in_the_grid_is_not_redefined() -> None:
    old = tile("h", "cid * 2 * h + vid * h", factory="h = bm // 2\nblocks = 32 // h", args="bm").replace(
        "T.Kernel(2,", "T.Kernel(blocks,"
    )
    assert right_or_refused(old, args=(32,))


def test_folded_variables_go() -> None:
    old = vector_file(
        'off = vid * half\nrow = cid * 32 + off\na = T.alloc_ub((half, 64), "float32")\n'
        "T.copy(A[row : row + half, :], a)\nT.tile.exp(a, a)\nT.copy(a, O[row : row + half, 0:64])",
        factory="half = 16",
    )
    new = developer(old)
    same_results(old, new)
    assert "off" not in new
    assert "row = cid * 32\n" in new


TOGETHER = {  # assignments of the kernel -> what is left of them
    "r, c = cid * 32 + vid * 16, 0": "r, c = cid * 32, 0",
    "v, r, c = vid * 16, cid * 32, 0": "r, c = cid * 32, 0",
    "(r, v), c = (cid * 32, vid * 16), 0": None,
    "r, v = cid * 32, vid * 16\nc = 0": "r = cid * 32\n",
    "[v, r] = [16 * vid, 32 * cid]\nc = 0": "r = 32 * cid\n",
    "v, w = vid * 16, vid * 8\nr, c = cid * 32, 0": "        r, c = cid * 32, 0",
}


@pytest.mark.parametrize("lets", TOGETHER)
def test_names_that_are_bound_together(lets: str) -> None:
    row = "r + v" if "v" in lets.split("=", maxsplit=1)[0] else "r"
    old = vector_file(
        f'{lets}\na = T.alloc_ub((h, 64), "float32")\nT.copy(A[{row}, c], a)\n{EXP}T.copy(a, O[{row}, c])',
        factory="h, other = 16, 3\nprint(other)",
    )
    if TOGETHER[lets] is None:
        right_or_refused(old)
        return
    new = developer(old)
    same_results(old, new)
    assert str(TOGETHER[lets]) in new
    assert "vid" not in new


def test_of_names_bound_together_those_without_a_use_go() -> None:
    old = tile("h", "cid * 32 + vid * k", factory="h, k, n = 16, 16, 3\nprint(n)")
    new = developer(old)
    same_results(old, new)
    assert "h, n = 16, 3" in new


def test_annotated_names_are_like_others() -> None:
    old = vector_file(
        'v: T.int32 = vid * h\nr: T.int32 = cid * 32 + v\na = T.alloc_ub((h, 64), "float32")\n'
        f"T.copy(A[r, 0], a)\n{EXP}T.copy(a, O[r, 0])",
        factory="h = 16",
    )
    new = developer(old)
    same_results(old, new)
    assert "r: T.int32 = cid * 32\n" in new
    assert "v: T" not in new


@pytest.mark.parametrize(
    "rows",
    [
        "cid * 32 + vid * 16 : cid * 32 + vid * 16 + 16",
        "cid * 32 + vid * 16 : cid * 32 + (vid + 1) * 16",
        "cid * 32 + 16 * vid : cid * 32 + 16 + vid * 16",
        "32 * cid + 16 * vid : 16 * (2 * cid + vid + 1)",
    ],
)
def test_slices(rows: str) -> None:
    old = vector_file(
        f'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[{rows}, :], a)\nT.tile.exp(a, a)\nT.copy(a, O[{rows}, 0:64])'
    )
    same_results(old, developer(old))


def test_what_does_not_change_keeps_its_text() -> None:
    old = tile("16", "cid*32 + vid *16", "T.tile.add( a,a , 1.0 )  # keep\n")
    new = developer(old)
    assert "T.tile.add( a,a , 1.0 )  # keep\n" in new
    assert "A[cid*32, 0]" in new


def test_keywords_semicolons_and_comments() -> None:
    old = vector_file(
        "# head\n"
        'a = T.alloc_ub(dtype="float32", shape=[16, 64]); T.copy(dst=a, src=A[cid * 32 + vid * 16, 0])  # load\n'
        "T.tile.exp(\n    a,  # out\n    a,\n)\nT.copy(\n    dst=O[\n"
        "        cid * 32 + vid * 16,  # rows\n        0,\n    ],\n"
        "    src=a,\n)"
    )
    new = developer(old)
    same_results(old, new)
    for comment in ("# head", "# load", "# out", "# rows"):
        assert comment in new


def test_several_tiles_of_different_sizes() -> None:
    body = LOAD + (
        'b = T.alloc_ub((4, 64), "float32")\nfor k in range(4):\n    T.copy(B[cid * 32 + k * 8 + vid * 4, 0], b)\n'
        "    T.tile.mul(b, b, 2.0)\n    T.copy(b, O[cid * 32 + k * 8 + vid * 4, 0])\n"
    )
    old = vector_file(body + "T.tile.exp(a, a)\n")
    same_results(old, developer(old))


# What must not reach the full form, or must still be right there -----------------------------------------------------

BODIES = {
    "every third row": "for i in range(0, 16, 3):\n    T.tile.exp(a[i, :], a[i, :])\n",
    "every other row": "for i in range(0, 16, 2):\n    T.tile.exp(a[i, :], a[i, :])\n",
    "two rows at a time": (
        "for i in range(8):\n    T.tile.exp(a[2 * i, :], a[2 * i, :])\n"
        "    T.tile.abs(a[2 * i + 1, :], a[2 * i + 1, :])\n"
    ),
    "the first rows": "for i in range(8):\n    T.tile.exp(a[i, :], a[i, :])\n",
    "the first row of all": "for i in range(16):\n    T.tile.add(a[i, :], a[i, :], a[0, :])\n",
    "the row above": "for i in range(15):\n    T.tile.add(a[i + 1, :], a[i + 1, :], a[i, :])\n",
    "the row number": "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] * i\n",
    "a condition on the row": "for i in range(16):\n    if i < 8:\n        T.tile.exp(a[i, :], a[i, :])\n",
    "the same rows for both": "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] + B[i, j]\n",
    "a loop of copies for both": (
        'b = T.alloc_ub((16, 64), "float32")\nfor i in range(16):\n'
        "    T.copy(B[i, 0:64], b[i, :])\nT.tile.add(a, a, b)\n"
    ),
    "a slice for both": 'b = T.alloc_ub((16, 64), "float32")\nT.copy(B[0, 0], b[0:16, :])\nT.tile.add(a, a, b)\n',
    "a tile for both": 'b = T.alloc_ub((16, 64), "float32")\nT.copy(B[0, 0], b)\nT.tile.add(a, a, b)\n',
    "numbered rows": (
        'ix = T.alloc_ub((16,), "int32")\nT.tile.createvecindex(ix, 0)\n'
        "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] + ix[i]\n"
    ),
    "a sorted tile": "T.tile.sort(a, a)\n",
    "a transposed tile": 'b = T.alloc_ub((16, 64), "float32")\nT.tile.transpose(b, a)\nT.tile.add(a, a, b)\n',
    "part of a cast": 'T.tile.cast(a, a, "CAST_RINT", 512)\n',
    "the first rows of a slice": 'b = T.alloc_ub((16, 64), "float32")\nT.copy(a, b)\nT.copy(b[0:8, :], a[8:16, :])\n',
    "a column sum": (
        'm = T.alloc_ub((1, 64), "float32")\nT.reduce_sum(a, m, dim=0)\n'
        "for i in range(16):\n    T.tile.add(a[i, :], a[i, :], m[0, :])\n"
    ),
    "a scalar": "T.tile.mul(a, a, vid + 1)\n",
    "a scalar of a tile": "T.tile.mul(a, a, a[0, 0])\n",
    "a value behind a name": "s = vid * 2\nT.tile.mul(a, a, s)\n",
    "a value behind a call": "s = T.max(vid, 0)\nT.tile.mul(a, a, s)\n",
    "a part of a whole buffer": (
        'b = T.alloc_ub((32, 64), "float32")\nT.copy(B[cid * 32, 0], b)\nT.copy(b[vid * 16 : vid * 16 + 16, :], a)\n'
    ),
    "one core's buffer": "for k in range(vid + 1):\n    T.tile.add(a, a, 1.0)\n",
}


@pytest.mark.sampled
@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("case", BODIES)
def test_traps(case: str, threads: str) -> None:
    right_or_refused(vector_file(LOAD + BODIES[case] + STORE), threads)


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ("cid * 32 + (1 - vid) * 16", "TL221"),
        ("cid * 32 + vid * 8", "TL221"),
        ("cid * 32 + vid * 17", "TL221"),
        ("cid * 32 + vid * 16 + vid", "TL221"),
        ("vid * 32 + cid * 16", "TL221"),
        ("cid * 32 + vid * vid * 8", "TL221"),
    ],
)
def test_offsets_that_are_no_halves(start: str, code: str) -> None:
    refused(tile("16", start), code)


def test_an_odd_tile_is_not_taken_for_even() -> None:
    """2 x 8 rows of 17: the last row of every block belongs to nobody in the old kernel either, so there are gaps."""
    old = tile("17 // 2", "cid * 17 + vid * (17 // 2)")
    new = migrated(old).new_text or ""
    if only(migrated(old)).target.startswith("developer"):
        assert "(16, 64)" in new


def test_evenness_is_said() -> None:
    result = migrated(tile("bm // 2", "cid * bm + vid * bm // 2", args="bm"))
    assert [d.message for d in result.diagnostics if d.code == "TL905"] == [
        "assumed that `bm` is even, as the old kernel does"
    ]
    assert not [d for d in migrated(tile("16", "cid * 32 + vid * 16")).diagnostics if d.code == "TL905"]


def test_evenness_that_is_asserted_is_not_said() -> None:
    old = tile("bm // 2", "cid * bm + vid * bm // 2", args="bm")
    asserted = old.replace("    @T.prim_func", "    assert bm % 4 == 0\n\n    @T.prim_func")
    assert asserted != old
    assert not [d for d in migrated(asserted).diagnostics if d.code == "TL905"]


@pytest.mark.parametrize(
    "change",
    ["bm *= 2", "bm = bm + 16", "if bm > 8:\n    bm = 64", "for _ in range(1):\n    bm = 64", "bm = max(bm, 64)"],
)
def test_a_size_that_changes_after_it_was_halved(change: str) -> None:
    old = tile("h", "cid * 32 + vid * h", factory=f"h = bm // 2\nprint(h)\n{change}", args="bm")
    right_or_refused(old, args=(32,))


def test_a_half_that_is_rounded_up_needs_a_size_that_is_known_to_be_even() -> None:
    """With odd ``bm`` the old halves overlap by a row and are right; ``threads=2`` would lose the last one."""
    rows, start = "T.ceildiv(bm, 2)", "cid * bm + vid * T.ceildiv(bm, 2)"
    refused(tile(rows, start, args="bm"), "TL820")
    refused(tile(rows, start, args="bm=31"), "TL820")
    developer(tile(rows, start, args="bm"), "1")


def test_halves_that_overlap_by_a_row() -> None:
    """Rounded up as a size, down as an offset: right with odd ``bm``, but a whole tile has a row too many."""
    old = tile("(bm + 1) // 2", "cid * bm + vid * bm // 2", args="bm")
    refused(old, "TL820")
    assert right_or_refused(old, "1", (32,))
    for threads in ("auto", "1"):
        developer(tile("(bm + 1) // 2", "cid * bm + vid * bm // 2", args="bm", tail="factory(32)"), threads)


def test_a_broadcast_whose_axis_the_sizes_choose() -> None:
    """The front end tries the columns first: with ``bm == 64`` the whole tile would be broadcast the other way."""
    body = 'r = T.alloc_ub((bm // 2,), "float32")\nT.reduce_sum(a, r, dim=-1)\nT.tile.broadcast(a, r)\n'
    old = tile("bm // 2", "cid * bm + vid * (bm // 2)", body, args="bm")
    refused(old, "TL224")
    assert right_or_refused(old, "1", (32,))
