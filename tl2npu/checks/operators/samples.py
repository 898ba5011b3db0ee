"""What is known of the variables at a statement, and whether an expression is negative for some block and iteration."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import Branch, Range
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.ranges.reach import Guard, parts
from tl2npu.kernel.symbolic import Atom, Sym, Var

_BLOCKS = 24
_CALLS = 6
"""So many of the known ways to call the factory are tried."""


@dataclass(frozen=True, eq=False)
class Place:
    """A statement with the loops and conditions around it."""

    bounds: Bounds
    loops: tuple[Range, ...]
    conditions: tuple[tuple[Branch, bool], ...]

    def everything(self, sym: Sym) -> Iterator[Atom]:
        """The atoms of an expression and of the ranges of its variables."""
        seen: set[str] = set()
        todo = [sym]
        while todo:
            for atom in todo.pop().atoms():
                yield atom
                if isinstance(atom, Var) and atom.name in self.bounds.ranges and atom.name not in seen:
                    seen.add(atom.name)
                    todo += self.bounds.ranges[atom.name]

    def decisive(self, sym: Sym) -> frozenset[str]:
        """The variables on which an expression depends, or whether a loop runs at all."""
        return sym.names.union(*(side.names for pair in self.bounds.ranges.values() for side in pair))


class Sampler:
    """Bounds and samples, for one kernel."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.evaluator: Evaluator = subject.file.evaluator
        self._known = Known(subject.kernel, subject.file.evaluator)
        self._places: dict[int, Place] = {}

    def place(self, placed: Placed) -> Place:
        """What is known at a statement."""
        if id(placed) not in self._places:
            self._places[id(placed)] = Place(
                self._known.bounds(placed.stmt, placed.ranges, placed.conditions), placed.ranges, placed.conditions
            )
        return self._places[id(placed)]

    # samples -----------------------------------------------------------------------------------------------------

    def find(
        self,
        placed: Placed,
        sym: Sym,
        known: Mapping[str, int],
        told: Container[str] = (),
        guards: Sequence[Guard] = (),
    ) -> str | None:
        """Where an expression is negative, in words, for these sizes: the first of some blocks and iterations. Only
        the sizes that are named in ``told`` are told; all if it is empty. ``guards`` hold beside it."""
        place = self.place(placed)
        if any(
            isinstance(atom, Var) and atom.name not in known and atom.name not in place.bounds.ranges
            for atom in place.everything(sym)
        ):
            return None
        expanded = place.bounds.expanded(sym)

        def negative(wanted: Container[str] | None) -> Iterator[dict[str, int]]:
            every = self._iterations(place, known, wanted)
            return (values for values in every if (number_of(expanded, values) or 0) < 0)

        found = negative(place.decisive(expanded))
        if guards or place.conditions:  # whether they hold may depend on any loop
            found = negative(None) if next(found, None) is not None else iter(())
        for values in found:
            env = placed.stmt.env
            holds = all(self._holds(node, env, values, place) is taken for node, taken in guards)
            if holds and self._runs(place, values):
                return self.shown(place, values, [n for n in known if not told or n in told], sym)
        return None

    def _runs(self, place: Place, values: Mapping[str, int]) -> bool:
        """The conditions around a statement certainly hold."""
        return all(
            self._holds(branch.cond.node, branch.env, values, place) is taken for branch, taken in place.conditions
        )

    def is_reachable(self, placed: Placed, known: Mapping[str, int]) -> bool:
        """False if a condition on the sizes alone keeps the statement from running."""
        place = self.place(placed)
        return all(
            self._holds(branch.cond.node, branch.env, known, place) in (taken, None)
            for branch, taken in place.conditions
        )

    def calls(self, placed: Placed, values: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
        """Some of the known ways to call the factory, of those that reach a statement."""
        return [known for known in values if self.is_reachable(placed, known)][:_CALLS]

    def shown(self, place: Place, values: Mapping[str, int], sizes: Sequence[str], sym: Sym) -> str:
        """The block and the turn in words, with those of the sizes that an expression depends on."""
        block = self.subject.kernel.cid  # a name of the tool, where it wrote the launch
        texts = [
            f"block {values[name]}" if name == block else f"{name.split('@')[0]}={values[name]}"
            for name in place.bounds.ranges
            if name in values
        ]
        used = {atom.name for atom in place.everything(sym) if isinstance(atom, Var)}
        texts += [f"{name}={values[name]}" for name in sorted(sizes) if name in used]
        return f" ({', '.join(texts)})" if texts else ""

    def _iterations(
        self, place: Place, known: Mapping[str, int], wanted: Container[str] | None = None
    ) -> Iterator[dict[str, int]]:
        """Some blocks, and of every loop the first and the last iterations; loops of unknown length are left open.

        Of loops that are not ``wanted`` the first iteration.
        """
        order = list(place.bounds.ranges)

        def rest(position: int, values: dict[str, int]) -> Iterator[dict[str, int]]:
            if position == len(order):
                yield values
                return
            name = order[position]
            low, high = (number_of(side, values) for side in place.bounds.ranges[name])
            if low is None or high is None:
                yield from rest(position + 1, values)
                return
            if wanted is not None and name not in wanted:
                yield from rest(position + 1, {**values, name: low}) if low <= high else ()
                return
            several = _BLOCKS if position == 0 else 4
            for value in _some(low, high, several):
                yield from rest(position + 1, {**values, name: value})

        yield from rest(0, dict(known))

    def _holds(self, node: cst.BaseExpression, env: Env, values: Mapping[str, int], place: Place) -> bool | None:
        """Whether a condition holds; None if that cannot be told."""
        inner = parts(self.evaluator, node)
        if inner is not None:
            found = [self._holds(part, env, values, place) for part in inner[1]]
            decided = not inner[0]
            return decided if decided in found else None if None in found else inner[0]
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            opposite = self._holds(node.expression, env, values, place)
            return None if opposite is None else not opposite
        value = number_of(place.bounds.expanded(self.evaluator.sym(node, env)), values)
        return None if value is None else bool(value)


def _some(low: int, high: int, count: int) -> list[int]:
    if high - low < count:
        return list(range(low, high + 1))
    half = count // 2
    return [*range(low, low + half), *range(high - half + 1, high + 1)]
