"""The layout of changed statements in files that no formatter laid out: what fits on one line stands on one line.

A fused copy is shorter than the two copies that it replaces; line breaks inside it have lost their reason. Statements
that were not changed, and those with comments inside, stay as they are. Formatted files are laid out by
:mod:`tl2npu.source.layout` instead.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

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
            line = cst.parse_statement(flat)
            assert isinstance(line, cst.SimpleStatementLine)
            edits.replace(small, line.body[0])
    job.apply(edits)


def _indent(job: Job, node: cst.CSTNode) -> int:
    width = len(job.module.default_indent)
    return width * sum(1 for above in job.file.index.ancestors(node) if isinstance(above, cst.IndentedBlock))
