"""Whether a loop certainly runs at least once.

Extents of tensors and tiles, and everything else that a factory takes as a size, are at least 1; block indices and loop
variables lie in their ranges. Nothing is known of the numbers that a kernel is given, nor of what it loads.
"""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Kernel, Loop, Range
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.symbolic import Div, Mod, Opaque, Sym, const


class TripCounts:
    """Proofs for one kernel.

    ``assertable``: whether the factory can check that a range of sizes is not empty; those for which it has to are
    ``assumed``, with their loops.
    """

    def __init__(self, kernel: Kernel, evaluator: Evaluator, assertable: Callable[[Range], bool] | None = None) -> None:
        self.assumed: dict[int, tuple[Loop, Range]] = {}
        self._assertable = assertable
        self._kernel = kernel
        self._known = Known(kernel, evaluator)
        self._loops = [item for stmt in kernel.walk() if isinstance(stmt, Loop) for item in stmt.ranges]

    def runs(self, loop: Loop) -> bool:
        """True if the body is executed at least once for every block and every size."""
        return bool(loop.ranges) and loop.kind != "while" and all(self._has_a_turn(loop, item) for item in loop.ranges)

    def _has_a_turn(self, loop: Loop, item: Range) -> bool:
        size_only = all(map(self._is_size, item.extent.names)) and not any(map(_is_opaque, item.extent.atoms()))
        if size_only and item.extent.constant is None and _is_sum(item.extent):
            return True  # sizes of the factory's: empty only for empty tensors, or for less than a tile of them
        counts = [item.extent]
        if item.stop_node is not None:
            start = item.start if item.start_node is None else self._known.value(item.start_node, loop.env)
            counts.append(self._known.value(item.stop_node, loop.env) - start)
        if any(self._bounds(loop, count).is_not_negative(count - 1) for count in counts):
            return True
        assumed = size_only and item.extent.constant is None and self._assertable is not None and self._assertable(item)
        self.assumed |= {id(item): (loop, item)} if assumed else {}
        return assumed

    def _bounds(self, loop: Loop, count: Sym) -> Bounds:
        known = self._known.bounds(loop, self._loops, ())
        ranges = dict(known.ranges)
        launch = self._kernel.launch
        for name, extent in zip(launch.names, launch.grid, strict=False) if launch is not None else ():
            bound = loop.env.lookup(name)
            if isinstance(bound, Sym):
                ranges[str(bound)] = const(0), extent - 1
        names = known.expanded(count).names.union(*(side.names for pair in ranges.values() for side in pair))
        return Bounds(ranges, (), known.values, frozenset(filter(self._is_size, names)))

    def _is_size(self, name: str) -> bool:
        return "@" not in name and name not in self._kernel.scalars


def _is_sum(size: Sym) -> bool:
    """Nothing is subtracted, nor in what is divided: ``K // BK``, not ``K // BK - 1``, nor ``(K - 1) // BK``."""
    parts = (part for atom in size.atoms() if isinstance(atom, (Div, Mod)) for part in (atom.num, atom.den))
    return all(coef > 0 for part in (size, *parts) for _, coef in part.terms)


def _is_opaque(atom: object) -> bool:
    return isinstance(atom, Opaque)
