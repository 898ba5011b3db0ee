"""The compiler's memory planner, on examples that were worked out by hand from its source."""

from __future__ import annotations

import pytest

from tl2npu.dialects.lifetimes import Block, Glance, Leaf, Step, lifetimes
from tl2npu.dialects.placement import Fit, Interval, aligned, place


def intervals(*spans: tuple[int, int, int]) -> list[Interval]:
    return [Interval(str(i), *span) for i, span in enumerate(spans)]


def test_sizes_are_whole_blocks() -> None:
    assert [aligned(size) for size in (1, 32, 33, 64)] == [32, 32, 64, 64]


@pytest.mark.parametrize(
    ("spans", "limit", "fit"),
    [
        # one after the other: the third takes the room of the first
        ([(0, 1, 64), (2, 3, 64), (4, 5, 64)], 128, Fit.CERTAIN),
        # all at once
        ([(0, 5, 64), (2, 5, 64), (4, 5, 64)], 128, Fit.NEVER),
        # what is all that is wanted fits in any order
        ([(0, 5, 64), (0, 5, 64)], 128, Fit.CERTAIN),
        # an end frees behind it only: a tile that begins where another ends takes new memory
        ([(0, 2, 96), (2, 3, 96)], 128, Fit.NEVER),
        ([(0, 1, 96), (2, 3, 96)], 128, Fit.CERTAIN),
        # two free blocks of 32 with a living one between them do not make one of 64: new memory was taken first
        ([(0, 2, 32), (1, 9, 32), (2, 3, 32), (4, 5, 64)], 96, Fit.NEVER),
        # the last block grows into what is left at the end
        ([(0, 9, 32), (1, 2, 32), (3, 4, 64)], 96, Fit.CERTAIN),
        # the same with 32 bytes of it that nobody has had yet
        ([(0, 9, 32), (1, 2, 32), (3, 4, 96)], 128, Fit.CERTAIN),
        # a living tile at the end: the free block in front of it does not grow
        ([(0, 1, 32), (1, 9, 32), (2, 9, 64)], 96, Fit.NEVER),
        # no free block at all: the planner reads in front of its list and crashes
        ([(0, 9, 96), (1, 9, 64)], 128, Fit.NEVER),
    ],
)
def test_places(spans: list[tuple[int, int, int]], limit: int, fit: Fit) -> None:
    assert place(intervals(*spans), limit).fit is fit


def test_tiles_with_the_same_begin_come_in_any_order() -> None:
    """32 that die and 32 that live, in this order or the other; then 64 that need both the dead and the unused."""
    # dead, alive | 32 free at 0, 32 at the end: no; alive, dead | free from 32 to the end: yes
    found = place(intervals((0, 1, 32), (0, 9, 32), (2, 3, 64)), 96)
    assert found.fit is Fit.DOUBTFUL
    assert found.failed == Interval("2", 2, 3, 64)
    assert found.free == 64
    assert found.peak == 96
    # with one more byte block of 32 there is new memory in either case
    assert place(intervals((0, 1, 32), (0, 9, 32), (2, 3, 64)), 128).fit is Fit.CERTAIN


def test_too_many_orders_are_not_followed() -> None:
    """Twelve tiles of different sizes in one instruction: 479 million orders."""
    many = [(0, 9, 32 * size) for size in range(1, 13)]
    assert place(intervals(*many, (10, 11, 32 * 60)), 32 * 80).fit is Fit.DOUBTFUL


def test_lifetimes_in_straight_code() -> None:
    steps: list[Step] = [Leaf((1,)), Leaf((1, 2)), Leaf((2,))]
    # place 0 is the begin of the kernel
    assert lifetimes(steps) == {1: (1, 2), 2: (2, 3)}


def test_a_tile_from_before_a_loop_lives_to_the_end_of_the_kernel() -> None:
    """Not of the loop: the level outside of the outermost one is never reached (``ReorderKillPoints``)."""
    steps: list[Step] = [Leaf((1,)), Block((Leaf((1, 2)), Leaf((2,))), loops=True), Leaf((3,)), Leaf((3,))]
    # 0 kernel, 1 leaf, 2 loop, 3, 4 leaves, 5 end of the loop, 6, 7 leaves
    assert lifetimes(steps) == {1: (1, 7), 2: (3, 4), 3: (6, 7)}


def test_a_tile_of_a_loop_lives_to_the_end_of_its_inner_loop() -> None:
    inner = Block((Leaf((1,)), Leaf((2,)), Leaf((2,))), loops=True)
    steps: list[Step] = [Block((Leaf((1,)), inner, Leaf((3,))), loops=True), Leaf((4,))]
    # 0 kernel, 1 loop, 2 leaf, 3 inner loop, 4, 5, 6 leaves, 7 end, 8 leaf, 9 end, 10 leaf
    assert lifetimes(steps)[1] == (2, 8)  # the last event before one at level 0


def test_branches_have_no_level_of_their_own() -> None:
    steps: list[Step] = [Leaf((1,)), Block((Leaf((1,)),), loops=False), Leaf((2,))]
    assert lifetimes(steps)[1] == (1, 3)


def test_a_condition_counts_for_the_branch_and_from_its_begin() -> None:
    steps: list[Step] = [Leaf((1,)), Block((Leaf((2,)), Leaf((2,))), loops=False, head=(1,)), Leaf((2,))]
    # 0 kernel, 1 leaf, 2 branch, 3, 4 leaves, 5 end, 6 leaf: the end of tile 1 falls on the branch, whose place is 2
    assert lifetimes(steps) == {1: (1, 2), 2: (3, 6)}


def test_a_bound_name_counts_for_the_block_around_it() -> None:
    body = (Leaf((1,)), Glance((1,)), Leaf((2,)))
    steps: list[Step] = [Block(body, loops=True), Leaf((3,))]
    # the loop's own place is 1, the tile's first one is 2
    assert lifetimes(steps)[1] == (2, 1)


def test_a_tile_that_only_a_condition_reads_gets_no_memory() -> None:
    steps: list[Step] = [Block((Leaf((2,)),), loops=False, head=(1,))]
    assert lifetimes(steps) == {2: (2, 2)}


def test_the_same_statement_twice_counts_where_it_stands_first() -> None:
    again = Leaf((1,))
    steps: list[Step] = [again, Leaf((2,)), again, Leaf((2,))]
    assert lifetimes(steps) == {1: (1, 1), 2: (2, 4)}
