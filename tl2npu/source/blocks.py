"""Statements of a block after edits: where comments and blank lines go when statements come and go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import libcst as cst

Lines = tuple[cst.EmptyLine, ...]


class HasLeadingLines(Protocol):
    """Statements, decorators, handlers and cases: what can have whole lines above it."""

    @property
    def leading_lines(self) -> Sequence[cst.EmptyLine]: ...


_STAYS = re.compile(r"TODO|FIXME|XXX|tl2npu|noqa|fmt:|type:|pragma|pylint|ruff|isort|region")

LineT = TypeVar("LineT", bound=HasLeadingLines)


@dataclass(frozen=True)
class LineSlot:
    """What becomes of one statement: ``new`` takes its place, ``trailing`` are whole lines that follow."""

    old: HasLeadingLines
    new: tuple[HasLeadingLines, ...]
    trailing: Lines = ()


def join_lines(above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine]) -> Lines:
    """Both runs of lines; where blank lines meet, only the longer run stays."""
    if not above or not below:
        return tuple(above or below)
    up, down = list(above), list(below)
    blank_above, blank_below = _blank_run(list(reversed(up))), _blank_run(down)
    spare = min(blank_above, blank_below)
    return tuple(up[: len(up) - spare] + down)


def without_captions(statements: Sequence[object], gone: Sequence[bool]) -> list[Lines]:
    """The whole lines above each statement, without comments about nothing but statements that are ``gone``.

    Such a comment stands directly above statements that all go, up to the next blank line, comment or end of the block.
    Notes to come back to (``TODO``) and directives stay.
    """
    lines = [tuple(getattr(statement, "leading_lines", ())) for statement in statements]
    for at, own in enumerate(lines):
        if not gone[at] or not own or own[-1].comment is None:
            continue
        end = next((n for n in range(at + 1, len(lines)) if lines[n]), len(lines))
        if all(gone[at:end]):
            kept = len(own)
            while kept and (comment := own[kept - 1].comment) is not None and not _STAYS.search(comment.value):
                kept -= 1
            lines[at] = own[:kept]
    return lines


def merge_lines(
    slots: Sequence[LineSlot], footer: Sequence[cst.EmptyLine], *, captions: bool = True
) -> tuple[list[HasLeadingLines], Lines]:
    """The new statements and the lines that follow the last of them.

    Own-line comments of removed statements move down to the next statement that stays, or into the footer; without
    ``captions`` those about nothing else go with them (:func:`without_captions`). A block never begins with more
    blank lines than before, and blank lines that no statement follows are dropped.
    """
    result: list[HasLeadingLines] = []
    pending: Lines = ()
    limit = _blank_run(slots[0].old.leading_lines) if slots else 0
    above = [tuple(slot.old.leading_lines) for slot in slots]
    if not captions:
        above = without_captions([slot.old for slot in slots], [not (slot.new or slot.trailing) for slot in slots])
    for slot, own in zip(slots, above, strict=True):
        if result and not pending and not slot.trailing and len(slot.new) == 1 and slot.new[0] is slot.old:
            result.append(slot.old)  # nearly all of a block
            continue
        carried = any(line is kept for new in slot.new for line in new.leading_lines for kept in own)
        if not carried:
            pending = join_lines(pending, own)
        for new in slot.new:
            lines = join_lines(pending, new.leading_lines) if pending else tuple(new.leading_lines)
            if not result:
                lines = lines[max(0, _blank_run(lines) - limit) :]
            pending = ()
            result.append(new if _same(lines, new.leading_lines) else with_lines(new, lines))
        pending = join_lines(pending, slot.trailing)
    kept = len(pending)
    while kept and pending[kept - 1].comment is None:
        kept -= 1
    return result, join_lines(pending[:kept], footer) if kept else tuple(footer)


def with_lines(node: LineT, lines: Lines) -> LineT:
    """The node with other whole lines above it."""
    assert isinstance(node, cst.CSTNode)
    return node.with_changes(leading_lines=lines)


def comment_line(trailing: cst.TrailingWhitespace) -> Lines:
    """A comment at the end of a line as a line of its own; nothing if there is none."""
    return () if trailing.comment is None else (cst.EmptyLine(comment=trailing.comment),)


def _blank_run(lines: Sequence[cst.EmptyLine]) -> int:
    return next((number for number, line in enumerate(lines) if line.comment is not None), len(lines))


def _same(left: Sequence[cst.EmptyLine], right: Sequence[cst.EmptyLine]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
