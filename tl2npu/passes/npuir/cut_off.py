"""TL455: floats that a vectorised loop makes integers of are cut off, as a GPU does.

The loop would round them to nearest even, whatever the cast says (``BuildUnaryStmt`` of
``src/transform/npu_loop_vectorize.cc``). It stores floats, and an operator on the whole tile converts them.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_integer
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Store, walk
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.casts import cast_parts, is_cast, parallel_nests
from tl2npu.passes.npuir.vectorised import covers
from tl2npu.passes.writing.numbers import element_type, number_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import shape_text
from tl2npu.source.tree import children, replaced


def in_loops(job: Job) -> None:
    """Rewrite such loops. Raises :class:`Blocked` for one that does more than to convert all elements of a tile."""
    plan, names = Plan(job), Names(job)
    for loop in parallel_nests(job.kernel.body):
        stmts = list(walk([loop]))
        ranges = [item for above in stmts if isinstance(above, Loop) for item in above.ranges]
        is_late = any(job.late.is_late(item.extent) for item in ranges)
        if is_late or not all(isinstance(one, (Loop, Let, Store)) for one in stmts):
            continue  # it runs element by element
        for stmt in stmts:
            if isinstance(stmt, Store) and (places := list(_conversions(job, stmt))):
                alone = sum(not isinstance(one, Loop) for one in stmts) == 1 and not stmt.augmented and not stmt.via
                whole = places == [stmt.value.node] and number_type(job, stmt.target.buffer) == "int"
                if not alone or not whole or not covers(stmt.target, ranges):
                    text = f"`{code(places[0])}` becomes an integer, which this loop would round and a GPU cuts off"
                    raise Blocked("TL418", places[0], text)
                _cut_off(job, plan, names, loop, stmt)
    plan.apply()


def _conversions(job: Job, stmt: Store) -> Iterator[cst.BaseExpression]:
    """The parts of a stored value in which floats become integers, inner ones first."""
    value = stmt.value.node
    yield from _casts(job, stmt, value)
    if number_type(job, stmt.target.buffer) == "int" and _is_float(job, stmt, value):
        yield value


def _casts(job: Job, stmt: Store, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for child in children(node):
        yield from _casts(job, stmt, child)
    if isinstance(node, cst.Call) and is_cast(job, node):
        value, dtype = cast_parts(job, node)
        if is_integer(dtype) and _is_float(job, stmt, value):
            yield node


def _is_float(job: Job, stmt: Store, node: cst.CSTNode) -> bool:
    """Whether an expression is a float; conditions in it do not count."""
    if isinstance(node, (cst.Comparison, cst.BooleanOperation)):
        return False
    if isinstance(node, (cst.Float, cst.Divide)):
        return True
    if isinstance(node, cst.Subscript):
        load = job.file.evaluator.operand(node, stmt.env)
        return load is not None and not element_type(job, load.buffer).startswith(("int", "uint", "bool"))
    if isinstance(node, cst.Call) and is_cast(job, node):
        return not is_integer(cast_parts(job, node)[1])
    return any(_is_float(job, stmt, child) for child in children(node))


def _cut_off(job: Job, plan: Plan, names: Names, loop: Loop, stmt: Store) -> None:
    tile, value = stmt.target.buffer, stmt.value.node
    whole, place = names.fresh(f"{tile.name}_f32"), tile.statement
    if place is None:
        raise Blocked("TL418", stmt.node, f"cannot tell where to allocate a tile beside `{tile.name}`")
    plan.after(place, parse(job, f'{whole} = T.alloc_shared({shape_text(tile)}, "float32")\n', place))
    if isinstance(value, cst.Call) and is_cast(job, value):
        value = cast_parts(job, value)[0]
    target = stmt.target.node
    assert isinstance(target, cst.Subscript)
    new = replaced(loop.node, {id(stmt.value.node): value, id(target.value): cst.Name(whole)})
    converted = parse(job, f'T.vcast({whole}, {tile.name}, round_mode="trunc")\n', loop.node)
    plan.replace(loop.node, [new, *converted])  # type: ignore[list-item]
    job.change("TL455", stmt.node, f"wrote the conversion to integers of `{tile.name}` so that it cuts off")
