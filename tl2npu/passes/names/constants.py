"""Names that a factory works out before its prim_func."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def define(job: Job, lines: Sequence[str]) -> None:
    """Put assignments above the prim_func, as a paragraph of their own."""
    if not lines:
        return
    node = job.located.node
    new = [cst.parse_statement(line, job.module.config_for_parsing) for line in lines]
    blank = [line for line in node.leading_lines if line.comment is None][:1]
    new[0] = new[0].with_changes(leading_lines=blank)
    below = node if blank else node.with_changes(leading_lines=[cst.EmptyLine(indent=False), *node.leading_lines])
    edits = Edits(job.file.index)
    edits.replace_many(node, [*new, below])
    job.apply(edits)
