"""Regions of global memory: what a copy touches, whether two meet, whether blocks share them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.support import of_type, read
from tl2npu.kernel.handover import Place, Region, common_loops, disjoint, is_private, same_region, traffic
from tl2npu.kernel.model import Copy, Kernel, Side
from tl2npu.kernel.symbolic import Sym, const, var

PARAMS = (
    'A: T.Tensor((1024, 64), "float32"), O: T.Tensor((1024, 64), "float32"), ws: T.Tensor((32, 4, 32, 64), "float32")'
)
TILE = 'a = T.alloc_ub((32, 64), "float32")\nl = T.alloc_L1((32, 64), "float32")\nrow = T.alloc_ub((64,), "float32")\n'


def places(body: str, tensor: str = "ws") -> tuple[Kernel, list[Place]]:
    """The copies with a tensor, in text order."""
    kernel = read(TILE + body, params=PARAMS)
    entry = next(t for b, t in traffic(kernel).items() if b.name == tensor)
    return kernel, sorted((*entry.writers, *entry.readers), key=lambda place: place.order)


def regions(body: str, tensor: str = "ws") -> list[Region]:
    return [place.region for place in places(body, tensor)[1]]


def text(found: Region) -> list[str]:
    return [f"{lo}:{extent}" for lo, extent in found]


# regions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    ["3, 1, 0, 0", "3, 1, 0:32, 0:64", "3, 1, :, :", "3:4, 1:2, :, 0:64", "3, 1, 0:32, :"],
)
def test_a_base_index_is_the_slice_of_the_other_side(index: str) -> None:
    (found,) = regions(f"T.copy(a, ws[{index}])")
    assert text(found) == ["3:1", "1:1", "0:32", "0:64"]


def test_a_part_of_the_other_side_gives_its_extents() -> None:
    (found,) = regions("T.copy(a[8:16, :], ws[3, 1, 4, 0])")
    assert text(found) == ["3:1", "1:1", "4:8", "0:64"]


def test_a_row_into_a_base_index() -> None:
    (found,) = regions("T.copy(row, ws[3, 1, 7, 0])")
    assert text(found) == ["3:1", "1:1", "7:1", "0:64"]


def test_the_whole_tensor() -> None:
    (found,) = regions("T.copy(A, a)", "A")
    assert text(found) == ["0:1024", "0:64"]


def test_same_regions() -> None:
    left, right, other = regions(
        "T.copy(a, ws[cid, 1, 0, 0])\nT.copy(ws[cid, 1, 0:32, :], l)\nT.copy(ws[cid, 2, 0, 0], l)"
    )
    assert same_region(left, right)
    assert not same_region(left, other)


@given(*(st.tuples(st.integers(0, 12), st.integers(1, 8)) for _ in range(4)))
def test_disjoint_is_what_it_says(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], d: tuple[int, int]
) -> None:
    def made(*dims: tuple[int, int]) -> Region:
        return tuple((const(lo) + var("n"), const(size)) for lo, size in dims)

    def cells(*dims: tuple[int, int]) -> set[tuple[int, ...]]:
        return set(itertools.product(*(range(lo, lo + size) for lo, size in dims)))

    assert disjoint(made(a, b), made(c, d)) == (not cells(a, b) & cells(c, d))
    assert disjoint(made(a, b), made(c, d)) == disjoint(made(c, d), made(a, b))


def test_regions_that_may_meet_are_not_disjoint() -> None:
    left, right = regions("T.copy(a, ws[cid, M, 0, 0])\nT.copy(a, ws[cid, N, 0, 0])")
    assert not disjoint(left, right)
    assert not same_region(left, right)


def test_other_loop_iterations_are_other_regions() -> None:
    body = "for i in range(4):\n    T.copy(a, ws[cid, i, 0, 0])\nfor i in range(4):\n    T.copy(ws[cid, i, 0, 0], l)"
    left, right = regions(body)
    assert not same_region(left, right)


# privacy -------------------------------------------------------------------------------------------------------------

INDICES = [
    "cid, 0",
    "cid * 2, 0",
    "0, cid",
    "cid // 4, cid % 4",
    "cid % 4, cid // 4",
    "cid // 8 * 2 + 1, cid % 8 * 3",
    "cid // 4, (cid % 4) * 16",
    "cid // M, cid % M",
    "5 - cid, 0",
    "cid % 4, 0",
    "cid // 4, 0",
    "0, 0",
    "cid // 8, cid % 4",
    "cid // 4, cid % 8",
    "cid % 2, cid % 3",
    "cid // 8, cid % 2 + cid % 3",
    "cid - cid // 4 * 4, 0",
    "cid * 0, 1",
    "cid // 2 // 2, cid % 4",
    "cid // 4 + cid % 4, 0",
    "M, N",
    "cid * cid, 0",
]


def injective(first: Sym, second: Sym, kernel: Kernel, grid: int = 64) -> bool:
    """Brute force: different blocks start at different places, whatever the sizes are."""
    assert kernel.cid is not None
    for size in (2, 3, 4, 8):
        seen = {
            (
                first.evaluate({kernel.cid: cid, "M": size, "N": 5}),
                second.evaluate({kernel.cid: cid, "M": size, "N": 5}),
            )
            for cid in range(grid)
        }
        if len(seen) < grid:
            return False
    return True


@pytest.mark.parametrize("index", INDICES)
def test_private_places_are_different_places(index: str) -> None:
    kernel, (place,) = places(f"T.copy(a, ws[{index}, 0, 0])")
    (first, _), (second, _), *_ = place.region
    if is_private(place, kernel, (var("grid"),)):
        assert injective(first, second, kernel)


@pytest.mark.parametrize("index", INDICES[:8])
def test_usual_ways_to_separate_blocks_are_known(index: str) -> None:
    kernel, (place,) = places(f"T.copy(a, ws[{index}, 0, 0])")
    assert is_private(place, kernel, (var("grid"),))


def test_a_single_block_shares_with_nobody() -> None:
    kernel, (place,) = places("T.copy(a, ws[0, 0, 0, 0])")
    assert is_private(place, kernel, (const(1),))
    assert not is_private(place, kernel, (const(2),))


def test_blocks_that_overlap_are_not_private() -> None:
    """Tiles of 32 rows that start 16 rows apart."""
    kernel, (place,) = places("T.copy(a, ws[0, 0, cid * 16, 0])")
    assert not is_private(place, kernel, (const(4),))


# traffic -------------------------------------------------------------------------------------------------------------


def test_writers_readers_and_elements() -> None:
    body = (
        "T.copy(a, ws[0, 0, 0, 0])\nT.copy(ws[0, 0, 0, 0], l)\n"
        "for i, j in T.Parallel(32, 64):\n    a[i, j] = ws[0, 1, i, j]\n"
    )
    kernel = read(TILE + body, params=PARAMS)
    entry = next(t for b, t in traffic(kernel).items() if b.name == "ws")
    assert (len(entry.writers), len(entry.readers), len(entry.element_reads)) == (1, 1, 1)
    assert entry.exchanged
    assert not next(t for b, t in traffic(kernel).items() if b.name == "A").exchanged


def test_index_loads_count_as_reads() -> None:
    body = "T.copy(A[ws[0, 0, 0, 0], 0], a)"
    kernel = read(TILE + body, params=PARAMS)
    assert next(t for b, t in traffic(kernel).items() if b.name == "ws").element_reads


def test_atomic_additions_are_no_copies() -> None:
    kernel = read(TILE + "T.tile.atomic_add(ws[0, 0, 0, 0], a)", params=PARAMS)
    entry = next(t for b, t in traffic(kernel).items() if b.name == "ws")
    assert entry.element_writes
    assert entry.element_reads


def test_common_loops() -> None:
    body = (
        "for i in range(2):\n    for j in range(2):\n        T.copy(a, ws[0, 0, 0, 0])\n"
        "    for k in range(2):\n        T.copy(ws[0, 0, 0, 0], l)"
    )
    kernel, (writer, reader) = places(body)
    shared = common_loops(writer, reader)
    assert [loop.ranges[0].name for loop in shared] == ["i"]
    assert [loop.ranges[0].name for loop in writer.loops] == ["i", "j"]
    assert len(of_type(kernel, Copy)) == 2


def test_copies_in_scopes_keep_their_parents() -> None:
    kernel, (place,) = places('with T.Scope("V"):\n    if cid == 0:\n        T.copy(a, ws[0, 0, 0, 0])')
    assert len(place.branches) == 1
    assert place.loops == ()
    assert kernel.launch is not None
    assert Side.VECTOR in {getattr(parent, "side", None) for parent in place.parents}
