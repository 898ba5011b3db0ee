"""What only says how often something happens: there, 0 and all numbers below it mean the same.

The number of turns of a loop, and what stands in a ``max`` beside a number that is at least 0; so does what they are
made of, as long as it cannot become positive: a multiple, a quotient, a difference, a ``min``, the arms of a choice,
and names that nothing else reads. How a quotient of such a number is rounded makes no difference where it is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Kernel, Let, Loop, Stmt
from tl2npu.source.tree import walk

AtLeast = Callable[[cst.BaseExpression, Stmt, int], bool]
"""Whether an expression of a statement is certainly not below a number."""

_DIVISIONS = ("floordiv", "FloorDiv", "ceildiv", "cdiv")


def counted(kernel: Kernel, evaluator: Evaluator, at_least: AtLeast) -> frozenset[int]:
    """The identities of these expressions of the body."""
    lets: dict[str, list[Let]] = {}
    todo: list[tuple[cst.BaseExpression, Stmt]] = []
    for stmt in kernel.walk():
        if isinstance(stmt, Let) and not stmt.via:
            lets.setdefault(stmt.name, []).append(stmt)
        todo += ((node, stmt) for node in _first(stmt, evaluator, at_least))
    readers = _readers(kernel.node, frozenset(lets))
    found: set[int] = set()
    while todo:
        node, stmt = todo.pop()
        if id(node) in found:
            continue
        found.add(id(node))
        if isinstance(node, cst.Name) and id(node) in readers.get(node.value, ()):
            if readers[node.value] <= found:
                todo += ((let.value.node, let) for let in lets[node.value])
        else:
            todo += ((part, stmt) for part in _made_of(node, stmt, evaluator, at_least))
    return frozenset(found)


def positive(loop: Loop, evaluator: Evaluator, at_least: AtLeast) -> Iterator[cst.BaseExpression]:
    """What is at least 1 wherever the body of a loop runs."""
    todo = [one.stop_node for one in loop.ranges if one.start_node is None and one.stop_node is not None]
    while todo:
        node = todo.pop()
        yield node
        todo += _made_of(node, loop, evaluator, at_least, every=True)


def _readers(node: cst.CSTNode, names: frozenset[str]) -> dict[str, set[int]]:
    """Every place that names one of these, except as the target of an assignment."""
    found: dict[str, set[int]] = {}
    for part in walk(node):
        if isinstance(part, cst.Name) and part.value in names:
            found.setdefault(part.value, set()).add(id(part))
    for part in walk(node):
        targets = [one.target for one in part.targets] if isinstance(part, cst.Assign) else []
        for target in targets:
            if isinstance(target, cst.Name) and target.value in names:
                found[target.value].discard(id(target))
    return found


def _first(stmt: Stmt, evaluator: Evaluator, at_least: AtLeast) -> Iterator[cst.BaseExpression]:
    for one in stmt.ranges if isinstance(stmt, Loop) else ():
        starts = one.start_node is None or at_least(one.start_node, stmt, 0)
        if one.stop_node is not None and one.step is None and starts:
            yield one.stop_node
    value = stmt.value.node if isinstance(stmt, Let) else stmt.node
    if isinstance(stmt, Let) or isinstance(value, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Call)):
        for node in walk(value):
            if isinstance(node, cst.Call) and _name(node, evaluator) in ("max", "Max") and len(node.args) == 2:
                values = [evaluator.sym(arg.value, stmt.env).constant for arg in node.args]
                if any(one is not None and one >= 0 for one in values):
                    yield from (arg.value for arg in node.args)


def _made_of(
    node: cst.BaseExpression, stmt: Stmt, evaluator: Evaluator, at_least: AtLeast, *, every: bool = False
) -> Iterator[cst.BaseExpression]:
    """The parts of an expression that is at most 0 where all of them are; ``every``: where any of them is."""
    if isinstance(node, cst.BinaryOperation):
        left, right = node.left, node.right
        if isinstance(node.operator, cst.Multiply):
            yield from (one for one, by in ((left, right), (right, left)) if at_least(by, stmt, 1))
        elif isinstance(node.operator, (cst.FloorDivide, cst.Subtract)):
            least = 1 if isinstance(node.operator, cst.FloorDivide) else 0
            yield from (left,) if at_least(right, stmt, least) else ()
    elif isinstance(node, cst.IfExp):
        yield from () if every else (node.body, node.orelse)
    elif isinstance(node, cst.Call):
        name, args = _name(node, evaluator), [arg.value for arg in node.args]
        if name in ("min", "Min"):
            yield from args
        elif name in ("max", "Max"):
            yield from () if every else args
        elif name == "if_then_else":
            yield from () if every else args[1:]
        elif name in _DIVISIONS and len(args) == 2 and at_least(args[1], stmt, 1):
            yield args[0]


def _name(node: cst.Call, evaluator: Evaluator) -> str:
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    return (evaluator.names.resolve(node.func) or name).rpartition(".")[2]
