"""TL402: the launch: ``is_npu=True``, no threads, one grid axis or two."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.gpu.launch.grid import unfold
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned

_MOST_AXES = 2


def launch(job: Job) -> None:
    """Fold the grid, first axis fastest as on the GPU; with the option ``grid2d`` two axes stay two.

    Raises :class:`Blocked` for a launch that cannot be read.
    """
    found = job.kernel.launched
    extents = [arg.value for arg in found.call.args if arg.keyword is None]
    if any(arg.star for arg in found.call.args) or not extents:
        raise Blocked("TL402", found.call, "cannot read the grid of this launch")
    if found.item.asname is None:
        raise Blocked("TL402", found.call, "the launch does not bind a name to its block index")
    if len(found.names) != len(extents):
        raise Blocked("TL402", found.call, f"the launch has {len(extents)} grid axes, but {len(found.names)} names")
    used = mentioned(found.node.body)
    names = [name if name in used and name != "_" else "" for name in found.names]
    edits = Edits(job.file.index)
    texts = [code(extent) for extent in extents]
    keep = len(extents) == 1 or (job.options.grid2d and len(extents) == _MOST_AXES)
    if keep:
        grid, blocks = ", ".join(texts), list(found.names)
    else:
        grid, blocks = " * ".join(factor(text) for text in texts), [Names(job).fresh("cid", "block_id")]
        slowest_first = reversed(unfold(texts, names, blocks[0]))
        lines = parse(job, "\n".join(slowest_first), found.node) if any(names) else []
        first = found.node.body.body[0]
        assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        if lines:
            between = [] if _starts_with_space(first) else [cst.EmptyLine(indent=False)]
            edits.replace_many(first, [*lines, first.with_changes(leading_lines=[*between, *first.leading_lines])])
    call = cst.ensure_type(cst.parse_expression(f"f({grid}, is_npu=True)"), cst.Call)
    edits.replace(found.call, call.with_changes(func=found.call.func))
    edits.replace(found.item.asname.name, cst.parse_expression(f"({', '.join([*blocks, '_'])})"))
    job.change(
        "TL402",
        found.node,
        "wrote the launch for AscendNPU IR" if len(blocks) == 1 == len(extents) else _said(len(extents), keep),
    )
    job.apply(edits)


def _said(axes: int, keep: bool) -> str:
    return f"kept {axes} grid axes" if keep else f"folded {axes} grid axes into one"


def _starts_with_space(first: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> bool:
    lines = list(first.leading_lines)
    return bool(lines) and lines[0].comment is None
