"""How often a pipelined loop runs in those of its builds that have stages, and when that is a multiple of them.

Python builds a kernel for sizes that it knows. ``num_stages=2 if not causal and n % (2 * m) == 0 else 0`` gives a loop
stages in some builds only, and in these a length ``a if causal else T.ceildiv(n, m)`` is its second arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator, code, conjuncts_of, unparenthesised
from tl2npu.kernel.model import Kernel, Let, Loop, walk
from tl2npu.kernel.runtime import Late
from tl2npu.kernel.symbolic import Sym, ceildiv
from tl2npu.source.tree import argument

_ARITHMETIC = (cst.Name, cst.Integer, cst.BinaryOperation)
_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)


@dataclass(frozen=True)
class Turns:
    """``tests``: what else has to be true for this number; a turn for each ``tile`` of ``size``, of one where ``tile``
    is None."""

    tests: tuple[str, ...]
    size: cst.BaseExpression
    tile: cst.BaseExpression | None
    env: Env

    def count(self, evaluator: Evaluator) -> Sym:
        """The number of turns."""
        size = evaluator.sym(self.size, self.env)
        return size if self.tile is None else ceildiv(size, evaluator.sym(self.tile, self.env))


def stages_node(loop: Loop, factory: cst.FunctionDef | None = None) -> cst.BaseExpression | None:
    """What the loop is given as ``num_stages``, by name; with ``factory``, what that calls so where it chooses it."""
    node = argument(loop.call, "num_stages") if loop.call is not None else None
    if factory is None or not isinstance(node, cst.Name):
        return node
    lines = (line for line in factory.body.body if isinstance(line, cst.SimpleStatementLine))
    made = [small for line in lines for small in line.body if node.value in assigned_names(small)]
    chosen = made[0].value if len(made) == 1 and isinstance(made[0], cst.Assign) else None
    return chosen if isinstance(chosen, cst.IfExp) else node


def conditions_of_stages(loop: Loop, factory: cst.FunctionDef | None) -> tuple[str, ...]:
    """``a`` and ``b`` of ``num_stages=2 if a and b else 0``."""
    node = stages_node(loop, factory)
    if not isinstance(node, cst.IfExp) or code(node.orelse) != "0":
        return ()
    return tuple(unparenthesised(part) for part in conjuncts_of(node.test))


@dataclass(frozen=True)
class TurnsReader:
    """Reads the length of loops of one kernel. ``late``: what has a value only when the kernel is launched."""

    kernel: Kernel
    evaluator: Evaluator
    late: Late

    def of(self, loop: Loop, given: Sequence[str] = ()) -> Turns | None:
        """The turns of a loop from 0 to a number that is known when the kernel is built; of two arms the one that
        ``given`` chooses, else the one that is such a number. None if there is no such number."""
        stop = loop.ranges[0].stop_node
        if stop is None or not loop.ranges[0].start.is_zero:
            return None
        return self._turns(stop, loop.env, (), given)

    def _turns(self, node: cst.BaseExpression, env: Env, tests: tuple[str, ...], given: Sequence[str]) -> Turns | None:
        if isinstance(node, cst.Name):
            bound = [s for s in walk(self.kernel.body) if isinstance(s, Let) and s.name == node.value]
            if bound:
                return self._turns(bound[0].value.node, bound[0].env, tests, given) if len(bound) == 1 else None
        if isinstance(node, cst.IfExp):
            return self._chosen(node, env, tests, given)
        if isinstance(node, cst.Call):
            name = self.evaluator.names.resolve(node.func) or ""
            args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
            if name.rsplit(".", 1)[-1] not in ("ceildiv", "cdiv") or not name.startswith("tilelang"):
                return None
            if len(args) != 2 or len(node.args) != 2 or not all(self.is_decided(arg, env) for arg in args):
                return None
            return Turns(tests, args[0], args[1], env)
        return Turns(tests, node, None, env) if self.is_decided(node, env) else None

    def _chosen(self, node: cst.IfExp, env: Env, tests: tuple[str, ...], given: Sequence[str]) -> Turns | None:
        if not self.is_decided(node.test, env, comparisons=True):
            return None
        test = code(node.test)
        negated = f"not {test}" if isinstance(node.test, cst.Name) else f"not ({test})"
        arms = ((node.body, test), (node.orelse, negated))
        for arm, holds in arms:
            if holds in given:
                return self._turns(arm, env, tests, given)
        found = [self._turns(arm, env, (*tests, holds), given) for arm, holds in arms]
        return next((one for one in found if one is not None), None) if None in found else None

    def is_decided(self, node: cst.BaseExpression, env: Env, *, comparisons: bool = False) -> bool:
        """True for arithmetic on integers that Python does while it builds the kernel, with names from outside of it.

        ``comparisons``: also a flag, and what compares and joins such expressions.
        """
        if comparisons and isinstance(node, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation)):
            inner = [part for part in node.children if isinstance(part, cst.BaseExpression)]
            if isinstance(node, cst.Comparison):
                inner += [target.comparator for target in node.comparisons]
            return all(self.is_decided(part, env, comparisons=True) for part in inner)
        if not isinstance(node, _ARITHMETIC):
            return False
        if isinstance(node, cst.BinaryOperation):
            sides = (node.left, node.right)
            return isinstance(node.operator, _OPERATORS) and all(self.is_decided(side, env) for side in sides)
        return not self.late.is_late(self.evaluator.sym(node, env)) and self.late.is_outside(node, env)
