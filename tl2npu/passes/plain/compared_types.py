"""TL731: both sides of a comparison get one type; the parser of a prim_func converts none of them.

``1.0 >= i // 8`` as ``1.0 >= T.cast(i // 8, "float32")``: the type is that of arithmetic between the two, which is
what a GPU's compiler takes (``kernel/parser/scalar_types.py``). A comparison whose types are not known stays, and
TL732 refuses it where it must.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.parser.front_end import read_as_the_parser
from tl2npu.kernel.parser.scalar_types import exact, of_sum
from tl2npu.kernel.parser.scopes import Found
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of, walk

_ROUNDS = 8


def convert(job: Job) -> None:
    """Convert what a comparison has of another type; of comparisons in comparisons the inner ones first."""
    if not nodes_of(job.located.node.body, cst.Comparison):
        return
    for _ in range(_ROUNDS):
        told = read_as_the_parser(job.file, job.kernel, callers_of(job.file, job.located))
        found = [one for one in told if one.what == "types" and job.located.node in job.file.index.ancestors(one.node)]
        inner = [one for one in found if not any(_holds(one.node, other.node) for other in found)]
        edits = Edits(job.file.index)
        if not [one for one in inner if _convert(job, one, edits)]:
            return
        job.apply(edits)


def _holds(outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
    return outer is not inner and any(part is inner for part in walk(outer))


def _convert(job: Job, found: Found, edits: Edits) -> bool:
    if not isinstance(found.node, cst.Comparison) or len(found.sides) != 2:
        return False
    parts = found.node.left, found.node.comparisons[0].comparator
    types = [exact(side.dtype) or side.dtype for side in found.sides]
    common = "float32" if "number" in {side.kind for side in found.sides} else of_sum(*types)
    if not exact(common):
        return False
    for part, side, dtype in zip(parts, found.sides, types, strict=True):
        if side.kind != "number" and dtype != common:
            shown = code(part.with_changes(lpar=(), rpar=()))
            edits.replace(part, expression(job, f'T.cast({shown}, "{common}")', found.node))
            text = f"`{shown}` is converted to {common}: the kernel parser compares values of one type only"
            job.change("TL731", part, text)
    return True
