"""Choices that ``T.Parallel`` can make: ``T.if_then_else`` as the whole value, by one comparison.

The compiler has no vector operation for ``and`` and ``or``; and a choice inside of an expression or of another choice
is written to the target itself, while what is around it reads something else
(``src/transform/npu_loop_vectorize.cc``: ``HandleTernaryExpression``).
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Store
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called, flat
from tl2npu.source.tree import nodes_of, replaced, walk

_CHOICE = "if_then_else"
_ARGUMENTS = 3


def simple(job: Job, stmt: Store) -> bool:
    """Whether the choices in a store are such that the compiler makes them."""
    value = stmt.value.node
    choices = [call for call, name in called(job, value) if name == _CHOICE]
    if not choices:
        return True
    if len(choices) > 1 or choices[0] is not value or stmt.augmented:
        return False
    return _terms(job, choices[0].args[0].value) is None


def parts(job: Job, stmt: Store, tile: Callable[[], str]) -> list[str]:
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
    inside = {id(node) for node in walk(chosen)}
    buffer = stmt.target.buffer
    if not buffer.is_tile:
        return True
    return any(load.buffer is buffer and id(load.node) not in inside for load in stmt.value.loads)
