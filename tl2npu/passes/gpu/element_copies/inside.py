"""TL178: loads that would begin before their tensor, or lie behind it, without a condition around them.

A copy ends with its tensor in the last two axes that are longer than 1 and nowhere else (``compute_valid_extent`` in
the compiler's ``ascend.cc``), and takes an address before the beginning as it is. A load that leaves its condition, and
one of which a GPU reads zeros outside, takes only what lies inside: in one copy, row by row, or element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from tl2npu.kernel.expressions import code
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.regions import Axis, Region, extent_text
from tl2npu.passes.writing.statements import Names


@dataclass(frozen=True, eq=False)
class Tests:
    """Conditions on the indices of a region, each with the number of its axis; true if there are any."""

    texts: tuple[tuple[int, str], ...]

    def __bool__(self) -> bool:
        return bool(self.texts)

    def load(self, found: Region, tile: str, names: Names) -> Iterator[str]:
        """The statements that load a region into a tile of its shape, with zeros where the conditions do not hold."""
        yield f"T.clear({tile})"
        outer = _looped(found, {number for number, _ in self.texts})
        part, index, depth = found, list[str](), ""
        for number in outer:
            item = found.axes[number].range
            assert item is not None
            yield f"{depth}for {item.name} in T.serial({extent_text(item)}):"
            part, depth = part.at(number), depth + "    "
            index.append(item.name)
        yield f"{depth}if {' and '.join(text for _, text in self.texts)}:"
        depth += "    "
        if part.ranges:
            place = f"{tile}[{', '.join([*index, ':'])}]" if index else tile
            yield f"{depth}T.copy({part.text(slices=bool(index))}, {place})"
        else:
            value = names.fresh(f"{found.buffer.name.lower()}_value")
            yield f"{depth}{value} = {part.text(slices=False)}"
            yield f"{depth}{tile}[{', '.join(index)}] = {value}"


def tests_of(bounds: Bounds, found: Region, guarded: bool, may_be_negative: Callable[[Axis], bool]) -> Tests:
    """The conditions under which a region lies inside of its tensor, as far as that is not known.

    ``guarded``: a condition around the load does not come along; else its indices are trusted, but for those that
    ``may_be_negative``: a GPU reads zeros there.
    """
    last = len(found.axes) - 1
    ending = _ends_alone(found)
    asked = {n for n, axis in enumerate(found.axes) if _before(bounds, axis) and (guarded or may_be_negative(axis))}
    behind = {
        n for n, axis in enumerate(found.axes) if not bounds.is_not_negative(found.buffer.shape[n] - 1 - axis.index)
    }
    late = behind - ending if guarded else set[int]()
    looped = _looped(found, asked | late)
    while looped:  # smaller parts end with their tensor in other axes
        kept = {last - 1, last} if len(looped) < len(found.ranges) else set[int]()
        more = (behind - kept) & (ending | set(looped) | late)
        if more <= late:
            break
        late |= more
        looped = _looped(found, asked | late)
    if not found.in_rows and not asked and all(found.axes[number].range is not None for number in late):
        return Tests(())  # a column is loaded element by element, and stops at the end by itself
    return Tests(
        tuple(
            (number, text)
            for number, axis in enumerate(found.axes)
            for text in _texts(found, number, axis, number in asked, number in late)
        )
    )


def _texts(found: Region, number: int, axis: Axis, before: bool, behind: bool) -> Iterator[str]:
    index = axis.start if axis.range is None else found.at(number).axes[number].start
    if before:
        yield f"{index} >= 0"
    if behind:
        yield f"{index} < {code(found.buffer.shape_nodes[number])}"


def _before(bounds: Bounds, axis: Axis) -> bool:
    return not bounds.is_not_negative(axis.index)


def _looped(found: Region, asked: Set[int]) -> list[int]:
    """The axes that are gone through one by one: up to the last row axis, or all, if one of them is asked for."""
    moving = [number for number, axis in enumerate(found.axes) if axis.range is not None]
    if not asked & set(moving):
        return [] if found.in_rows else moving
    return moving if not found.in_rows or moving[-1] in asked else moving[:-1]


def _ends_alone(found: Region) -> set[int]:
    """The axes in which a copy of the region ends with the tensor."""
    last = len(found.axes) - 1
    active = [number for number, axis in enumerate(found.axes) if axis.range is not None]
    if not active or active[-1] != last:
        active.append(last)
    if len(active) == 1 and last:
        active.insert(0, last - 1)
    return set(active[-2:])


def inside_text(bounds: Bounds, found: Region) -> str:
    """One element, with indices that do not leave the tensor: where they would, nobody asks for the value."""
    parts = []
    for axis, size, node in zip(found.axes, found.buffer.shape, found.buffer.shape_nodes, strict=True):
        text = axis.start
        if _before(bounds, axis):
            text = f"T.max({text}, 0)"
        if not bounds.is_not_negative(size - 1 - axis.index):
            text = f"T.min({text}, {code(node)} - 1)"
        parts.append(text)
    return f"{found.buffer.name}[{', '.join(parts)}]"
