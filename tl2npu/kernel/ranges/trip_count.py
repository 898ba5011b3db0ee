"""Whether a loop certainly runs at least once.

Extents of tensors and tiles, and everything else that a factory takes as a size, are at least 1; block indices and loop
variables are at least 0. Nothing is known of the numbers that a kernel is given.
"""

from __future__ import annotations

import itertools

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Kernel, Let, Loop, Range
from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, Var, const


class TripCounts:
    """Bounds of the expressions of one kernel."""

    def __init__(self, kernel: Kernel, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._scalars = kernel.scalars.keys()
        self._lets: dict[str, list[Let]] = {}
        self._not_negative: set[str] = set()
        launch = kernel.launch
        self._blocks = dict(zip(launch.names, launch.grid, strict=False)) if launch else {}
        for stmt in kernel.walk():
            if isinstance(stmt, Let):
                self._lets.setdefault(stmt.name, []).append(stmt)
            elif isinstance(stmt, Loop):
                for item in stmt.ranges:
                    if (item.start.constant or 0) >= 0:
                        self._not_negative |= item.var.variables()

    def runs(self, loop: Loop) -> bool:
        """True if the body is executed at least once for every block and every size."""
        if not loop.ranges or loop.kind == "while":
            return False
        for item in loop.ranges:
            size_only = all(self._is_size(name) for name in item.extent.variables()) and not _loads(item.extent)
            if size_only and item.extent.constant is None:
                continue  # a size of the factory's: empty only for empty tensors
            if (self._lower(item.extent) or 0) < 1 and not self._begins_before_its_end(item, loop.env):
                return False
        return True

    def _begins_before_its_end(self, item: Range, env: Env) -> bool:
        """True if every number that may be its start is less than every one that may be its end."""
        if item.stop_node is None:
            return False
        stops = self._choices(item.stop_node, env, 0)
        starts = self._choices(item.start_node, env, 0) if item.start_node is not None else [item.start]
        if not starts or not stops:
            return False
        return all(self._is_less(start, stop) for start in starts for stop in stops)

    def _is_less(self, start: Sym, stop: Sym) -> bool:
        most = start if start.constant is not None else self._most(start)
        if most is not None and (self._lower(stop - most) or 0) >= 1:
            return True
        for small, large in itertools.product(_quotients(start), _quotients(stop)):
            further = self._lower(large.num - small.num) if large.den == small.den else None
            if further is not None and further >= 0:  # a floor of more is no less
                rest = stop - Sym.of({(large,): 1}) - (start - Sym.of({(small,): 1}))
                return (self._lower(rest) or 0) >= 1
        return False

    def _is_size(self, name: str) -> bool:
        return "@" not in name and name not in self._scalars

    def _choices(self, node: cst.BaseExpression, env: Env, depth: int) -> list[Sym] | None:
        """What an expression may be: the arms of choices, the arguments of minima and maxima; None if too deep."""
        if depth > 8:
            return None
        values: list[cst.BaseExpression] = []
        if isinstance(node, cst.IfExp):
            values = [node.body, node.orelse]
        if isinstance(node, cst.Call) and not any(arg.keyword or arg.star for arg in node.args):
            name = (self._evaluator.names.resolve(node.func) or "").rsplit(".", 1)[-1]
            plain = node.func.value if isinstance(node.func, cst.Name) else ""
            values = [arg.value for arg in node.args]
            if name == "if_then_else" and len(values) == 3:
                values = values[1:]
            elif name not in ("min", "max") and plain not in ("min", "max"):
                values = []
        if isinstance(node, cst.Name) and len(self._lets.get(node.value, ())) == 1:
            (let,) = self._lets[node.value]
            return self._choices(let.value.node, let.env, depth + 1)
        if not values:
            return [self._evaluator.sym(node, env)]
        found = [self._choices(value, env, depth + 1) for value in values]
        return None if None in found else [sym for part in found for sym in part or ()]

    def _most(self, sym: Sym) -> Sym | None:
        """An upper bound without block indices; sizes stay as they are. None if there is none."""
        total = const(0)
        for monomial, coef in sym.terms:
            blocks = [atom for atom in monomial if isinstance(atom, Var) and not self._is_size(atom.name)]
            parts = [atom for atom in monomial if isinstance(atom, Div) and not self._of_sizes(atom)]
            rest = Sym.of({tuple(atom for atom in monomial if atom not in (*blocks, *parts)): coef})
            if (self._lower(rest) or 0) < 1 and (blocks or parts):
                return None
            if not blocks and not parts:
                if not all(self._is_size(name) for name in rest.variables()):
                    return None
                total += rest
            elif len(blocks) == 1 and not parts:
                grid = self._blocks.get(blocks[0].name.partition("@")[0])
                if grid is None:
                    return None
                total += _last_start(grid, rest)
            elif len(parts) == 1 and not blocks and (self._lower(parts[0].den) or 0) >= 1:
                num = self._most(parts[0].num)
                if num is None:
                    return None
                total += num // parts[0].den * rest
            else:
                return None
        return total

    def _of_sizes(self, atom: Atom) -> bool:
        return all(self._is_size(name) for name in Sym.of({(atom,): 1}).variables())

    def _lower(self, sym: Sym) -> int | None:
        total = 0
        for monomial, coef in sym.terms:
            factor = 1
            for atom in monomial:
                least = self._atom(atom)
                if least is None or least < 0:
                    return None
                factor *= least
            if coef < 0 and monomial:
                return None
            total += coef * factor
        return total

    def _atom(self, atom: Atom) -> int | None:
        if isinstance(atom, Var):
            if self._is_size(atom.name):
                return 1
            spelled = atom.name.split("@")[0]
            return 0 if atom.name in self._not_negative or spelled in self._blocks else None
        if isinstance(atom, (Div, Mod)):
            num, den = self._lower(atom.num), self._lower(atom.den)
            return 0 if num is not None and num >= 0 and den is not None and den >= 1 else None
        if isinstance(atom, Opaque) and atom.head in ("min", "max"):
            return _least(*(self._lower(arg) for arg in atom.args))
        return None


def _last_start(grid: Sym, step: Sym) -> Sym:
    """The largest ``index * step`` in a grid: at most n - 1 of ``ceildiv(n, step)`` or ``n // step`` blocks."""
    last = grid - 1
    for monomial, coef in last.terms:
        atom = monomial[0] if len(monomial) == 1 and coef == 1 else None
        if isinstance(atom, Div) and atom.den == step:
            less = (last - Sym.of({monomial: 1})).constant
            if less is not None and less <= 0:
                return atom.num + less  # and not ``less * step``: a step is 1 or more
    return last * step


def _quotients(sym: Sym) -> list[Div]:
    """Floor divisions that are terms of their own."""
    single = [monomial[0] for monomial, coef in sym.terms if len(monomial) == 1 and coef == 1]
    return [atom for atom in single if isinstance(atom, Div)]


def _loads(sym: Sym) -> bool:
    return any(isinstance(atom, Opaque) for atom in sym.atoms())


def _least(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) and known else None
