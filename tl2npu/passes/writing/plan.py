"""What becomes of the statements of a kernel body, collected first and carried out together.

An edit that replaces a loop takes it over; a plan can replace it, and change statements inside of what stays, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.source.blocks import join_lines, without_captions
from tl2npu.source.edits import Edits

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(eq=False)
class _Entry:
    before: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)
    instead: list[Line] | None = None


class Plan:
    """Statements before, after and instead of statements of the kernel; each is named by its node in the model."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._entries: dict[int, _Entry] = {}
        self._absorbed: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def before(self, node: cst.CSTNode, lines: Sequence[Line]) -> None:
        """Put lines above a statement, below its comments and below what was put there before."""
        self._entry(node).before += self._traced(lines, node)

    def after(self, node: cst.CSTNode, lines: Sequence[Line]) -> None:
        """Put lines below a statement and below what was put there before."""
        self._entry(node).after += self._traced(lines, node)

    def replace(self, node: cst.CSTNode, lines: Sequence[Line]) -> None:
        """Put lines in the place of a statement; the first takes over the comments above it."""
        self._entry(node).instead = [*self._traced(lines, node)]

    def remove(self, node: cst.CSTNode, *, absorbed: bool = False) -> None:
        """Take a statement away; comments above it stay unless they speak of statements that go and of nothing else.

        ``absorbed``: a later statement does what it did, so that they speak of that one.
        """
        self.replace(node, [])
        if absorbed:
            self._absorbed.add(id(node))

    def apply(self) -> None:
        """Carry everything out."""
        if not self._entries:
            return
        launch = self._job.kernel.launched
        body = launch.node.body
        edits = Edits(self._job.file.index)
        edits.replace(body, self._suite(body))
        self._job.apply(edits)

    def _traced(self, lines: Sequence[Line], node: cst.CSTNode) -> Sequence[Line]:
        self._job.trace(lines, node)
        return lines

    def _entry(self, node: cst.CSTNode) -> _Entry:
        return self._entries.setdefault(id(node), _Entry())

    def _suite(self, suite: cst.BaseSuite) -> cst.BaseSuite:
        if not isinstance(suite, cst.IndentedBlock):
            if any(id(small) in self._entries for small in suite.body):
                lines = [cst.SimpleStatementLine([small]) for small in suite.body]  # type: ignore[list-item]
                return self._suite(cst.IndentedBlock(lines))
            return suite
        result: list[cst.BaseStatement] = []
        above: tuple[cst.EmptyLine, ...] = ()  # what stood above statements that are gone
        planned = [self._line(line) for line in suite.body]
        gone = [not new and not self._is_absorbed(line) for new, line in zip(planned, suite.body, strict=True)]
        for new, own in zip(planned, without_captions(suite.body, gone), strict=True):
            if not new:
                above = join_lines(above, own)
                continue
            if above:
                new[0] = new[0].with_changes(leading_lines=join_lines(above, new[0].leading_lines))
                above = ()
            result += new
        if not result:
            return suite.with_changes(body=[cst.SimpleStatementLine([cst.Pass()], leading_lines=_comments(above))])
        return suite.with_changes(body=result, footer=[*_comments(above), *suite.footer])

    def _is_absorbed(self, line: cst.CSTNode) -> bool:
        small = line.body if isinstance(line, cst.SimpleStatementLine) else ()
        return any(id(statement) in self._absorbed for statement in small)

    def _line(self, line: cst.BaseStatement) -> list[Line]:
        assert isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        if isinstance(line, cst.SimpleStatementLine):
            entries = [self._entries.get(id(small)) for small in line.body]
            if len(line.body) == 1:
                return _around(line, line, entries[0])
            if not any(entries):
                return [line]
            result: list[Line] = []
            for small, entry in zip(line.body, entries, strict=True):
                own = cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
                result += _around(own, own, entry)
            return _with_lines(result, line.leading_lines)
        return _around(line, self._inside(line), self._entries.get(id(line)))

    def _inside(self, node: cst.BaseCompoundStatement) -> cst.BaseCompoundStatement:
        changes: dict[str, cst.CSTNode] = {}
        body = self._suite(node.body)
        if body is not node.body:
            changes["body"] = body
        orelse = getattr(node, "orelse", None)
        if isinstance(orelse, cst.If):
            changes["orelse"] = self._inside(orelse)
        elif isinstance(orelse, cst.Else):
            changes["orelse"] = orelse.with_changes(body=self._suite(orelse.body))
        return node.with_changes(**changes) if changes else node


def _comments(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    return [line for line in lines if line.comment is not None]


def _around(old: Line, new: Line, entry: _Entry | None) -> list[Line]:
    if entry is None:
        return [new]
    middle = [new] if entry.instead is None else _with_trailing(entry.instead, old)
    found = [*entry.before, *middle, *entry.after]
    return _with_lines(found, old.leading_lines) if found and found[0] is not new else found


def _with_trailing(lines: list[Line], old: Line) -> list[Line]:
    """The comment at the end of the old line goes to the end of the first new one."""
    if not lines or not isinstance(old, cst.SimpleStatementLine) or old.trailing_whitespace.comment is None:
        return lines
    first = lines[0]
    if not isinstance(first, cst.SimpleStatementLine) or first.trailing_whitespace.comment is not None:
        return lines
    return [first.with_changes(trailing_whitespace=old.trailing_whitespace), *lines[1:]]


def _with_lines(lines: list[Line], above: Sequence[cst.EmptyLine]) -> list[Line]:
    """The lines with those above the old statement above the first of them."""
    if not lines:
        return lines
    first, *rest = lines
    rest = [line.with_changes(leading_lines=_without(line.leading_lines, above)) for line in rest]
    return [first.with_changes(leading_lines=[*above, *_without(first.leading_lines, above)]), *rest]


def _without(lines: Sequence[cst.EmptyLine], gone: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    return [line for line in lines if not any(line is other for other in gone)]
