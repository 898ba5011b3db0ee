"""Tiles that memory planning gives one address although both are needed.

The planner takes a tile to be alive from its first to its last place in text order (``lifetimes``). A tile whose first
use is in a loop may be read in a later turn of a loop, behind its last place: then another tile that got its address
has overwritten it. Here is what is alive by the flow of the program, with its loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tl2npu.dialects.lifetimes import Block, Glance, Leaf, Step, Tile

Conflict = tuple[Tile, Tile]
"""A tile with a value that is still read, and one that is written meanwhile."""


@dataclass(frozen=True)
class Harm:
    """``is_certain``: it does not depend on a branch that may be left out, nor on a loop without a turn.

    ``is_by_rows``: the loop around writes both part by part, so that tiles of one size at one address do no harm.
    """

    is_certain: bool
    is_by_rows: bool


@dataclass(frozen=True)
class _Flow:
    """``branches``: whether a branch without an ``else`` may be left out. The conflicts are collected."""

    branches: bool
    found: set[Conflict]
    by_rows: set[Conflict]

    def before(self, steps: Sequence[Step], after: frozenset[Tile], filled: frozenset[Tile]) -> frozenset[Tile]:
        """The tiles that are alive before some steps, for those behind them; ``filled``: loops around fill these."""
        alive = after
        for step in reversed(steps):
            if isinstance(step, Glance):
                alive |= frozenset(step.touched)
            elif isinstance(step, Leaf):
                alive = self._leaf(step, alive, filled)
            else:
                alive = self._block(step, alive, filled)
        return alive

    def _leaf(self, step: Leaf, after: frozenset[Tile], filled: frozenset[Tile]) -> frozenset[Tile]:
        parts = {tile for tile, _ in step.parts}
        for written in step.writes:
            for tile in after - {written}:
                (self.by_rows if tile in filled and written in parts else self.found).add((tile, written))
        return (after - (step.writes - filled)) | step.reads

    def _block(self, step: Block, after: frozenset[Tile], filled: frozenset[Tile]) -> frozenset[Tile]:
        head = frozenset(step.head)
        if not step.loops:
            inside = self.before(step.body, after, filled)
            return head | inside | (after if self.branches and step.may_be_skipped else frozenset())
        own = (filled_by(step) & after) - filled
        inner = filled | own
        alive = after | head
        while True:
            again = alive | self.before(step.body, alive, inner)
            if again == alive:
                break
            alive = again
        entry = self.before(step.body, alive, inner) - own
        return head | entry | ((after - own) if self.branches else frozenset())


def filled_by(loop: Block) -> frozenset[Tile]:
    """Tiles that are written part by part in the turns of a loop."""
    return frozenset(tile for leaf in _leaves(loop.body) for tile, names in leaf.parts if names & loop.variables)


def _leaves(steps: Sequence[Step]) -> Iterator[Leaf]:
    for step in steps:
        if isinstance(step, Leaf):
            yield step
        elif isinstance(step, Block):
            yield from _leaves(step.body)


def conflicts(steps: Sequence[Step], lives: Mapping[Tile, tuple[int, int]]) -> Mapping[Conflict, Harm]:
    """Tiles of which one is overwritten while it is needed, if they share an address."""
    written = frozenset(tile for leaf in _leaves(steps) for tile in leaf.writes)
    sure, maybe = _Flow(False, set(), set()), _Flow(True, set(), set())
    for flow in (sure, maybe):
        flow.before(steps, frozenset(), frozenset())
    return {
        pair: Harm(pair in sure.found | sure.by_rows, pair not in maybe.found)
        for pair in sorted(maybe.found | maybe.by_rows)
        if pair[0] in written and all(tile in lives for tile in pair) and not _overlap(lives[pair[0]], lives[pair[1]])
    }


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
