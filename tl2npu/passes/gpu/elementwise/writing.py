"""Puts the new statements into the tree: inside of the author's loop where they fit, else in place of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.model import Stmt, walk
from tl2npu.passes.gpu.elementwise.algebra import FOLDED
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.places import Temporaries
from tl2npu.passes.gpu.elementwise.steps import InLoop, Line, Step, Under
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.passes.writing.tiles import allocate_above
from tl2npu.source.edits import Edits


class Writer:
    """Collects the edits of one kernel."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.edits = Edits(job.file.index)
        self._indent = job.module.default_indent
        self._handed_on: dict[int, list[str]] = {}

    def nest(self, nest: Nest, steps: Sequence[Step]) -> bool:
        """Write what a nest became; whether anything changed."""
        as_it_was = len(steps) == len(nest.body) and all(isinstance(step, InLoop) and step.kept for step in steps)
        if as_it_was and _one_loop(steps):
            return False
        self._handed_on = self._comments_without_a_line(nest, steps)
        if steps and not self._handed_on and _one_loop(steps) and all(self._is_own(nest, step) for step in steps):
            self._inside(nest, steps)
        else:
            text = self._render(steps, set())
            new = parse(self.job, text, nest.node) if text else []
            self.job.trace(new, nest.node)
            self.edits.replace_many(nest.node, new)
        return True

    def allocate(self, temporaries: Temporaries, first: Nest) -> None:
        """Write the new allocations below the ones that stand above the first changed nest."""
        texts = [*temporaries.allocations, *(line.replace(FOLDED, "") for line in temporaries.prelude)]
        if not texts:
            return
        allocate_above(self.job, self.edits, first.loops[0], "\n".join(texts) + "\n", first.node)

    def _is_own(self, nest: Nest, step: Step) -> bool:
        return isinstance(step, InLoop) and step.names == nest.names and step.stmt in nest.body

    def _inside(self, nest: Nest, steps: Sequence[Step]) -> None:
        for stmt in nest.body:
            own = [step for step in steps if step.stmt is stmt]
            if len(own) == 1 and isinstance(own[0], InLoop) and own[0].kept:
                continue
            texts = [step.text for step in own if isinstance(step, InLoop)]
            if texts:
                self.edits.replace_many(stmt.node, parse(self.job, self._reindented("\n".join(texts)), nest.node))
            else:
                self.edits.remove(stmt.node)

    def _reindented(self, text: str) -> str:
        lines = text.split("\n")
        return "\n".join(line.replace("    ", self._indent) if line.startswith(" ") else line for line in lines) + "\n"

    # -- text -------------------------------------------------------------------------------------------------------

    def _render(self, steps: Sequence[Step], said: set[int]) -> str:
        parts = []
        for block in blocks(steps):
            first = block[0]
            if isinstance(first, InLoop):
                header = f"for {', '.join(first.names)} in T.Parallel({', '.join(first.extents)}):\n"
                lines = "".join(
                    self._commented(step.text, step.stmt, said) for step in block if isinstance(step, InLoop)
                )
                parts.append(header + textwrap.indent(lines, "    "))
            elif isinstance(first, Line):
                parts.append(self._commented(first.text, first.stmt, said))
            else:
                parts.append(self._under(first, said))
        text = "".join(parts)
        return text if self._indent == "    " else _with_indent(text, self._indent)

    def _under(self, step: Under, said: set[int]) -> str:
        then, orelse = (textwrap.indent(self._render(arm, said), "    ") for arm in (step.then, step.orelse))
        if not then:
            return f"if not ({step.condition}):\n{orelse}" if orelse else ""
        return f"if {step.condition}:\n{then}" + (f"else:\n{orelse}" if orelse else "")

    def _comments_without_a_line(self, nest: Nest, steps: Sequence[Step]) -> dict[int, list[str]]:
        """Comments of statements that become part of others, by the statement that says them: the next that is left."""
        left = {id(step.stmt) for step in _each(steps)}
        found: dict[int, list[str]] = {}
        waiting: list[str] = []
        for stmt in nest.body:
            parts = list(walk([stmt]))
            waiting += [text for part in parts if id(part) not in left for text in comments_of(self.job, part)]
            taker = next((id(part) for part in parts if id(part) in left), None)
            if taker is not None and waiting:
                found[taker], waiting = waiting, []
        return found

    def _commented(self, text: str, stmt: Stmt, said: set[int]) -> str:
        """The statement with the comments of the one that it comes from, once."""
        if id(stmt) in said:
            return text + "\n"
        said.add(id(stmt))
        node = stmt.node
        line = self.job.file.index.parent(node) if isinstance(node, cst.BaseSmallStatement) else node
        if not isinstance(line, (cst.SimpleStatementLine, cst.If)):
            return text + "\n"
        above = [empty.comment.value for empty in line.leading_lines if empty.comment is not None]
        above = [*self._handed_on.get(id(stmt), ()), *above]
        if isinstance(line, cst.SimpleStatementLine) and line.trailing_whitespace.comment is not None:
            if "\n" not in text:
                text += f"  {line.trailing_whitespace.comment.value}"
            else:
                above.append(line.trailing_whitespace.comment.value)
        return "\n".join([*above, text]) + "\n"


def comments_of(job: Job, stmt: Stmt) -> list[str]:
    """The comments above the line of a statement and at its end, of an ``if`` those above its body."""
    node = stmt.node
    line = job.file.index.parent(node) if isinstance(node, cst.BaseSmallStatement) else node
    if not isinstance(line, (cst.SimpleStatementLine, cst.If)):
        return []
    end = line.trailing_whitespace if isinstance(line, cst.SimpleStatementLine) else getattr(line.body, "header", None)
    ends = [end.comment.value] if end is not None and end.comment is not None else []
    return [empty.comment.value for empty in line.leading_lines if empty.comment is not None] + ends


def _each(steps: Sequence[Step]) -> Iterator[InLoop | Line]:
    """Every statement that is written, those under conditions too."""
    for step in steps:
        if isinstance(step, Under):
            yield from _each([*step.then, *step.orelse])
        else:
            yield step


def blocks(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Statements that stand in one loop together; any other statement by itself."""
    block: list[Step] = []
    for step in steps:
        last = block[-1] if block else None
        if (
            isinstance(step, InLoop)
            and isinstance(last, InLoop)
            and all(step.joins(other) for other in block if isinstance(other, InLoop))
        ):
            block.append(step)
            continue
        if block:
            yield block
        block = [step]
    if block:
        yield block


def parted(steps: Sequence[Step]) -> Stmt | None:
    """The first statement that follows one of the same loop and may not stand in it: only one goes row by row."""
    arms = [arm for step in steps if isinstance(step, Under) for arm in (step.then, step.orelse)]
    for before, step in pairwise(steps):
        if isinstance(before, InLoop) and isinstance(step, InLoop) and {before.form, step.form} == {"flat", "rows"}:
            return step.stmt
    return next((found for arm in arms if (found := parted(arm)) is not None), None)


def _one_loop(steps: Sequence[Step]) -> bool:
    found = list(blocks(steps))
    return len(found) == 1 and all(isinstance(step, InLoop) for step in found[0])


def _with_indent(text: str, indent: str) -> str:
    result = []
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        result.append(indent * ((len(line) - len(bare)) // 4) + bare)
    return "\n".join(result)
