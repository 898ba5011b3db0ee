"""What is known of the variables at a statement, and whether an access lies inside of its buffer in every iteration.

A read may leave a condition, or a loop that may not run, only if it lies inside without it. A name is taken to be at
least 1 there only if it is the size of a buffer, of the grid or of a parallel loop: the number of a page, an offset and
what a tensor holds may well be -1 where a condition asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Branch, Kernel, Loop, Operand, Stmt, walk_with_parents
from tl2npu.kernel.ranges.bounds import Bounds, is_size
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.tree import children

_OF_A_CHOICE = 3
_CHOICES = frozenset({"if_then_else", "Select", "And", "Or"})


class Reach:
    """Proofs for one kernel."""

    def __init__(self, kernel: Kernel, evaluator: Evaluator) -> None:
        self.kernel, self.evaluator = kernel, evaluator
        grid = kernel.launch.grid if kernel.launch is not None else ()
        extents = [*grid, *(size for buffer in kernel.buffers.values() for size in buffer.shape)]
        extents += [size for size in _of_threads(kernel) if len(size.terms) == 1 and all(map(is_size, size.names))]
        self.sizes = frozenset({name for extent in extents for name in extent.variables()} - kernel.scalars.keys())

    def bounds(self, parents: Sequence[Stmt], inner: Stmt) -> Bounds:
        """Ranges of block indices and loop variables at ``inner``, and the conditions of the branches around it.

        ``parents``: the statements around it, outermost first. A loop has the ranges of its own variables as well.
        """
        ranges: dict[str, tuple[Sym, Sym]] = {}
        launch = self.kernel.launch
        env = inner.env
        for name, size in zip(launch.names, launch.grid, strict=False) if launch is not None else ():
            bound = env.lookup(name)
            if isinstance(bound, Sym) and bound.variables() == {str(bound)}:
                ranges[str(bound)] = const(0), size - 1
        chain = [*parents, inner]
        for loop in chain:
            for item in loop.ranges if isinstance(loop, Loop) else ():
                ranges[str(item.var)] = item.start, item.start + item.extent - 1
        known = [
            fact
            for above, below in pairwise(chain)
            if isinstance(above, Branch)
            for fact in facts(self.evaluator, above.cond.node, above.env, any(below is stmt for stmt in above.then))
        ]
        return Bounds(ranges, tuple(known), sizes=self.sizes)


def _of_threads(kernel: Kernel) -> Iterator[Sym]:
    """The number of threads, and of the elements that they share among them."""
    if kernel.launch is not None and kernel.launch.threads is not None:
        yield kernel.launch.threads.sym
    for stmt in kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "parallel":
            yield from (item.extent for item in stmt.ranges)


def parents_of(kernel: Kernel, stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements around a statement of a kernel, outermost first."""
    return next(parents for found, parents in walk_with_parents(kernel.body) if found is stmt)


def lies_inside(bounds: Bounds, operand: Operand, clamped: Iterable[int] = ()) -> bool:
    """True if a single element lies inside of its buffer, for every index; axes ``clamped`` end by themselves."""
    shape, dims = operand.buffer.shape, operand.dims
    if dims is None:
        return True
    free = set(clamped)
    return len(dims) == len(shape) and all(
        bounds.is_not_negative(dim.lo) and (axis in free or bounds.is_not_negative(size - 1 - dim.lo))
        for axis, (dim, size) in enumerate(zip(dims, shape, strict=True))
    )


def facts(evaluator: Evaluator, node: cst.BaseExpression, env: Env, taken: bool) -> Iterator[Sym]:
    """Expressions that are at least 0 where a condition holds (or does not)."""
    inner = parts(evaluator, node)
    if inner is not None:
        if inner[0] == taken:
            for part in inner[1]:
                yield from facts(evaluator, part, env, taken)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        yield from facts(evaluator, node.expression, env, not taken)
    elif isinstance(node, cst.Comparison) and (taken or len(node.comparisons) == 1):
        left = node.left
        for target in node.comparisons:
            a, b = evaluator.sym(left, env), evaluator.sym(target.comparator, env)
            yield from _comparison(target.operator, a, b, taken)
            left = target.comparator


def parts(evaluator: Evaluator, node: cst.BaseExpression) -> tuple[bool, Sequence[cst.BaseExpression]] | None:
    """The parts of a conjunction (True) or of a disjunction (False)."""
    if isinstance(node, cst.BooleanOperation):
        return isinstance(node.operator, cst.And), (node.left, node.right)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return isinstance(node.operator, cst.BitAnd), (node.left, node.right)
    if isinstance(node, cst.Call):
        name = (evaluator.names.resolve(node.func) or "").rsplit(".", 1)[-1]
        if name in ("And", "Or"):
            return name == "And", [arg.value for arg in node.args]
    return None


def conjuncts(evaluator: Evaluator, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The conditions of which all have to hold; of what is no conjunction that itself."""
    inner = parts(evaluator, node)
    if inner is None or not inner[0]:
        yield node
        return
    for part in inner[1]:
        yield from conjuncts(evaluator, part)


def _comparison(kind: cst.BaseCompOp, a: Sym, b: Sym, taken: bool) -> Iterator[Sym]:
    if isinstance(kind, (cst.LessThan, cst.GreaterThanEqual)):
        yield b - 1 - a if isinstance(kind, cst.LessThan) == taken else a - b
    elif isinstance(kind, (cst.GreaterThan, cst.LessThanEqual)):
        yield a - 1 - b if isinstance(kind, cst.GreaterThan) == taken else b - a
    elif isinstance(kind, cst.Equal if taken else cst.NotEqual):
        yield a - b
        yield b - a


def choice_of(
    node: cst.CSTNode, evaluator: Evaluator
) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression] | None:
    """Condition, value and other value of a choice."""
    if isinstance(node, cst.IfExp):
        return node.test, node.body, node.orelse
    if isinstance(node, cst.Call) and evaluator.names.operator(node.func) == "if_then_else":
        positional = [arg.value for arg in node.args if arg.keyword is None]
        if len(positional) == len(node.args) == _OF_A_CHOICE:
            return positional[0], positional[1], positional[2]
    return None


def is_choice(evaluator: Evaluator, node: cst.CSTNode) -> bool:
    """True for ``T.if_then_else`` and its like."""
    return isinstance(node, cst.Call) and evaluator.names.operator(node.func) in _CHOICES


def is_chosen(evaluator: Evaluator, node: cst.CSTNode, child: cst.CSTNode) -> bool:
    """True if the part of an expression is asked for under a condition only."""
    if isinstance(node, cst.IfExp):
        return child is not node.test
    if isinstance(node, cst.BooleanOperation):
        return child is node.right
    return isinstance(node, cst.Call) and is_choice(evaluator, node) and child not in (node.func, node.args[0])


def chosen_parts(evaluator: Evaluator, node: cst.CSTNode, under: bool = False) -> Iterator[tuple[cst.CSTNode, bool]]:
    """The parts of an expression, outer before inner, each with whether it is asked for under a condition only."""
    yield node, under
    for child in children(node):
        yield from chosen_parts(evaluator, child, under or is_chosen(evaluator, node, child))


Guard = tuple[cst.BaseExpression, bool]
"""A condition, and whether it holds."""


def guarded_parts(
    evaluator: Evaluator, node: cst.CSTNode, under: tuple[Guard, ...] = ()
) -> Iterator[tuple[cst.CSTNode, tuple[Guard, ...]]]:
    """The parts of an expression, outer before inner, each with the conditions without which its value is of no use.

    A part of a conjunction is of no use where another part does not hold, in whichever order they are asked for.
    """
    yield node, under
    condition = parts(evaluator, node) if isinstance(node, cst.BaseExpression) else None
    if condition is not None and not all(_is_condition(evaluator, part) for part in condition[1]):
        condition = None  # the bits of numbers
    choice = choice_of(node, evaluator)
    for child in children(node):
        own = child.value if isinstance(child, cst.Arg) else child
        further: list[Guard] = []
        if condition is not None and own in condition[1]:
            further = [(part, condition[0]) for part in condition[1] if part is not own]
        elif choice is not None and own in choice[1:]:
            further = [(choice[0], own is choice[1])]
        yield from guarded_parts(evaluator, child, (*under, *further))


def _is_condition(evaluator: Evaluator, node: cst.BaseExpression) -> bool:
    inner = parts(evaluator, node)
    if inner is not None:
        return isinstance(node, cst.BooleanOperation) or all(_is_condition(evaluator, part) for part in inner[1])
    return isinstance(node, cst.Comparison) or (
        isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)
    )
