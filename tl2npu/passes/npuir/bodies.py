"""TL409: bodies of ``T.Parallel`` in the form that becomes vector operations.

Names that the body binds are written out, an ``if`` that does not change from element to element goes outside of the
loop, conditions of several parts are taken one after the other, and what does not depend on the element has a name of
its own before the loop. Nothing is done to loops without a function that only vector operations have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import libcst as cst

from tl2npu.kernel.access import writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Let, Loop, Range, Store, walk
from tl2npu.kernel.ranges.reach import Reach, lies_inside, parents_of
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called, is_vector, needs_vector, outer_loops
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.numbers import number_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, flat, parse
from tl2npu.passes.writing.substitute import Unclear, substituted
from tl2npu.passes.writing.tiles import dtype_text, shape_text
from tl2npu.source.tree import mentioned, nodes_of, replaced
from tl2npu.source.tree import walk as nodes


def straighten(job: Job) -> None:
    """Bring one loop after the other nearer to that form until nothing is left to do."""
    for step in (_write_names_out, _branch_outside, _split_conditions, _name_invariants):
        until_settled(job, partial(_somewhere, job, step))


def _somewhere(job: Job, step: Callable[[Job, Loop, tuple[Range, ...]], bool]) -> bool:
    return any(step(job, loop, ranges) for loop, ranges in list(_nests(job)))


def _nests(job: Job) -> Iterator[tuple[Loop, tuple[Range, ...]]]:
    """The outermost parallel loops that need vector operations, with the ranges of those nested in them."""
    for loop in outer_loops(job):
        stores = [inner for inner in walk(loop.body) if isinstance(inner, Store)]
        if any(needs_vector(job, inner.value.node) for inner in stores):
            yield loop, loop.ranges


def _write_names_out(job: Job, loop: Loop, _: tuple[Range, ...]) -> bool:
    """``q = bx * M + i`` in the body: the value stands where the name is used."""
    lets = [stmt for stmt in walk(loop.body) if isinstance(stmt, Let)]
    if not lets:
        return False
    first = lets[0]
    known = {stmt.name for stmt in lets}
    if len(known) < len(lets) or not isinstance(first.node, cst.Assign) or first not in loop.body:
        return _not_moved(job, first)
    read = {load.buffer for load in first.value.loads}
    if any(operand.buffer in read for stmt in walk(loop.body) for operand in writes(stmt)):
        return _not_moved(job, first)
    plan = Plan(job)
    assert isinstance(loop.node, cst.For)
    values = {first.name: first.value.node}
    try:
        rest = [substituted(line, values) for line in loop.node.body.body if not _holds(line, first.node)]
    except Unclear as unclear:
        raise Blocked("TL418", unclear.node, str(unclear)) from None
    body = loop.node.body.with_changes(body=[_bare_sides(line) for line in rest])
    job.change("TL409", first.node, f"inlined `{first.name}`")
    plan.replace(loop.node, [loop.node.with_changes(body=body)])
    plan.apply()
    return True


def _bare_sides(line: cst.CSTNode) -> cst.CSTNode:
    """The statement with sums on the sides of comparisons that stand by themselves, without parentheses."""
    sides = [
        side
        for node in nodes(line)
        if isinstance(node, cst.Comparison)
        for side in (node.left, *(target.comparator for target in node.comparisons))
    ]
    bare = {id(side): side.with_changes(lpar=(), rpar=()) for side in sides if _is_sum(side)}
    return replaced(line, bare)


def _is_sum(side: cst.BaseExpression) -> bool:
    arithmetic = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)
    return isinstance(side, cst.BinaryOperation) and isinstance(side.operator, arithmetic)


def _not_moved(job: Job, let: Let) -> bool:
    raise Blocked("TL418", let.node, f"`{let.name}` prevents the vectorisation of this loop")


def _holds(line: cst.CSTNode, small: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and line.body[0] is small


def _branch_outside(job: Job, loop: Loop, ranges: tuple[Range, ...]) -> bool:
    """``for ...: if c: ...`` with a condition that is the same for all elements."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Branch) or not isinstance(loop.body[0].node, cst.If):
        return False
    branch, node = loop.body[0], loop.node
    used = mentioned(branch.cond.node)
    if branch.cond.loads or used & {item.name for item in ranges}:
        return False
    assert isinstance(node, cst.For)
    assert isinstance(branch.node, cst.If)
    new = _arms(branch.node, node.with_changes(leading_lines=()))
    plan = Plan(job)
    plan.replace(node, [new.with_changes(leading_lines=[*node.leading_lines, *branch.node.leading_lines])])
    job.change("TL409", branch.node, "moved the condition out of the loop: it is the same for all elements")
    plan.apply()
    return True


def _arms(node: cst.If, loop: cst.For) -> cst.If:
    orelse = node.orelse
    if isinstance(orelse, cst.If):
        orelse = _arms(orelse, loop)
    elif orelse is not None:
        orelse = orelse.with_changes(body=cst.IndentedBlock([loop.with_changes(body=orelse.body)]))
    return node.with_changes(
        leading_lines=(), body=cst.IndentedBlock([loop.with_changes(body=node.body)]), orelse=orelse
    )


def _split_conditions(job: Job, loop: Loop, ranges: tuple[Range, ...]) -> bool:
    """A choice by several conditions, or one inside of an expression, is made in several statements."""
    for stmt in walk(loop.body):
        if not isinstance(stmt, Store) or not is_vector(stmt, ranges) or _simple(job, stmt):
            continue
        plan = Plan(job)
        lines = _parts(job, stmt, partial(_tile, job, plan, stmt))
        plan.replace(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        job.change("TL409", stmt.node, f"wrote the choice of `{stmt.target.buffer.name}` as {len(lines)} statements")
        plan.apply()
        return True
    return False


def _tile(job: Job, plan: Plan, stmt: Store) -> str:
    """A tile like that of the target, for what is chosen on the way."""
    buffer = stmt.target.buffer
    assert buffer.statement is not None
    name = Names(job).fresh(f"{buffer.name}_choice")
    text = f"{name} = T.alloc_shared({shape_text(buffer)}, {dtype_text(buffer)})\n"
    plan.after(buffer.statement, parse(job, text, buffer.statement))
    return name


def _name_invariants(job: Job, loop: Loop, ranges: tuple[Range, ...]) -> bool:
    """``bx * M + i >= j``: ``bx * M`` is worked out before the loop."""
    variables = {item.name for item in ranges}
    for stmt in walk(loop.body):
        if not isinstance(stmt, Store) or not is_vector(stmt, ranges):
            continue
        found = _invariant(job, stmt, stmt.value.node, variables)
        if found is None:
            continue
        _refuse_without_condition(job, loop, stmt, found)
        name = Names(job).fresh(f"{stmt.target.buffer.name}_offset")
        plan = Plan(job)
        text = flat(found.with_changes(lpar=(), rpar=()))
        plan.before(loop.node, parse(job, f"{name} = {text}\n", loop.node))
        for other in walk(loop.body):
            if not isinstance(other, Store):
                continue
            same = {id(node): cst.Name(name) for node in nodes(other.value.node) if _is_same(node, found)}
            if same:
                line = replaced(other.node, {id(other.value.node): replaced(other.value.node, same)})
                assert isinstance(line, cst.BaseSmallStatement)
                plan.replace(other.node, [cst.SimpleStatementLine([line])])
        job.change("TL409", found, f"computed `{text}` before the loop: it is the same for all elements")
        plan.apply()
        return True
    return False


def _refuse_without_condition(job: Job, loop: Loop, stmt: Store, found: cst.BaseExpression) -> None:
    """What is worked out before the loop must not read what only a branch in the loop allows."""
    branches = [above for above in parents_of(job.kernel, stmt) if isinstance(above, Branch)]
    bounds = Reach(job.kernel, job.file.evaluator).bounds(parents_of(job.kernel, loop), loop)
    loads = job.file.evaluator.loads(found, stmt.env) if any(b in walk(loop.body) for b in branches) else ()
    if not all(lies_inside(bounds, load) for load in loads):
        raise Blocked(
            "TL179", stmt.node, f"`{code(found)}` may read out of bounds where the condition in the loop is false"
        )


def _is_same(node: cst.CSTNode, found: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and code(node) == code(found)


def _invariant(job: Job, stmt: Store, node: cst.CSTNode, variables: set[str]) -> cst.BaseExpression | None:
    """The first part, outermost before inner ones, that is more than a name and the same for all elements."""
    if isinstance(node, cst.Subscript):
        return None
    if isinstance(node, cst.BinaryOperation):
        own = mentioned(node)
        if not own & variables:
            scalar = job.file.evaluator.scalar(node, stmt.env)
            return node if scalar.loads or job.late.is_late(scalar.sym) else None
    inner: list[cst.CSTNode] = []
    if isinstance(node, cst.Call):
        inner = [arg.value for arg in node.args]
    elif isinstance(node, cst.Comparison):
        inner = [node.left, *(target.comparator for target in node.comparisons)]
    elif isinstance(node, cst.BinaryOperation):
        inner = [node.left, node.right]
    elif isinstance(node, cst.UnaryOperation):
        inner = [node.expression]
    return next((found for part in inner if (found := _invariant(job, stmt, part, variables)) is not None), None)


# Choices that ``T.Parallel`` can make: ``T.if_then_else`` as the whole value, by one comparison.
#
# The compiler has no vector operation for ``and`` and ``or``; and a choice inside of an expression or of another choice
# is written to the target itself, while what is around it reads something else
# (``src/transform/npu_loop_vectorize.cc``: ``HandleTernaryExpression``).

_CHOICE = "if_then_else"
_OF_INTEGERS = (cst.LeftShift, cst.RightShift, cst.FloorDivide, cst.Modulo, cst.BitAnd, cst.BitOr, cst.BitXor)
_ARGUMENTS = 3


def _simple(job: Job, stmt: Store) -> bool:
    """Whether the choices in a store are such that the compiler makes them."""
    value = stmt.value.node
    choices = [call for call, name in called(job, value) if name == _CHOICE]
    if not choices:
        return True
    if len(choices) > 1 or choices[0] is not value or stmt.augmented:
        return False
    return _terms(job, choices[0].args[0].value) is None


def _parts(job: Job, stmt: Store, tile: Callable[[], str]) -> list[str]:
    """The store as several, the last of which gives the target its value; each is a step nearer to a simple one.

    ``tile`` makes a tile like the target's and gives its name.
    """
    value, target = stmt.value.node, flat(stmt.target.node)
    calls = [call for call, name in called(job, value) if name == _CHOICE]
    if any(len(call.args) != _ARGUMENTS or any(arg.keyword or arg.star for arg in call.args) for call in calls):
        raise Blocked("TL418", stmt.node, "cannot read the arguments of `T.if_then_else`")
    inner = next((call for call in calls if call is not value), None)
    if inner is not None or stmt.augmented:
        chosen = inner if inner is not None else value
        if number_type(job, stmt.target.buffer) != "int" and _is_counted_with(value, chosen):
            text = f"`{flat(chosen)}` is an integer on the way to a float, which needs a tile of its own"
            raise Blocked("TL418", chosen, text)
        place = target
        if stmt.augmented or _reads_target(stmt, chosen):
            place = _beside(stmt, tile)
        outer = replaced(value, {id(chosen): cst.parse_expression(place)})
        assert isinstance(outer, cst.BaseExpression)
        last = replaced(stmt.node, {id(value): outer})
        return [f"{place} = {flat(chosen)}", flat(last)]
    (choice,) = calls
    cond, yes, no = (arg.value for arg in choice.args)
    found = _terms(job, cond)
    assert found is not None
    joined_by_and, left, right = found
    name = flat(choice.func)
    if joined_by_and is None:
        return [f"{target} = {name}({left}, {flat(no)}, {flat(yes)})"]
    kept = cst.parse_expression(left), no if joined_by_and else yes
    place = target
    if any(_mentions(stmt, node) for node in kept):
        place = _beside(stmt, tile)
    first = f"{place} = {name}({right}, {flat(yes)}, {flat(no)})"
    if joined_by_and:
        return [first, f"{target} = {name}({left}, {place}, {flat(no)})"]
    return [first, f"{target} = {name}({left}, {flat(yes)}, {place})"]


def _is_counted_with(value: cst.BaseExpression, part: cst.CSTNode) -> bool:
    """Whether a part of a value is an operand of what only integers have."""
    operations = [node for node in nodes_of(value, cst.BinaryOperation) if isinstance(node.operator, _OF_INTEGERS)]
    return any(below is part for node in operations for below in nodes(node))


def _beside(stmt: Store, tile: Callable[[], str]) -> str:
    """The element of a new tile at the place of the target's."""
    if not isinstance(stmt.target.node, cst.Subscript) or stmt.target.buffer.statement is None:
        text = f"the condition of `{flat(stmt.target.node)}` needs a second tile, which cannot be allocated here"
        raise Blocked("TL418", stmt.node, text)
    return flat(stmt.target.node.with_changes(value=cst.Name(tile())))


def _terms(job: Job, cond: cst.BaseExpression) -> tuple[bool | None, str, str] | None:
    """A condition of two parts: joined by ``and`` (True) or ``or`` (False), or the reverse of one (None)."""
    if isinstance(cond, cst.BooleanOperation):
        return isinstance(cond.operator, cst.And), _bare(cond.left), _bare(cond.right)
    if isinstance(cond, cst.BinaryOperation) and isinstance(cond.operator, (cst.BitAnd, cst.BitOr)):
        return isinstance(cond.operator, cst.BitAnd), _bare(cond.left), _bare(cond.right)
    if isinstance(cond, cst.UnaryOperation) and isinstance(cond.operator, (cst.Not, cst.BitInvert)):
        return None, _bare(cond.expression), ""
    if isinstance(cond, cst.Comparison) and len(cond.comparisons) > 1:
        first, *rest = cond.comparisons
        tail = cst.Comparison(first.comparator, rest)
        return True, flat(cond.with_changes(comparisons=[first], lpar=(), rpar=())), flat(tail)
    if isinstance(cond, cst.Call):
        for call, name in called(job, cond):
            if call is cond and name in ("And", "Or", "all_of", "any_of") and len(cond.args) == 2:
                return name in ("And", "all_of"), _bare(cond.args[0].value), _bare(cond.args[1].value)
            if call is cond and name == "Not" and len(cond.args) == 1:
                return None, _bare(cond.args[0].value), ""
    return None


def _bare(node: cst.BaseExpression) -> str:
    return flat(node.with_changes(lpar=(), rpar=()))


def _mentions(stmt: Store, node: cst.CSTNode) -> bool:
    buffer = stmt.target.buffer
    return any(name.value == buffer.name for name in nodes_of(node, cst.Name))


def _reads_target(stmt: Store, chosen: cst.CSTNode) -> bool:
    """Whether the value reads the target outside of the choice, which is stored there first."""
    inside = {id(node) for node in nodes(chosen)}
    buffer = stmt.target.buffer
    if not buffer.is_tile:
        return True
    return any(load.buffer is buffer and id(load.node) not in inside for load in stmt.value.loads)
