"""The layout of changed statements in files that no formatter laid out: what fits on one line stands on one line.

A fused copy is shorter than the two copies that it replaces; line breaks inside it have lost their reason. Statements
that were not changed, and those with comments inside, stay as they are. Formatted files are laid out by
:mod:`tl2npu.source.layout` instead. An ``else:`` of which nothing but ``pass`` is left goes.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of

_LINE_LENGTH = 88
_MOST = 120


def join_lines(job: Job) -> None:
    """Put every changed multi-line call statement on one line if it fits into the file's own line length."""
    edits = Edits(job.file.index)
    limit = min(max(_LINE_LENGTH, job.original.longest_line), _MOST)
    for small in job.file.index.statements:
        if not isinstance(small, cst.Expr) or small in job.original or not isinstance(small.value, cst.Call):
            continue
        text = code(small)
        if "\n" not in text or "#" in text or '"""' in text:
            continue
        flat = " ".join(part.strip() for part in text.split("\n"))
        flat = flat.replace("( ", "(").replace(" )", ")").replace("[ ", "[").replace(" ]", "]").replace(",)", ")")
        if len(flat) + _indent(job, small) <= limit:
            line = cst.ensure_type(cst.parse_statement(flat), cst.SimpleStatementLine)
            edits.replace(small, line.body[0])
    for other in (node.orelse for node in nodes_of(job.located.node, cst.If)):
        if isinstance(other, cst.Else) and other not in job.original and _does_nothing(other):
            edits.remove(other)
    job.apply(edits)


def _does_nothing(other: cst.Else) -> bool:
    """Copies onto themselves are gone, and nothing else stood there."""
    lines = [line for line in other.body.body if isinstance(line, cst.SimpleStatementLine)]
    return len(lines) == len(other.body.body) == 1 and all(
        isinstance(small, cst.Pass) and not any(empty.comment for empty in line.leading_lines)
        for line in lines
        for small in line.body
    )


def _indent(job: Job, node: cst.CSTNode) -> int:
    width = len(job.module.default_indent)
    return width * sum(1 for above in job.file.index.ancestors(node) if isinstance(above, cst.IndentedBlock))
