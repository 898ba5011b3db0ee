"""Software pipelines as memory planning sees them: which statements run ahead, and how many versions a tile has.

A port of what matters here of ``src/transform/pipeline_planning.cc`` and ``inject_pipeline.cc`` (95acbd7f): loads whose
tile is used later in the body run some turns ahead, and such a tile has a version for each of these turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tl2npu.dialects.lifetimes import Tile


@dataclass(frozen=True, eq=False)
class Stage:
    """A statement of the body; ``loads``: it copies from global memory into a tile."""

    reads: frozenset[Tile]
    writes: frozenset[Tile]
    loads: bool


@dataclass(frozen=True)
class Schedule:
    """``order`` of the statements in the loop; those ``ahead`` run ``depth`` turns before the others."""

    order: tuple[int, ...]
    ahead: frozenset[int]
    depth: int
    versions: Mapping[Tile, int]


def schedule(body: Sequence[Stage], stages: int) -> Schedule:
    """What becomes of a loop with ``num_stages`` = ``stages``."""
    last_use = {
        number: max((n for n, other in enumerate(body) if n > number and stage.writes & other.reads), default=-1)
        for number, stage in enumerate(body)
        if stage.loads
    }
    ahead = {number: use for number, use in last_use.items() if use >= 0}
    order: list[int] = []
    for number in range(len(body)):
        if number not in ahead:
            order.append(number)
            order += [load for load, use in ahead.items() if use == number]
    order = [number for number in ahead if number not in order] + order
    depth = stages
    if ahead and set(order[-len(last_use) :]) == set(last_use) and stages >= 2:
        order = [*order[-len(last_use) :], *order[: -len(last_use)]]
        depth -= 1
    versions: dict[Tile, int] = {}
    for number, use in ahead.items():
        before = order.index(number) < order.index(use)
        for tile in body[number].writes:
            versions[tile] = depth + before
    return Schedule(tuple(order), frozenset(ahead), depth, versions)
