"""TL432: ``T.Persistent``, which AscendNPU IR does not have, as a loop over the tiles of a block."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop
from tl2npu.passes import imports
from tl2npu.passes.gpu.statements import Names, factor, parse
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def to_loops(job: Job) -> None:
    """Every wave gives a block one tile; tiles are counted with the last axis fastest."""
    names = Names(job)
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "persistent":
            _rewrite(job, edits, names, stmt)
    if edits:
        job.apply(edits)
        spelt = {name: imports.spelling(job, name, job.located.node) for name in ("serial", "ceildiv")}
        imports.complete(job, {name for name in spelt if spelt[name] == name}, {"Persistent"})


def _rewrite(job: Job, edits: Edits, names: Names, loop: Loop) -> None:
    node, call = loop.node, loop.call
    if call is None or loop.via or not isinstance(node, cst.For) or not isinstance(node.body, cst.IndentedBlock):
        raise Blocked("TL428", node, "this `T.Persistent` is not understood")
    given = {arg.keyword.value if arg.keyword is not None else str(i): arg.value for i, arg in enumerate(call.args)}
    domain, wave, index = (given.get(key, given.get(str(i))) for i, key in enumerate(("domain", "wave_size", "index")))
    if not isinstance(domain, (cst.List, cst.Tuple)) or wave is None or index is None:
        raise Blocked("TL428", node, "this `T.Persistent` is not understood")
    sizes = [code(element.value) for element in domain.elements]
    variables = [item.name for item in loop.ranges]
    if len(sizes) != len(variables):
        raise Blocked("TL428", node, f"{len(sizes)} axes and {len(variables)} names")
    turn, tile = names.fresh("turn", "wave"), names.fresh("tile", "tile_id")
    total = " * ".join(factor(size) for size in sizes)
    lines = [f"for {turn} in T.serial(T.ceildiv({total} - {code(index)}, {factor(code(wave))})):"]
    lines.append(f"    {tile} = {turn} * {factor(code(wave))} + {code(index)}")
    for place, name in enumerate(variables):
        below = [factor(size) for size in sizes[place + 1 :]]
        value = tile if not below else f"{tile} // {below[0] if len(below) == 1 else '(' + ' * '.join(below) + ')'}"
        lines.append(f"    {name} = {value}" + (f" % {factor(sizes[place])}" if place else ""))
    (head,) = parse(job, "\n".join(lines) + "\n", node)
    assert isinstance(head, cst.For)
    assert isinstance(head.body, cst.IndentedBlock)
    first, *rest = node.body.body
    inside = [*head.body.body, first, *rest]
    edits.replace(node, head.with_changes(body=node.body.with_changes(body=inside), leading_lines=node.leading_lines))
    job.change("TL432", node, "the tiles of a block, one after the other")
