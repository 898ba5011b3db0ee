"""TL152: functions such as ``T.exp`` of single values, which only the vector core computes.

The scalar unit has arithmetic, and nothing else: the compiler stops at ``alpha = T.exp(g)``. The value is put into all
elements of a small tile, the function is taken there, and one element is read back. A function of a size, as in
``1 / T.sqrt(D)``, is worked out by Python, in the factory.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_float
from tl2npu.kernel.expressions import code
from tl2npu.kernel.float_scalars import FloatScalars
from tl2npu.kernel.model import Let, Loop, Stmt, Store, walk_with_parents
from tl2npu.kernel.ranges.reach import Reach, chosen_parts, lies_inside
from tl2npu.passes.gpu.elementwise.functions import MATH, OF_NUMBERS, SYNONYMS
from tl2npu.passes.host.imports import add_import
from tl2npu.passes.job import Job
from tl2npu.passes.names.constants import define
from tl2npu.passes.plain.loops.normal import is_run_time
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.passes.writing.tiles import allocate_above
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, names_in, nodes_of, replaced
from tl2npu.source.tree import walk as nodes

_PYTHON = {
    "sqrt": "{} ** 0.5",
    "rsqrt": "{} ** -0.5",
    "exp2": "2.0 ** {}",
    "exp": "math.exp({})",
    "log": "math.log({})",
    "log2": "math.log2({})",
}
"""What Python has for a function of a number."""

_NUMBERS = ("float", "int")

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
    until_settled(job, lambda: (site := _first(job, sized=True)) is not None and _work_out(job, site, names))


def _first(job: Job, *, sized: bool = False) -> _Site | None:
    """The first function of a value that only the device knows; ``sized``: of one that the factory knows."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, (Let, Store)) or stmt.via:
            continue
        if any(isinstance(above, Loop) and above.kind in ("parallel", "vectorized") for above in parents):
            continue
        calls = [node for node in nodes(stmt.value.node) if isinstance(node, cst.Call)]
        found = [call for call in calls if _is_function(job, stmt, call)]
        if sized and found:
            return _Site(stmt, found[-1], parents[0] if parents else stmt)
        if any(is_run_time(job, call, stmt.env) for call in found):
            _refuse_without_condition(job, stmt, parents, found[-1])
            return _Site(stmt, found[-1], parents[0] if parents else stmt)  # the last one holds no other
    return None


def _work_out(job: Job, site: _Site, names: Names) -> bool:
    """Give the value a name in the factory."""
    call = site.call
    function = job.file.names.operator(call.func)
    written = _PYTHON.get(SYNONYMS.get(function, function))
    value = _converted(job, call.args[0].value) if len(call.args) == 1 else None
    if written is None or value is None or not _is_sized(job, value):
        raise Blocked("TL150", site.stmt.node, f"`{code(call)}` of single values is not supported here")
    parts = dict.fromkeys(item.value for item in names_in(value) if item.value not in _NUMBERS)
    name = names.fresh("_".join([function, *parts]))
    edits = Edits(job.file.index)
    edits.replace(call, cst.Name(name))
    if "math." in written and "math" not in {found.value for found in names_in(job.module)}:
        add_import(job.file.index, edits, "import math")
    job.change("TL152", call, f"worked out `{code(call)}` in the factory")
    job.apply(edits)
    define(job, [f"{name} = {written.format(factor(code(value)) if '**' in written else code(value))}"])
    return True


def _converted(job: Job, node: cst.BaseExpression) -> cst.BaseExpression:
    """``D / 2`` of ``T.cast(D, "float32") / 2``: a number of Python is as good."""
    inner = {id(call): call.args[0].value for call in calls_in(node) if _is_conversion(job, call)}
    while any(found := [call for call in calls_in(node) if id(call) in inner]):
        new = replaced(node, {id(found[0]): inner[id(found[0])]})
        assert isinstance(new, cst.BaseExpression)
        node = new
    return node


def _is_conversion(job: Job, call: cst.Call) -> bool:
    name = job.file.names.operator(call.func)
    return name in ("cast", "float32", "float64", "float") and bool(call.args)


def _is_sized(job: Job, value: cst.BaseExpression) -> bool:
    """Only names that the prim_func does not bind, and no elements."""
    bound = assigned_names(job.located.node.body) | {
        param.name.value for param in nodes_of(job.located.node, cst.Param)
    }
    return not nodes_of(value, cst.Subscript) and not {item.value for item in names_in(value)} & bound


def _refuse_without_condition(job: Job, stmt: Let | Store, parents: tuple[Stmt, ...], call: cst.Call) -> None:
    """The argument is worked out before the statement: it must not read what only a condition in it allows."""
    evaluator = job.file.evaluator
    under = any(node is call and chosen for node, chosen in chosen_parts(evaluator, stmt.value.node))
    bounds = Reach(job.kernel, evaluator).bounds(parents, stmt)
    loads = evaluator.loads(call, stmt.env) if under else ()
    if not all(lies_inside(bounds, load) for load in loads):
        text = f"`{code(call)}` reads an element whose bounds only the surrounding condition checks"
        raise Blocked("TL179", stmt.node, text)


def _is_function(job: Job, stmt: Let | Store, call: cst.Call) -> bool:
    """``T.abs`` of a float too: the compiler writes ``tir.fabs``, which nothing resolves."""
    name = job.file.names.operator(call.func)
    if SYNONYMS.get(name, name) not in MATH:
        return False
    floats = FloatScalars(job.kernel, job.file.evaluator, is_float)
    return name not in OF_NUMBERS or (name == "abs" and floats.holds(call))


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
