"""Where the values of two kernels part: the first statement of the old one whose value the new one never has.

Only asked for kernels that differ, so it may be slow: one block of each is run again, and every tile is looked at
behind every statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.evaluate.launch import Launch
from tl2npu.evaluate.machine import Machine
from tl2npu.evaluate.values import Cell, Frame, Tile
from tl2npu.evaluate.verdict import Parting, is_close
from tl2npu.source.tree import mentioned, names_in

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Event:
    """Behind statement ``node`` a tile had a new value: its elements in order, of both cores.

    ``has_operands``: the value is made of tiles.
    """

    node: cst.CSTNode
    name: str
    value: Numbers
    is_tensor: bool
    has_operands: bool


def parting(old: Launch, new: Launch, block: int) -> Parting | None:
    """The first value of the old kernel's tiles that something reads, and that the new kernel has in no tile.

    Only tiles that both have count: others may have been left out. What the new kernel leaves undefined, as rows behind
    the end of a tensor, counts where nothing else is found.
    """
    (before, _), (after, tiles) = (_traced(launch, block) for launch in (old, new))
    return _first(before, after, tiles, lenient=True) or _first(before, after, tiles, lenient=False)


def _first(
    before: Sequence[_Event], after: Sequence[_Event], tiles: Mapping[str, Numbers], lenient: bool
) -> Parting | None:
    reached, lost = dict[str, int](), dict[str, cst.CSTNode]()
    for place, event in enumerate(before):
        name, since = event.name, reached.get(event.name, -1)
        if name not in tiles or tiles[name].size != event.value.size:
            continue
        found = [n for n, other in enumerate(after) if _is_same(event.value, other.value, lenient)]
        own = [n for n, other in enumerate(after) if other.name == name and n > since]
        if found:
            reached[name] = next(iter([n for n in found if n in own] or [n for n in found if n > since]), since)
            lost.pop(name, None)
            continue
        if event.has_operands:  # else it is a start that the new kernel may have made part of what follows
            lost.setdefault(name, event.node)
        if _is_read(before, place):
            last = next((n for n in own if _is_read(after, n)), own[-1] if own else None)
            return Parting(name, lost.get(name, event.node), None if last is None else after[last].node)
    return None


def _is_same(left: Numbers, right: Numbers, lenient: bool) -> bool:
    """What the old kernel left undefined may be anything."""
    if left.size != right.size:
        return False
    is_open = (left != left) | (right != right) if lenient else left != left
    return bool(np.all(is_close(left, right) | is_open)) and not bool(np.all(is_open))


def _is_read(events: Sequence[_Event], place: int) -> bool:
    """Whether another tile is stored with the value, before it is lost."""
    own = events[place]
    for event in events[place + 1 :]:
        if event.name == own.name:
            return False
        if own.name in mentioned(event.node):
            return True
    return own.is_tensor


def _traced(launch: Launch, block: int) -> tuple[list[_Event], Mapping[str, Numbers]]:
    """What statements stored, and the tiles at the end."""
    found: list[_Event] = []
    known: dict[str, Numbers] = {}

    def look(machine: Machine, node: cst.CSTNode) -> None:
        for name, value, is_tensor in list(_values(machine)):
            if name in known and not np.array_equal(known[name], value, equal_nan=value.dtype.kind == "f"):
                names = Counter(n.value for n in names_in(node))
                reads = any(count > (one == name) for one, count in names.items() if one in known)
                found.append(_Event(node, name, value, is_tensor, reads))
            known[name] = value

    launch.run([block], look=look)
    return found, known


def _values(machine: Machine) -> Iterator[tuple[str, Numbers, bool]]:
    """What tiles and variables have now."""
    frames: list[Frame | None] = [
        machine.frame if core == machine.core else frame for core, frame in sorted(machine.frames.items())
    ]
    has_own_tiles = machine.layout.cores > 1 and not machine.layout.halved  # rows of both, one after the other
    tiles: dict[str, list[Tile | Cell]] = {}
    for frame in frames:
        while frame is not None:
            for one in frame.values.values():
                if isinstance(one, (Tile, Cell)):
                    tiles.setdefault(one.name, []).append(one)
            frame = frame.parent
    for name, several in tiles.items():
        first = several[0]
        if isinstance(first, Cell):
            yield name, np.array(first.value), False
        elif first.halved or (has_own_tiles and not first.in_global and not first.on_cube):
            yield name, np.concatenate([tile.data.reshape(-1) for tile in several if isinstance(tile, Tile)]), False
        else:
            yield name, first.data.reshape(-1).copy(), first.in_global
