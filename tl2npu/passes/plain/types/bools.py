"""TL736: tensors of bool that a kernel only reads become tensors of uint8, which hold 0 and 1 as they are."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.positions import output_positions, parameter_count
from tl2npu.kernel.model import Branch, Buffer, Copy
from tl2npu.passes.host.calls import kernel_calls
from tl2npu.passes.host.followers import followers_of, host_of
from tl2npu.passes.job import Job
from tl2npu.passes.plain.types.strings import written_type
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_TYPE = '"uint8"'


def to_uint8(job: Job) -> None:
    """Declare such tensors, and the tiles that are copies of them, as uint8; callers convert theirs."""
    if job.options.target != "ascendc":
        return
    tensors = [buffer for buffer in job.kernel.params if buffer.dtype == "bool"]
    found = _alike(job, tensors)
    if not tensors or found is None:
        return
    edits = Edits(job.file.index)
    for buffer in found:
        node = written_type(buffer.node)
        if node is None:
            return
        edits.replace(node, cst.SimpleString(_TYPE))
        job.change("TL736", node, f"`{buffer.name}` holds 0 and 1 as uint8")
    _compare(job, edits, found)
    everywhere = _convert(job, edits, tensors)
    names = ", ".join(f"`{buffer.name}`" for buffer in tensors)
    text = f"now uint8, with 0 and 1: {names}; " + (
        "the calls in this file convert them" if everywhere else "pass bool tensors as `x.to(torch.uint8)`"
    )
    job.note("TL736", tensors[0].node, text, "info" if everywhere else "warning", done=True)
    job.apply(edits)


def _compare(job: Job, edits: Edits, found: list[Buffer]) -> None:
    """Conditions compare with 0: the compiler joins conditions with `&&`, which takes no number."""
    for stmt in job.kernel.walk():
        for load in stmt.cond.loads if isinstance(stmt, Branch) else ():
            parent = job.file.index.parent(load.node)
            negated = isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
            if load.buffer in found and (negated or isinstance(parent, (cst.If, cst.BooleanOperation))):
                text = f"{code(load.node)} != 0"
                edits.replace(load.node, cst.parse_expression(text if isinstance(parent, cst.If) else f"({text})"))


def _alike(job: Job, tensors: list[Buffer]) -> list[Buffer] | None:
    """The tensors and their copies on chip; None if something makes a difference between bool and numbers."""
    found = {buffer.name: buffer for buffer in tensors}
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy) and stmt.src.buffer.name in found and stmt.dst.buffer.dtype == "bool":
            found.setdefault(stmt.dst.buffer.name, stmt.dst.buffer)
    for stmt in job.kernel.walk():
        copied = isinstance(stmt, Copy) and stmt.src.buffer.name in found
        for access in accesses(stmt):
            if access.writes and access.operand.buffer.name in found and not copied:
                return None
    body = job.located.node.body
    unary = nodes_of(body, cst.UnaryOperation)
    inverted: list[cst.CSTNode] = [node for node in unary if isinstance(node.operator, cst.BitInvert)]
    calls = nodes_of(body, cst.Call)
    inverted += [call for call in calls if (job.file.names.resolve(call.func) or "").endswith(".bitwise_not")]
    if any(name.value in found for node in inverted for name in names_in(node)):
        return None
    return list(found.values())


def _convert(job: Job, edits: Edits, tensors: list[Buffer]) -> bool:
    """Convert what the calls in this file pass; whether these are all calls there are."""
    factory = job.located.factory
    if factory is None:
        return False
    try:
        hidden = output_positions(job.file, job.located)
        calls = list({id(call): call for call in kernel_calls(host_of(job, factory.node))}.values())
        foreign = followers_of(job, factory.node)
    except Blocked:
        return False
    visible = [place for place in range(parameter_count(job.located)) if place not in hidden]
    followed = bool(calls) and not foreign
    for call in calls:
        torch = job.file.names.spell("torch.uint8", at=call)
        plain = len(call.args) == len(visible) and not any(arg.star or arg.keyword for arg in call.args)
        if torch is None or not plain:
            followed = False
            continue
        for buffer in tensors:
            value = call.args[visible.index(buffer.index)].value
            text = (
                code(value)
                if isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
                else f"({code(value)})"
            )
            edits.replace(value, cst.parse_expression(f"{text}.to({torch})"))
            job.change("TL736", call, f"`{code(value)}` -> `{text}.to({torch})`")
    return followed
