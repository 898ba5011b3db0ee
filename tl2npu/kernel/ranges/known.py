"""What is known of the variables at a statement: the ranges of loops and blocks, conditions, names bound once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Branch, Kernel, Let, Loop, Range, Stmt
from tl2npu.kernel.ranges.bounds import EITHER, Bounds
from tl2npu.kernel.ranges.reach import facts
from tl2npu.kernel.symbolic import Sym, const, opaque


class Known:
    """For one kernel.

    ``each_core``: the number of the vector core is 0 or 1. Where rows of tensors are compared it is left open: the
    compiler adds the core's first row to them, which is not written (``src/transform/ascend_vid_reduction.cc``).
    """

    def __init__(self, kernel: Kernel, evaluator: Evaluator, *, each_core: bool = False) -> None:
        self.kernel = kernel
        self.each_core = each_core
        self.evaluator = evaluator
        self._lets: dict[str, list[Let]] = {}
        self._given: dict[int, Sym] = {}
        for stmt in kernel.walk():
            if isinstance(stmt, Let):
                self._lets.setdefault(stmt.name, []).append(stmt)

    def bounds(self, stmt: Stmt, loops: Iterable[Range], conditions: Iterable[tuple[Branch, bool]]) -> Bounds:
        """What is known at a statement inside of these loops, outermost first, and branches (True: their ``then``)."""
        kernel = self.kernel
        ranges: dict[str, tuple[Sym, Sym]] = {}
        if kernel.launch is not None and kernel.cid is not None and len(kernel.launch.grid) == 1:
            ranges[kernel.cid] = const(0), kernel.launch.grid[0] - 1
        for core in (kernel.vid, kernel.core if self.each_core else None):
            if core is not None:
                ranges[core] = const(0), const(1)
        for item in loops:
            ranges[str(item.var)] = item.start, item.start + item.extent - 1
        known = [
            fact for branch, taken in conditions for fact in facts(self.evaluator, branch.cond.node, branch.env, taken)
        ]
        values = self._values(stmt)
        return Bounds(ranges, tuple(known), {name: value for name, value in values.items() if name not in ranges})

    def around(self, stmt: Stmt, parents: Sequence[Stmt]) -> Bounds:
        """The same, inside of the loops and branches among its ``parents``, outermost first."""
        loops = [item for parent in parents if isinstance(parent, Loop) for item in parent.ranges]
        branches = [
            (branch, any(below is inner for inner in branch.then))
            for branch, below in pairwise((*parents, stmt))
            if isinstance(branch, Branch)
        ]
        return self.bounds(stmt, loops, branches)

    def _values(self, stmt: Stmt) -> dict[str, Sym]:
        """What names stand for that were bound once, to something that is no plain arithmetic."""
        found: dict[str, Sym] = {}
        env = stmt.env
        for name, lets in self._lets.items():
            bound = env.lookup(name)
            if len(lets) == 1 and isinstance(bound, Sym) and len(bound.terms) == 1 and "@" in str(bound):
                let = lets[0]
                if id(let) not in self._given:
                    self._given[id(let)] = self.value(let.value.node, let.env)
                value = self._given[id(let)]
                if not value.depends_on(str(bound)):
                    found[str(bound)] = value
        return found

    def value(self, node: cst.BaseExpression, env: Env) -> Sym:
        """An expression, with both arms of a choice; ``T.use_swizzle`` gives the number of a tile."""
        arms: tuple[cst.BaseExpression, ...] = ()
        if isinstance(node, cst.Call) and (self.evaluator.names.resolve(node.func) or "").endswith("use_swizzle"):
            return opaque("max", const(0), self.evaluator.sym(node, env))
        if isinstance(node, cst.IfExp):
            arms = (node.body, node.orelse, node.test)
        elif isinstance(node, cst.Call) and (self.evaluator.names.resolve(node.func) or "").endswith(".if_then_else"):
            arms = tuple(node.args[n].value for n in (1, 2, 0)) if len(node.args) == 3 else ()
        if not arms:
            return self.evaluator.sym(node, env)
        return opaque(EITHER, *(self.value(arm, env) for arm in arms))
