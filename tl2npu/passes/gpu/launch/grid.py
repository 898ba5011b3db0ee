"""TL138: the launch: one grid axis, ``is_npu=True``, and one or two vector cores for each tile."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from tl2npu.codes import CODES
from tl2npu.kernel.access import side_of
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Kernel, Side, children
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.writing.statements import Names, factor, parse, with_threads
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in

_AXES = ("x", "y", "z")


def fold(job: Job, threads: int) -> None:
    """Fold the grid, x fastest as on the GPU, and launch with ``is_npu=True``.

    ``threads`` goes into the launch where vector cores work; a kernel of the cube core alone names a second axis that
    it does not use. Raises :class:`Blocked` for a launch that the NPU has no counterpart for.
    """
    launch = job.kernel.launched
    extents = [arg.value for arg in launch.call.args if arg.keyword is None]
    if any(arg.star for arg in launch.call.args) or not extents:
        raise Blocked("TL138", launch.call, "cannot read the grid of this launch")
    if len(launch.names) not in (len(extents), 0):
        raise Blocked("TL138", launch.call, f"{len(extents)} grid axes and {len(launch.names)} names")
    used = mentioned(launch.node.body)
    names = [name if name in used and name != "_" else "" for name in launch.names]
    texts = [code(extent) for extent in extents]
    if len(extents) > 1:
        texts = _axis_names(job, extents, names)
        launch = job.kernel.launched
    vector = has_vector_work(job.kernel)
    edits = Edits(job.file.index)
    if len(extents) == 1 and launch.names and launch.names[0] != "_":
        block = launch.names[0]
    else:
        block = Names(job).fresh("cid", "block_id")
    if len(extents) > 1 and any(names):
        body = launch.node.body
        first = body.body[0]
        edits.replace_many(first, [*parse(job, "\n".join(unfold(texts, names, block)), launch.node), first])
    several = [text for text in texts if text != "1"] or texts[:1]
    grid = " * ".join(factor(text) for text in several) if len(several) > 1 else several[0]
    suffix = f"threads={threads}, is_npu=True" if vector else "is_npu=True"
    call = cst.ensure_type(cst.parse_expression(f"f({grid}, {suffix})"), cst.Call)
    call = call.with_changes(func=launch.call.func)
    bound = cst.parse_expression(f"({block})" if vector else f"({block}, _)")
    assert isinstance(bound, (cst.Name, cst.Tuple))
    if launch.item.asname is None:
        asname = cst.AsName(bound, cst.SimpleWhitespace(" "), cst.SimpleWhitespace(" "))
        edits.replace(launch.item, launch.item.with_changes(item=call, asname=asname))
    else:
        edits.replace(launch.call, call)
        edits.replace(launch.item.asname.name, bound)
    job.change("TL138", launch.node, _said(len(extents), threads if vector else None))
    job.apply(edits)


def one_thread(job: Job, why: str) -> Job:
    """A job like this one, launched with ``threads=1``, below a comment that names the code of the reason; findings of
    checks, which saw two threads, are left behind."""
    other = replace(job, edited=list(job.edited), notes=job.notes[: job.told])
    launch = other.kernel.launched
    if launch.threads is None:
        return other
    edits, said = Edits(other.file.index), f"# {why}: one vector core: {CODES[why].name.replace('-', ' ')}"
    edits.replace(launch.node, with_threads(launch, cst.Integer("1"), said))
    other.edited = [
        (code_, node, text.replace("threads=2", "threads=1")) if code_ == "TL138" else (code_, node, text)
        for code_, node, text in other.edited
    ]
    other.apply(edits)
    return other


def has_vector_work(kernel: Kernel) -> bool:
    """True if any statement runs on the vector cores."""
    for stmt in kernel.walk():
        if isinstance(stmt, Copy) and side_of(stmt) is Side.BOTH:
            return True
        if not children(stmt) and side_of(stmt) is Side.VECTOR:
            return True
    return False


def _axis_names(job: Job, extents: list[cst.BaseExpression], names: list[str]) -> list[str]:
    """A short text for every extent; a longer one that is needed twice gets a name in the factory."""
    free = Names(job)
    texts: list[str] = []
    assigned: list[str] = []
    last = max((number for number, name in enumerate(names) if name), default=-1)
    for number, extent in enumerate(extents):
        text = code(extent)
        twice = number < last
        if twice and not isinstance(extent, (cst.Name, cst.Integer)) and is_outside(job, extent):
            name = free.fresh(f"grid_{_AXES[number]}" if number < 3 else f"grid_{number}")
            assigned.append(f"{name} = {text}")
            text = name
        texts.append(text)
    constants.define(job, assigned)
    return texts


def is_outside(job: Job, extent: cst.BaseExpression) -> bool:
    """The extent can be worked out in the factory: it uses nothing that the kernel itself binds."""
    if job.located.factory is None:
        return False
    kernel = job.located.node
    own = {param.name.value for param in kernel.params.params}
    own |= assigned_names(kernel.body)
    return not any(name.value in own for name in names_in(extent))


def unfold(texts: list[str], names: list[str], block: str) -> list[str]:
    """``bx = cid % gx``, ``by = cid // gx % gy``, ``bz = cid // (gx * gy)``; nothing for axes without a name."""
    lines = []
    for number, name in enumerate(names):
        if not name:
            continue
        below = [factor(text) for text in texts[:number] if text != "1"]
        divisor = below[0] if len(below) == 1 else f"({' * '.join(below)})"
        value = block if not below else f"{block} // {divisor}"
        if number < len(texts) - 1:
            value += f" % {factor(texts[number])}"
        lines.append(f"{name} = {value}")
    return lines


def _said(axes: int, threads: int | None) -> str:
    grid = f"{axes} grid axes folded into one" if axes > 1 else "one grid axis"
    return f"{grid}, " + (f"threads={threads}" if threads is not None else "cube only")
