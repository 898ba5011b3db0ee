"""Elements between commas after edits: parameters, arguments, list items, subscripts.

A sequence is seen as elements with gaps: one before the first (behind the opening bracket), one between neighbours, one
after the last. A gap may hold a newline, the comment that trails the element before it and comment lines above the
element after it. Comments that trail or stand directly above a removed element go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from tl2npu.source.blocks import join_lines

Gap = cst.BaseParenthesizableWhitespace

EMPTY = cst.SimpleWhitespace("")
_SPACE = cst.SimpleWhitespace(" ")
_AFTER = ("whitespace_after_arg", "whitespace_after_param")


@dataclass(frozen=True)
class Slot:
    """What takes the place of one element; nothing if it was removed."""

    old: cst.CSTNode
    new: tuple[cst.CSTNode, ...]


@dataclass(frozen=True)
class Spliced:
    """The new elements and the whitespace inside the brackets around them."""

    elements: tuple[cst.CSTNode, ...]
    start: Gap
    end: Gap


def splice(slots: Sequence[Slot], start: Gap = EMPTY, end: Gap | None = None) -> Spliced:
    """Put new elements in place, with the commas, line breaks and indentation of the old ones.

    ``end`` is the whitespace before the closing bracket where the bracket owns it (lists, tuples); None where the last
    element owns it (arguments, parameters). A trailing comma stays if there was one.
    """
    last = slots[-1].old
    trailing = isinstance(_comma(last), cst.Comma)
    gaps = [start, *(_gap_after(slot.old, slot is slots[-1], end) for slot in slots)]
    kept_until = max((number for number, slot in enumerate(slots) if slot.new), default=-1)
    elements: list[cst.CSTNode] = []
    between: list[Gap] = []
    current = gaps[0]
    for number, slot in enumerate(slots):
        after = gaps[number + 1]
        if not slot.new:
            current = _close(current, after, first=not elements, last=number > kept_until and slot is slots[-1])
            continue
        separator = _separator(gaps[number], after, number, len(slots))
        anchor = next((place for place, new in enumerate(slot.new) if new is slot.old), 0)
        for place, new in enumerate(slot.new):
            elements.append(new)
            between.append(current)
            current = after if place == len(slot.new) - 1 else separator
            if place != len(slot.new) - 1 and place == anchor and _breaks(separator) and _breaks(after):
                assert isinstance(separator, cst.ParenthesizedWhitespace)
                assert isinstance(after, cst.ParenthesizedWhitespace)
                current = separator.with_changes(first_line=after.first_line)
                after = after.with_changes(first_line=_without_comment(after.first_line))
    if not elements:
        return Spliced((), current if _has_comment(current) else EMPTY, EMPTY)
    following = [*between[1:], current]
    done = [
        _with_gap(element, gap, number == len(elements) - 1, trailing, end is not None)
        for number, (element, gap) in enumerate(zip(elements, following, strict=True))
    ]
    return Spliced(tuple(done), between[0], EMPTY if end is None else current)


def _comma(node: cst.CSTNode) -> object:
    return getattr(node, "comma", None)


def _gap_after(node: cst.CSTNode, last: bool, end: Gap | None) -> Gap:
    comma = _comma(node)
    if isinstance(comma, cst.Comma):
        return end if last and end is not None else comma.whitespace_after
    if not last:
        return _SPACE
    return end if end is not None else _own_gap(node)


def _own_gap(node: cst.CSTNode) -> Gap:
    for name in _AFTER:
        gap = getattr(node, name, None)
        if isinstance(gap, Gap):
            return gap
    return EMPTY


def _with_gap(node: cst.CSTNode, gap: Gap, last: bool, trailing: bool, bracket_owns_end: bool) -> cst.CSTNode:
    changes: dict[str, Any] = {}
    comma = _comma(node)
    own: Gap = EMPTY
    if not last or trailing:
        inside = EMPTY if last and bracket_owns_end else gap
        if not isinstance(comma, cst.Comma):
            changes["comma"] = cst.Comma(whitespace_after=inside)
        elif comma.whitespace_after is not inside and not (_is_empty(inside) and _is_empty(comma.whitespace_after)):
            changes["comma"] = comma.with_changes(whitespace_after=inside)
    else:
        if isinstance(comma, cst.Comma):
            changes["comma"] = cst.MaybeSentinel.DEFAULT
        own = EMPTY if bracket_owns_end else gap
    for name in _AFTER:
        present = getattr(node, name, own)
        if present is not own and not (_is_empty(present) and _is_empty(own)):
            changes[name] = own
    return node.with_changes(**changes) if changes else node


def _close(before: Gap, after: Gap, first: bool, last: bool) -> Gap:
    """The gap that is left where an element stood between two gaps."""
    if isinstance(before, cst.ParenthesizedWhitespace) and isinstance(after, cst.ParenthesizedWhitespace):
        return after.with_changes(
            first_line=before.first_line, empty_lines=join_lines(_not_directly_above(before), after.empty_lines)
        )
    if isinstance(before, cst.ParenthesizedWhitespace):
        if not last:
            return before  # the next element moves up to where the removed one stood
        bare = before.with_changes(empty_lines=_not_directly_above(before))
        return bare if _has_comment(bare) else after
    if isinstance(after, cst.ParenthesizedWhitespace):
        if first and not last:  # behind the opening bracket: stay on its line unless comment lines follow
            commented = any(line.comment for line in after.empty_lines)
            return after.with_changes(first_line=_without_comment(after.first_line)) if commented else before
        return after
    return after if last else before


def _not_directly_above(gap: cst.ParenthesizedWhitespace) -> Sequence[cst.EmptyLine]:
    lines = gap.empty_lines
    count = len(lines)
    while count and lines[count - 1].comment is not None:
        count -= 1
    return lines[:count]


def _separator(before: Gap, after: Gap, number: int, count: int) -> Gap:
    """The gap between two elements that take the place of one."""
    if number < count - 1:
        broken = _breaks(after)
    else:
        broken = _breaks(before) and (number > 0 or _breaks(after))
    template = before if _breaks(before) else after
    if not broken or not isinstance(template, cst.ParenthesizedWhitespace):
        return _SPACE
    return cst.ParenthesizedWhitespace(indent=template.indent, last_line=template.last_line)


def _without_comment(line: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
    return line if line.comment is None else line.with_changes(comment=None, whitespace=EMPTY)


def _breaks(gap: Gap) -> bool:
    return isinstance(gap, cst.ParenthesizedWhitespace)


def _is_empty(gap: object) -> bool:
    return isinstance(gap, cst.SimpleWhitespace) and not gap.value


def _has_comment(gap: Gap) -> bool:
    return isinstance(gap, cst.ParenthesizedWhitespace) and (
        gap.first_line.comment is not None or any(line.comment is not None for line in gap.empty_lines)
    )
