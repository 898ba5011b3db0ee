"""TL152: functions such as ``T.exp`` of single values, which only the vector core computes.

The scalar unit has arithmetic, and nothing else: the compiler stops at ``alpha = T.exp(g)``. The value is put into all
elements of a small tile, the function is taken there, and one element is read back.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Stmt, Store, walk_with_parents
from tl2npu.kernel.ranges.reach import Reach, chosen_parts, lies_inside
from tl2npu.passes.gpu.elementwise.functions import MATH, OF_NUMBERS, SYNONYMS
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.normal import is_run_time
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import allocate_above
from tl2npu.source.edits import Edits
from tl2npu.source.tree import replaced
from tl2npu.source.tree import walk as nodes

_LANGUAGE = "tilelang.language."
_BLOCK = 8
"""Elements of the tile: 32 bytes of float32, the least that an instruction takes."""


@dataclass(frozen=True, eq=False)
class _Site:
    stmt: Let | Store
    call: cst.Call
    top: Stmt


def to_tiles(job: Job) -> None:
    """Write every such function of a value that only the device knows as a function of a tile."""
    names = Names(job)
    until_settled(job, lambda: (site := _first(job)) is not None and _write(job, site, names))


def _first(job: Job) -> _Site | None:
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, (Let, Store)) or stmt.via:
            continue
        if any(isinstance(above, Loop) and above.kind in ("parallel", "vectorized") for above in parents):
            continue
        found = [node for node in nodes(stmt.value.node) if isinstance(node, cst.Call) and _is_function(job, node)]
        if any(is_run_time(job, call, stmt.env) for call in found):
            _refuse_without_condition(job, stmt, parents, found[-1])
            return _Site(stmt, found[-1], parents[0] if parents else stmt)  # the last one holds no other
    return None


def _refuse_without_condition(job: Job, stmt: Let | Store, parents: tuple[Stmt, ...], call: cst.Call) -> None:
    """The argument is worked out before the statement: it must not read what only a condition in it allows."""
    evaluator = job.file.evaluator
    under = any(node is call and chosen for node, chosen in chosen_parts(evaluator, stmt.value.node))
    bounds = Reach(job.kernel, evaluator).bounds(parents, stmt)
    loads = evaluator.loads(call, stmt.env) if under else ()
    if not all(lies_inside(bounds, load) for load in loads):
        text = f"`{code(call)}` reads an element whose bounds only the surrounding condition checks"
        raise Blocked("TL179", stmt.node, text)


def _is_function(job: Job, call: cst.Call) -> bool:
    resolved = job.file.names.resolve(call.func) or ""
    name = resolved.removeprefix(_LANGUAGE)
    return resolved.startswith(_LANGUAGE) and SYNONYMS.get(name, name) in MATH - OF_NUMBERS


def _write(job: Job, site: _Site, names: Names) -> bool:
    stmt, call = site.stmt, site.call
    line = job.file.index.parent(stmt.node)
    if len(call.args) != 1 or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Blocked("TL150", stmt.node, f"`{code(call)}` of single values is not supported here")
    stem = stmt.name if isinstance(stmt, Let) else stmt.target.buffer.name
    argument = call.args[0].value
    text = ""
    if isinstance(argument, cst.Name):
        given = argument.value
    else:
        given = names.fresh(f"{stem}_arg")
        text = f"{given} = {code(argument)}\n"
    tile, index = names.fresh(f"{stem}_tile"), names.fresh("i")
    text += f"for {index} in T.Parallel({_BLOCK}):\n    {tile}[{index}] = {code(call.func)}({given})\n"
    new = replaced(stmt.node, {id(call): cst.parse_expression(f"{tile}[0]")})
    assert isinstance(new, cst.BaseSmallStatement)
    job.change("TL152", call, f"computed `{code(call.func)}` of single values on a small tile")
    edits = Edits(job.file.index)
    allocate_above(job, edits, site.top, f'{tile} = T.alloc_shared([{_BLOCK}], "float32")\n', line)
    job.apply(edits)  # the statement may be the first one
    edits = Edits(job.file.index)
    edits.replace_many(line, [*parse(job, text, line), line.with_changes(body=[new], leading_lines=())])
    job.apply(edits)
    return True
