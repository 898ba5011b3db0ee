"""Comments in the text for the person who goes on: a file is migrated, marked with what was found, and migrated again.

The marks of ``--partial`` stand above what a kernel was refused for, those of ``--notes`` in a kernel that was
rewritten. The second run carries them to where their statements went.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tl2npu.checking import check_text
from tl2npu.codes import ROW_SPLIT, SPEED
from tl2npu.options import Options
from tl2npu.results import Diagnostic, FileResult
from tl2npu.todo import NOTE, TODO, comments, with_comments, without_comments

T = TypeVar("T")
_NAMED = (ast.FunctionDef, ast.ClassDef)
Leave = Mapping[int, Sequence[Diagnostic]]
Mark = tuple[int, str, str]
"""Line, code of the rule, message."""
Work = Callable[[str, Leave, Mapping[int, str]], FileResult]
"""Migrates a text; the kernels that stay, and those that no other file follows, by the line of their ``def``."""

_TOLD = SPEED | ROW_SPLIT | {"TL146", "TL506", "TL742", "TL905"}
"""Of what is right as it is: what costs speed, and what is assumed."""


def partial(text: str, _: Options, work: Work, leave: Leave, alone: Mapping[int, str]) -> FileResult:
    """Migrate what can be migrated, and mark in the others where manual work is left.

    Marks of an earlier run are taken out, so none is ever doubled.
    """
    first = work(text, leave, alone)
    refused = {kernel.name for kernel in first.kernels if kernel.disposition == "refused"}
    wanted = [d for d in first.diagnostics if d.severity == "error" and d.kernel in refused]
    if first.error is not None:
        return first
    marks = [(d.line, d.code, f"{d.message}; {d.help}" if d.help else d.message) for d in wanted]
    return replace(first, new_text=_marked(first, marks, TODO, work, leave, alone))


def noted(
    text: str, options: Options, work: Work, leave: Leave, alone: Mapping[int, str], more: Sequence[Mark] = ()
) -> FileResult:
    """Migrate, and say in the new text of each kernel where a person should look, and why; ``more`` is said as well.

    The notes of a kernel that is rewritten are new. In the others those of an earlier run stay, except for what
    ``check`` judges and does not find any more.
    """
    first = work(text, leave, alone)
    if first.error is not None or first.new_text is None:
        return first
    rewritten = {kernel.name for kernel in first.kernels if kernel.rewritten}
    tops = _tops(text)
    renewed = {_top(tops, kernel.line) for kernel in first.kernels if kernel.rewritten}
    wanted = [*_marks(d for d in first.diagnostics if d.kernel in rewritten and matters(d)), *more]
    wanted += [mark for mark in comments(text, NOTE) if _top(tops, mark[0]) not in renewed]
    new = _marked(first, wanted, NOTE, work, leave, alone)
    plain = without_comments(first.new_text, NOTE).text
    if without_comments(new, NOTE).text != plain:
        new = plain  # a comment was in the way of a pass; code comes first
    return replace(first, new_text=_current(new, first, wanted, options))


def matters(found: Diagnostic) -> bool:
    """Faults and doubts, what is assumed and stands nowhere in the text, and what costs speed."""
    return found.severity != "info" or found.code in _TOLD


def _marks(found: Iterable[Diagnostic]) -> list[Mark]:
    return [(item.line, item.code, item.message) for item in found]


def _marked(
    first: FileResult, wanted: Iterable[Mark], word: str, work: Work, leave: Leave, alone: Mapping[int, str]
) -> str:
    """The new text with these comments, and no others of the kind: lines are those of the old text."""
    bare = without_comments(first.old_text or "", word)
    marked = with_comments(bare.text, [(bare.place(line), code, message) for line, code, message in wanted], word)
    if marked.text == first.old_text:
        return first.new_text or ""

    def places(given: Mapping[int, T]) -> dict[int, T]:
        return {marked.place(bare.place(line)): item for line, item in given.items()}

    return work(marked.text, places(leave), places(alone)).new_text or ""


def _current(new: str, first: FileResult, wanted: Sequence[Mark], options: Options) -> str:
    """The new text with the notes that hold: one whose statement is gone stands above what defines the kernel, and one
    that ``check`` judges only stands where ``check`` finds the same.
    """
    there = {(code, message) for _, code, message in comments(new, NOTE)}
    before = _tops(first.old_text or "")
    starts = {node.name: node.lineno for node in _tops(new).values() if isinstance(node, _NAMED)}
    names = {last: getattr(node, "name", "") for last, node in before.items()}
    homes = ((starts.get(names.get(_top(before, line), "")), code, message) for line, code, message in wanted)
    lost = [(line, code, message) for line, code, message in homes if line and (code, message) not in there]
    whole = with_comments(new, lost, NOTE).text
    tops = _tops(whole)
    found = {(_top(tops, d.line), d.code) for d in check_text(whole, first.path, options).diagnostics}
    past = {
        line
        for line, code, _ in comments(whole, NOTE)
        if code[2] in "78" and code not in ROW_SPLIT and (_top(tops, line), code) not in found
    }
    return "".join(line for i, line in enumerate(whole.splitlines(True), 1) if i not in past)


def _tops(text: str) -> dict[int, ast.stmt]:
    """The statements of a module, by their last line."""
    return {node.end_lineno or node.lineno: node for node in ast.parse(text).body}


def _top(tops: Mapping[int, ast.stmt], line: int) -> int:
    """The last line of the statement of the module that a line belongs to, or of the next one."""
    return next((last for last in tops if line <= last), 0)
