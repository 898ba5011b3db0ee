"""Kept workspaces, the fallback form (facts 6, E21, E47)."""

from __future__ import annotations

import pytest

from tests.checks.support import KEYS, PLAIN, SPLIT, errors, kernel

PARAMS = (
    'A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 64), "float16"), O: T.Tensor((256, 64), "float32"), '
    'workspace_keep: T.Tensor((32, 32, 64), "float32")'
)
ALLOCS = """
l = T.alloc_shared((32, 64), "float16")
r = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((32, 64), "float32")
x = T.alloc_ub((16, 64), "float32")
T.copy(A[cid * 32, 0], l)
T.copy(B[0, 0], r)
"""
WRITE = """
T.gemm_v0(l, r, c, init=True)
T.copy(c, workspace_keep[cid, 0:32, 0:64])
"""
READ = """
T.copy(workspace_keep[cid, vid * 16 : vid * 16 + 16, :], x)
T.tile.exp(x, x)
"""
END = "T.copy(x, O[cid * 32 + vid * 16, 0])\n"


def check(*parts: str, **settings: object) -> list[str]:
    defaults: dict[str, object] = {
        "params": PARAMS,
        "jit": "out_idx=[2], workspace_idx=[3]",
        "launch": PLAIN,
    }
    return errors(kernel(ALLOCS, *parts), **{**defaults, **settings})


def loop(*parts: str, head: str = "for k in T.serial(4):") -> str:
    lines = [line for line in kernel(*parts).splitlines() if line.strip()]
    return "\n".join([head, *("    " + line for line in lines)])


def test_repeatsspace_and_vid_are_a_valid_form() -> None:
    assert check(WRITE, READ, END) == []


def test_whole_tiles_with_threads() -> None:
    body = kernel(ALLOCS.replace("(16, 64)", "(32, 64)"), WRITE, READ.replace("vid * 16 : vid * 16 + 16", "0:32"))
    settings = {"params": PARAMS, "jit": "out_idx=[2], workspace_idx=[3]", "launch": SPLIT}
    assert errors(kernel(body, "T.copy(x, O[cid * 32, 0])"), **settings) == []


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (KEYS, []),
        (("AUTO_CV_COMBINE", "AUTO_CV_SYNC", "AUTO_SYNC"), []),
        (("AUTO_CV_COMBINE", "AUTO_SYNC"), ["TL816"]),
        (("AUTO_CV_SYNC", "AUTO_SYNC"), ["TL816"]),
        ((), ["TL816"]),
    ],
)
def test_passes_for_a_workspace(keys: tuple[str, ...], found: list[str]) -> None:
    assert check(WRITE, READ, END, keys=keys) == found


@pytest.mark.parametrize(("name", "keys", "found"), [
    ("workspace_keep", KEYS, True),
    ("scratch", KEYS, False),
    ("workspace_keep", ("AUTO_CV_COMBINE", "AUTO_SYNC", "MEMORY_PLANNING"), False),
])  # fmt: skip
def test_a_workspace_of_the_cube_core_alone(name: str, keys: tuple[str, ...], found: bool) -> None:
    """ "Mismatch in sync points between cube and vec for workspace workspace_keep: cube has 1, vec has 0"."""
    write = WRITE.replace("workspace_keep", name)
    assert ("TL840" in check(write, params=PARAMS.replace("workspace_keep", name), keys=keys)) == found


def test_names_without_workspace_get_no_flags() -> None:
    renamed = [part.replace("workspace_keep", "scratch") for part in (PARAMS, WRITE, READ)]
    assert check(renamed[1], renamed[2], END, params=renamed[0]) == ["TL850"]


def test_copies_are_paired_by_their_order() -> None:
    assert check(WRITE, READ, READ, END) == ["TL840"]
    assert check(WRITE, READ, WRITE, READ, END) == ["TL848"]  # nothing makes the second write wait for the first read
    exchange = "T.copy(x, workspace_keep[cid, vid * 16 : vid * 16 + 16, :])\nT.copy(workspace_keep[cid, 0:32, :], l)"
    assert "TL840" not in check(WRITE, READ, exchange, END)


def test_conditions_around_one_end() -> None:
    write = "T.gemm_v0(l, r, c, init=True)\n" + loop("T.copy(c, workspace_keep[cid, 0:32, 0:64])", head="if cid > 0:")
    assert check(write, READ, END) == ["TL868"]
    assert check(loop(WRITE, READ, head="if cid > 0:"), END) == []


def test_a_condition_on_single_rows_stays_inside_the_flags() -> None:
    rows = """
    for i in T.serial(16):
        if i > 3:
            T.copy(row, workspace_keep[cid, vid * 16 + i, :])
    T.copy(workspace_keep[cid, 0:32, :], h)
    T.gemm_v0(h, r, c, init=True)
    """
    extra = 'row = T.alloc_ub((64,), "float32")\nh = T.alloc_shared((32, 64), "float32")\nT.tile.fill(row, 0.0)'
    assert [code for code in check(extra, rows) if code != "TL710"] == []  # of `h` and `r`


@pytest.mark.parametrize("index", ["0", "cid % 4", "cid // 2"])
def test_blocks_share_a_tile(index: str) -> None:
    write, read = (part.replace("[cid", f"[{index}") for part in (WRITE, READ))
    assert check(write, read, END) == ["TL842"]


def test_one_way_streams() -> None:
    assert check(loop(WRITE, READ), END) == ["TL848"]
    by_step = [part.replace("[cid,", "[cid * 4 + k,") for part in (WRITE, READ)]
    assert check(loop(*by_step), END) == []
    two_slots = [part.replace("[cid,", "[cid * 2 + k % 2,") for part in (WRITE, READ)]
    assert check(loop(*two_slots), END) == ["TL848"]


def test_loops_of_one_length_that_take_different_tiles() -> None:
    """Both loops run four times, so the compiler pairs their steps; the readers need all of the writers."""
    write = loop(WRITE.replace("[cid,", "[cid * 4 + k,"))
    same = loop(READ.replace("[cid,", "[cid * 4 + k,"))
    other = loop(READ.replace("[cid,", "[cid * 4 + 3 - k,"))
    assert check(write, same, END) == []
    assert check(write, other, END) == ["TL848"]


def test_stored_and_loaded_by_the_same_core() -> None:
    store = "T.copy(x, O[cid * 32 + vid * 16, 0])"
    assert check(WRITE, READ, f"{store}\nT.copy(O[cid * 32 + (1 - vid) * 16, 0], x)") == ["TL849"]
    assert check(WRITE, READ, f"{store}\nT.copy(O[cid * 32 + vid * 16, 0], x)") == []  # AUTO_SYNC orders these
    in_place = "T.copy(O[cid * 32 + vid * 16, 0], x)\nT.tile.exp(x, x)\nT.copy(x, O[cid * 32 + vid * 16, 0])"
    assert check(WRITE, READ, in_place) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("O[cid * 64, 0]", "O[cid * 64 + 1, 0]", ["TL849"]),
        ("O[cid * 64 + 16, 0]", "O[cid * 64, 0]", ["TL849"]),
        ("O[cid * 64, 0]", "O[cid * 64, 0]", []),  # each core stores its own rows twice
        ("O[cid * 64, 0]", "O[cid * 64, 32]", []),  # and these
        ("O[cid * 64, 0]", "O[cid * 64 + 32, 0]", []),
    ],
)
def test_rows_of_both_vector_cores(first: str, second: str, found: list[str]) -> None:
    """Of 32 rows core 0 has the first 16: shifted by one, it stores row 16, where core 1 stored or loaded, or will."""
    tile = 'x = T.alloc_ub((32, 64), "float32")\nT.tile.fill(x, 1.0)\n'
    settings = {"params": PARAMS, "jit": "out_idx=[2], workspace_idx=[3]"}
    body = kernel(tile, f"T.copy(x, {first})\nT.tile.exp(x, x)\nT.copy(x, {second})")
    assert errors(body, launch=SPLIT, **settings) == found
    either = kernel(tile, f"if cid > 2:\n    T.copy(x, {first})\nelse:\n    T.copy(x, {second})")
    assert errors(either, launch=SPLIT, **settings) == []
    moved = kernel(tile.splitlines()[0], f"T.copy({first}, x)\nT.tile.exp(x, x)\nT.copy(x, {second})")
    assert errors(moved, launch=SPLIT, **settings) == found


def test_names_that_the_compiler_takes() -> None:
    extra = """
    u = T.alloc_ub((32, 64), "float32")
    w = T.alloc_ub((32, 64), "float32")
    d = T.alloc_fragment((32, 64), "float32")
    """
    kept = WRITE + "T.copy(workspace_keep[cid, 0:32, :], w)\n"
    chip = "T.gemm_v0(l, r, d, init=True)\nT.copy(d, u)\nT.tile.add(u, u, w)\nT.copy(u, O[cid * 32, 0])"

    def named(name: str) -> list[str]:
        parts = [part.replace("workspace_keep", name) for part in (extra, kept, chip)]
        return check(*parts, launch=SPLIT, params=PARAMS.replace("workspace_keep", name))

    assert named("workspace_keep") == []
    assert named("workspace_1") == ["TL851"]
    assert named("workspace_2") == []
