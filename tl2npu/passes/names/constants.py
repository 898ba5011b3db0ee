"""Names that a factory works out before its prim_func."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import walk


def define(job: Job, lines: Sequence[str | cst.SimpleStatementLine]) -> None:
    """Put assignments, with the comments above them, above the prim_func, as a paragraph with others put there."""
    if not lines:
        return
    node = job.located.node
    how = job.module.config_for_parsing
    new = [cst.parse_statement(line, how) if isinstance(line, str) else line for line in lines]
    blank = [line for line in node.leading_lines if line.comment is None][:1]
    block = job.file.index.parent(node)
    above = list(takewhile(lambda line: line is not node, getattr(block, "body", ())))[-1:]
    joined = (
        above and isinstance(above[0], cst.SimpleStatementLine) and not any(n in job.original for n in walk(above[0]))
    )
    new[0] = new[0].with_changes(leading_lines=[*([] if joined else blank), *new[0].leading_lines])
    below = node if blank else node.with_changes(leading_lines=[cst.EmptyLine(indent=False), *node.leading_lines])
    edits = Edits(job.file.index)
    edits.replace_many(node, [*new, below])
    job.apply(edits)
