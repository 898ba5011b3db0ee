"""Whole divisions whose dividend may be negative.

Both code generators of Ascend print ``//`` and ``%`` as ``/`` and ``%`` of C, which round towards zero
(``VisitExpr_(const FloorDivNode*)`` and ``FloorModNode`` of src/target/codegen_ascend.cc and codegen_ascend_pto.cc);
a GPU rounds down. ``>>`` and ``&`` are printed as they are and do round down. Where the dividend is a multiple of the
divisor and a rest that is not negative, the simplifier of TVM divides, which is right; no use is made of that here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Branch, Buffer, Kernel, Let, Loop, Operand, Range, Stmt, in_parallel, walk_with_parents
from tl2npu.kernel.ranges.bounds import Bounds, is_size
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.reach import Guard, facts, guarded_parts
from tl2npu.kernel.runtime import Late
from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, Var, const, opaque, var
from tl2npu.source.tree import nodes_of, walk

_CALLS = {"floordiv": "//", "FloorDiv": "//", "floormod": "%", "FloorMod": "%", "ceildiv": "ceildiv", "cdiv": "ceildiv"}
_SIGNS: dict[type[cst.CSTNode], str] = {
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
}
_INTEGER = re.compile(r"u?int\d+|bool")
_CONVERSIONS = ("cast", "Cast", "astype", "reinterpret")
_DIVIDING = (cst.BinaryOperation, cst.AugAssign, cst.Call)


@dataclass(frozen=True, eq=False)
class Division:
    """``sign``: ``//``, ``%`` or ``ceildiv``; ``goal``: what has to be at least 0 for the sign to mean the same."""

    node: cst.CSTNode
    sign: str
    left: cst.BaseExpression
    right: cst.BaseExpression
    goal: Sym
    divisor: Sym
    bounds: Bounds
    stmt: Stmt
    parents: tuple[Stmt, ...]
    elements: tuple[Operand, ...]
    """Elements of integer tensors and tiles in the dividend, those in their indices too."""
    guards: tuple[Guard, ...] = ()
    """Conditions of the same expression, without which the quotient is of no use."""

    @property
    def positive(self) -> bool:
        """The divisor is at least 1: made of sizes, or known to be."""
        return _made_of_sizes(self.divisor) or self.bounds.is_not_negative(self.divisor - 1)

    @property
    def in_parallel(self) -> bool:
        """Inside of a ``T.Parallel``."""
        return in_parallel((*self.parents, self.stmt))


def doubtful(kernel: Kernel, evaluator: Evaluator, late: Late) -> Iterator[Division]:
    """Every division of the body that may round up on the NPU; an outer one before those in it.

    What is known before the launch is divided by Python. What only says how often a loop runs is not asked for: where
    it is rounded to another value, both are at most 0.
    """
    data = _Data(kernel)
    places = _Places(kernel, evaluator, data)
    counts: frozenset[int] | None = None
    for stmt, parents in walk_with_parents(kernel.body):
        env = stmt.env
        for node, guards in _places(stmt, evaluator):
            found = _parts(node, evaluator)
            if found is None:
                continue
            sign, left, right = found
            num, den = evaluator.sym(left, env), evaluator.sym(right, env)
            elements = evaluator.loads(left, env)
            if not elements and not late.is_late(num) and not late.is_late(den) and not evaluator.loads(right, env):
                continue
            if any(_is_float(load.buffer) for load in _outer(left, evaluator, env)):
                continue
            guards = tuple(guard for guard in guards if not any(_parts(n, evaluator) for n in walk(guard[0])))
            bounds = places.guarded(stmt, guards)
            divisor = _sceptical(den, data)
            goal = _sceptical(num, data) + (divisor - 1 if sign == "ceildiv" else 0)
            one = Division(node, sign, left, right, goal, divisor, bounds, stmt, parents, elements, guards)
            if bounds.is_not_negative(goal) and one.positive:
                continue
            if counts is None:
                counts = _counted(kernel, evaluator, places.at_least)
            if id(node) not in counts or sign == "%":
                yield one


def _made_of_sizes(divisor: Sym) -> bool:
    return divisor.constant is None and all(is_size(name) for name in divisor.names)


def _places(stmt: Stmt, evaluator: Evaluator) -> Iterator[tuple[cst.CSTNode, tuple[Guard, ...]]]:
    """Where a statement's own expressions may divide, with the conditions around it in the expression."""
    root: cst.CSTNode | None = stmt.node
    if isinstance(stmt, Loop):
        root = stmt.node.iter if type(stmt.node) is cst.For else getattr(stmt.node, "test", None)
    elif isinstance(stmt, Branch):
        root = stmt.cond.node
    elif isinstance(stmt.node, (cst.With, cst.For, cst.While, cst.If, cst.FunctionDef)):
        root = None
    if root is not None and any(_parts(node, evaluator) is not None for node in nodes_of(root, *_DIVIDING)):
        yield from (part for part in guarded_parts(evaluator, root) if type(part[0]) in _DIVIDING)


def _parts(node: cst.CSTNode, evaluator: Evaluator) -> tuple[str, cst.BaseExpression, cst.BaseExpression] | None:
    if type(node) is cst.BinaryOperation and type(node.operator) in _SIGNS:
        return _SIGNS[type(node.operator)], node.left, node.right
    if type(node) is cst.AugAssign and type(node.operator) in _SIGNS:
        return _SIGNS[type(node.operator)], node.target, node.value
    if type(node) is cst.Call and len(node.args) == 2:
        name = evaluator.names.resolve(node.func) or ""
        sign = _CALLS.get(name.rpartition(".")[2]) if name.startswith("tilelang.") else None
        return (sign, node.args[0].value, node.args[1].value) if sign else None
    return None


def _outer(node: cst.BaseExpression, evaluator: Evaluator, env: Env) -> Iterator[Operand]:
    """The elements that are divided, without those in indices, and those that integers are made of first."""
    operand = evaluator.operand(node, env)
    if operand is not None:
        yield operand
        return
    if _makes_integers(node, evaluator, env):
        return
    for child in node.children:
        if isinstance(child, cst.BaseExpression):
            yield from _outer(child, evaluator, env)
        elif type(child) is cst.Arg:
            yield from _outer(child.value, evaluator, env)


def _makes_integers(node: cst.BaseExpression, evaluator: Evaluator, env: Env) -> bool:
    """``T.cast(x, "int32")``, ``T.int32(x)``, ``x.astype("int32")`` and the like."""
    if not isinstance(node, cst.Call):
        return False
    method = isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype"
    name = "astype" if method else (evaluator.names.resolve(node.func) or "").rpartition(".")[2]
    if name in _CONVERSIONS:
        return any(_INTEGER.fullmatch(evaluator.dtype(arg.value, env)) for arg in node.args)
    return _INTEGER.fullmatch(name) is not None


def _is_float(buffer: Buffer) -> bool:
    return not buffer.dtype.startswith(("int", "uint", "bool"))


class _Places:
    """What is known at each statement, without the belief that data is not negative."""

    def __init__(self, kernel: Kernel, evaluator: Evaluator, data: _Data) -> None:
        self.evaluator = evaluator
        self.data = data
        self._known = Known(kernel, evaluator, each_core=True)
        self._bounds: dict[int, Bounds] = {}
        self._parents: dict[int, tuple[Stmt, ...]] = {}
        for stmt, parents in walk_with_parents(kernel.body):
            self._parents.setdefault(id(stmt), parents)

    def at_least(self, node: cst.BaseExpression, stmt: Stmt, number: int) -> bool:
        """Whether an expression of a statement is certainly not below a number."""
        value = self._sym(node, stmt)
        return self.bounds(stmt).is_not_negative(value - number) or (number == 1 and _made_of_sizes(value))

    def bounds(self, stmt: Stmt) -> Bounds:
        """From the loops around it, whose bodies run, and the conditions."""
        if id(stmt) not in self._bounds:
            self._bounds[id(stmt)] = self._bounds_at(stmt)
        return self._bounds[id(stmt)]

    def guarded(self, stmt: Stmt, guards: Sequence[Guard]) -> Bounds:
        """And from conditions of the same expression."""
        found = self.bounds(stmt)
        further = [f for node, taken in guards for f in facts(self.evaluator, node, stmt.env, taken)]
        if not further:
            return found
        return Bounds(found.ranges, (*found.facts, *(_sceptical(f, self.data) for f in further)), found.values)

    def _bounds_at(self, stmt: Stmt) -> Bounds:
        ranges: list[Range] = []
        running: list[Sym] = []
        conditions: list[tuple[Branch, bool]] = []
        for around, inner in pairwise((*self._parents[id(stmt)], stmt)):
            if isinstance(around, Loop):
                ranges += around.ranges
                parts = _positive(around, self.evaluator, self.at_least)
                running += (self._sym(part, around) - 1 for part in parts)
            elif isinstance(around, Branch):
                conditions.append((around, any(one is inner for one in around.then)))
        found = self._known.bounds(stmt, ranges, conditions)
        sides = {
            name: (_sceptical(low, self.data), _sceptical(high, self.data))
            for name, (low, high) in found.ranges.items()
        }
        known = (*(_sceptical(fact, self.data) for fact in found.facts), *running)
        return Bounds(sides, known, {name: _sceptical(value, self.data) for name, value in found.values.items()})

    def _sym(self, node: cst.BaseExpression, stmt: Stmt) -> Sym:
        return _sceptical(self.evaluator.sym(node, stmt.env), self.data)


class _Data:
    """The data of a kernel: its buffers, and the scalars that are no size."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = kernel.buffers
        sizes = (name for buffer in kernel.buffers.values() for size in buffer.shape for name in size.names)
        self.scalars = kernel.scalars.keys() - frozenset(sizes)
        self.sceptical: dict[Sym, Sym] = {}


def _sceptical(sym: Sym, data: _Data) -> Sym:
    found = data.sceptical.get(sym)
    if found is None:
        found = data.sceptical[sym] = _without_belief(sym, data)
    return found


def _without_belief(sym: Sym, data: _Data) -> Sym:
    """With elements of signed tensors, and scalars that are no size, as variables of which nothing is known."""
    if data.scalars.isdisjoint(sym.names) and not any(
        isinstance(atom, Opaque) and atom.head.startswith("load ") for atom in sym.atoms()
    ):
        return sym
    total = const(0)
    for monomial, coef in sym.terms:
        product = const(coef)
        for atom in monomial:
            product = product * _atom(atom, data)
        total = total + product
    return total


def _atom(atom: Atom, data: _Data) -> Sym:
    if isinstance(atom, Var):
        return var(f"{atom.name}@data") if atom.name in data.scalars else Sym.of({(atom,): 1})
    if isinstance(atom, Div):
        return _sceptical(atom.num, data) // _sceptical(atom.den, data)
    if isinstance(atom, Mod):
        return _sceptical(atom.num, data) % _sceptical(atom.den, data)
    if atom.head.startswith("load "):
        buffer = data.buffers.get(atom.head.removeprefix("load "))
        if buffer is None or not buffer.dtype.startswith(("uint", "bool")):
            return var(f"{str(atom).replace('.', ' ')}@data")
    return opaque(atom.head, *(_sceptical(arg, data) for arg in atom.args))


# What only says how often something happens: there, 0 and all numbers below it mean the same.
#
# The number of turns of a loop, and what stands in a ``max`` beside a number that is at least 0; so does what they are
# made of, as long as it cannot become positive: a multiple, a quotient, a difference, a ``min``, the arms of a choice,
# and names that nothing else reads. How a quotient of such a number is rounded makes no difference where it is
# negative.

AtLeast = Callable[[cst.BaseExpression, Stmt, int], bool]
"""Whether an expression of a statement is certainly not below a number."""

_DIVISIONS = ("floordiv", "FloorDiv", "ceildiv", "cdiv")


def _counted(kernel: Kernel, evaluator: Evaluator, at_least: AtLeast) -> frozenset[int]:
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


def _positive(loop: Loop, evaluator: Evaluator, at_least: AtLeast) -> Iterator[cst.BaseExpression]:
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
