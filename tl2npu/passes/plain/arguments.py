"""TL744, TL745: arguments in a form that the operators of Ascend take.

A slice with two bounds becomes a vector of indices in a positional argument: bounds that are those of the buffer are
left out, and where two remain the call gets keywords. An element of several axes gets a name, as an operator reads it
by its first index alone.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.ascend.arguments import FIRST_INDEX_ONLY, takes
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Operand
from tl2npu.kernel.windows import form_of, has_two_bounds, opened, reads_another
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits

_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_KINDS = (Kind.TILE, Kind.FILL, Kind.REDUCE, Kind.ATOMIC)


def make_legal(job: Job) -> None:
    """Rewrite every call of an operator that gets an argument in a form that it does not take."""
    _name_elements(job)
    edits, done = Edits(job.file.index), set[int]()
    for stmt in job.kernel.walk():
        if isinstance(stmt, Op) and stmt.op.kind in _KINDS and stmt.op.modes and id(stmt.call) not in done:
            done.add(id(stmt.call))
            if stmt.call in job.file.index and not any(arg.star for arg in stmt.call.args):
                _spell(job, stmt, edits)
    job.apply(edits)


def _spell(job: Job, stmt: Op, edits: Edits) -> None:
    """Leave bounds out, then name the arguments from the first one on whose slice has two."""
    names = {id(arg.node): name for name, arg in stmt.args.items()}
    args, named, changed = list[cst.Arg](), False, False
    for arg in stmt.call.args:
        name = names.get(id(arg.value), "")
        operand = stmt.args.get(name)
        if isinstance(operand, Operand) and _is_lanes(stmt, name, operand):
            arg = arg.with_changes(value=opened(operand))
            named, changed = named or has_two_bounds(arg.value), True
        if named and arg.keyword is None and name:
            arg = arg.with_changes(keyword=cst.Name(name), equal=_EQUAL)
        args.append(arg)
    if changed:
        new = stmt.call.with_changes(args=args)
        edits.replace(stmt.call, new)
        job.change("TL744", stmt.node, f"`T.{stmt.op.name}` takes no slice with two bounds by position: `{code(new)}`")


def _is_lanes(stmt: Op, name: str, operand: Operand) -> bool:
    param = stmt.op.param(name)
    if param is None or not param.mask:
        return False
    return form_of(stmt.call, operand) == "lanes" and not takes(stmt.op.name, name, "lanes", param.scalar)


def _name_elements(job: Job) -> None:
    """``T.tile.mul(t, t, g[c, i])`` as ``g_element = g[c, i]`` and ``T.tile.mul(t, t, g_element)``."""
    edits, names, done = Edits(job.file.index), Names(job), set[int]()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name not in FIRST_INDEX_ONLY or id(stmt.call) in done:
            continue
        element = stmt.args.get("src1")
        if not isinstance(element, Operand) or not reads_another(element) or stmt.call not in job.file.index:
            continue
        done.add(id(stmt.call))
        name = names.fresh(f"{element.buffer.name}_element")
        args = [
            arg.with_changes(value=cst.Name(name)) if arg.value is element.node else arg for arg in stmt.call.args
        ]
        call = code(stmt.call.with_changes(args=args))
        edits.replace_many(stmt.node, parse(job, f"{name} = {code(element.node)}\n{call}\n", stmt.node))
        text = f"`T.{stmt.op.name}` reads `{code(element.node)}` by its first index only: bound it to `{name}`"
        job.change("TL745", stmt.node, text)
    job.apply(edits)
