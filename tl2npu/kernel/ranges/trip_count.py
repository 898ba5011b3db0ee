"""Whether a loop certainly runs at least once.

Extents of tensors and tiles, and everything else that a factory takes as a size, are at least 1; block indices and loop
variables are at least 0. Nothing is known of the numbers that a kernel is given.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Kernel, Let, Loop
from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, Var


class TripCounts:
    """Lower bounds of the expressions of one kernel."""

    def __init__(self, kernel: Kernel, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._scalars = kernel.scalars.keys()
        self._lets: dict[str, list[Let]] = {}
        self._not_negative: set[str] = set()
        names = kernel.launch.names if kernel.launch else ()
        self._blocks = set(names)
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
            if (self._lower(item.extent) or 0) >= 1:
                continue
            env = loop.env
            start = item.start.constant
            if item.stop_node is None or env is None or start is None:
                return False
            if (self._of_node(item.stop_node, env, 0) or 0) - start < 1:
                return False
        return True

    def _is_size(self, name: str) -> bool:
        return "@" not in name and name not in self._scalars

    def _of_node(self, node: cst.BaseExpression, env: Env, depth: int) -> int | None:
        if depth > 8:
            return None
        if isinstance(node, cst.IfExp):
            return _least(self._of_node(node.body, env, depth + 1), self._of_node(node.orelse, env, depth + 1))
        if isinstance(node, cst.Call) and not any(arg.keyword or arg.star for arg in node.args):
            name = (self._evaluator.names.resolve(node.func) or "").rsplit(".", 1)[-1]
            plain = node.func.value if isinstance(node.func, cst.Name) else ""
            values = [arg.value for arg in node.args]
            if name == "if_then_else" and len(values) == 3:
                values = values[1:]
            elif name not in ("min", "max") and plain not in ("min", "max"):
                values = []
            if values:
                return _least(*(self._of_node(value, env, depth + 1) for value in values))
        if isinstance(node, cst.Name) and len(self._lets.get(node.value, ())) == 1:
            (let,) = self._lets[node.value]
            if let.env is not None:
                return self._of_node(let.value.node, let.env, depth + 1)
        return self._lower(self._evaluator.sym(node, env))

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


def _loads(sym: Sym) -> bool:
    return any(isinstance(atom, Opaque) for atom in sym.atoms())


def _least(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) and known else None
