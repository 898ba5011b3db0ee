"""Whether two kernels give the same values: an old one and what became of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tl2npu.checks.subject import Subject
from tl2npu.evaluate import fitting, inputs, sizes
from tl2npu.evaluate.expressions import TOO_MANY
from tl2npu.evaluate.host import Unfit
from tl2npu.evaluate.launch import WORK, Launch
from tl2npu.evaluate.machine import LEAST_BLOCKS
from tl2npu.evaluate.npuir import UNCLAMPED
from tl2npu.evaluate.parting import parting
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import FAILS, Fault, NotChecked
from tl2npu.evaluate.verdict import Outcome, Parting, verdict
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.positions import output_positions
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import Memory

_SOME = 16
"""Of many blocks, where a few store nothing."""
_CORNERS = ((1, 0, 1), (0, 1, 1), (1, 1, 0), (0, 0, 0))
_ENOUGH = (30_000, 300_000, WORK // 4)
"""Work of the old kernel: where its blocks are long, three tell as much as more; the new one may take more."""
_OLD, _NEW = "the old kernel", "the new kernel"


def compared(old: Subject, new: Subject) -> Outcome:
    """Evaluate both on the same values, drawn at random, and compare every tensor.

    A difference at sizes that no call gives counts if there is one at those of a call, or no call gives any.
    """
    small, called = sizes.choose(old.file, old.located, old.kernel)
    outcome = Outcome(None)
    for chosen in small:
        outcome = _switched(old, new, chosen)
        if outcome.equal or outcome.why.endswith(TOO_MANY):  # larger sizes take more
            return outcome
    if outcome.unfit and (fitted := fitting.fitted(old.file, old.located, small[0])) is not None:
        outcome = _switched(old, new, fitted)
    if outcome.why.endswith(UNCLAMPED):
        outcome = _switched(old, new, sizes.in_whole_tiles(old.kernel, chosen))
    if outcome.equal is None:
        larger = sizes.choose(old.file, old.located, old.kernel, larger=True)[0][-1]
        outcome = _switched(old, new, larger) if larger not in small else outcome
    if called is not None and (outcome.unfit or outcome.equal is False):
        found = _switched(old, new, called)
        if found.equal is None and outcome.equal is False:
            if found.why.endswith(UNCLAMPED):
                return outcome
            return Outcome(None, f"they differ at small sizes, and at those of a call {found.why}")
        outcome = found
    return outcome


def _switched(old: Subject, new: Subject, chosen: Sizes) -> Outcome:
    """Compare at some sizes, and with the other value of each switch that a Python ``if`` of the kernel asks for."""
    outcome, other = _drawn(old, new, chosen), sizes.switched(old.kernel, chosen)
    if outcome.equal is False or outcome.unfit or other is None or outcome.why.endswith(TOO_MANY):
        return outcome
    found = _drawn(old, new, other)
    return found if found.equal is False or (outcome.equal is None and outcome.why.startswith(_OLD)) else outcome


def _drawn(old: Subject, new: Subject, chosen: Sizes) -> Outcome:
    """Compare a few blocks of the grid, and more where these tell nothing; integers that the old kernel cannot take are
    drawn again."""
    has_integers = any(b.memory is Memory.GM and b.dtype.startswith(("i", "T.int")) for b in old.kernel.params)
    attempts = inputs.ATTEMPTS if has_integers else inputs.ATTEMPTS[:2]
    pairs = [_Pair(old, new, chosen, attempt) for attempt in attempts]
    outcome = Outcome(None)
    for much in range(int(has_integers), 3):  # what tables say is another thing for each block
        for pair in pairs:
            if pair.attempt == inputs.PLAIN and not outcome.is_little:
                continue  # it is not floats that the old kernel cannot take
            if pair.is_done:
                continue
            outcome = pair.compared(much)
            if outcome.equal is not None or not outcome.why.startswith(_OLD):
                break
        if outcome.equal is not None:
            return outcome
        if not outcome.is_little:
            break
    return pair.compared(0) if has_integers and outcome.why.endswith(TOO_MANY) else outcome


class _Pair:
    """Both kernels on the same drawn values."""

    def __init__(self, old: Subject, new: Subject, chosen: Sizes, attempt: int) -> None:
        self.subjects, self.chosen, self.attempt = (old, new), chosen, attempt
        self.drawn: dict[str, Any] = {}
        self.label = _OLD

    @cached_property
    def old(self) -> Launch:
        self.label = _OLD
        return Launch(self.subjects[0], self.chosen, self.drawn, self.attempt, self._lost, self._work)

    @cached_property
    def new(self) -> Launch:
        self.label = _NEW
        return Launch(self.subjects[1], self.chosen, self.drawn, self.attempt, work=self._work)

    @property
    def _work(self) -> int:
        """A kernel that is written anew deserves more than one that keeps its lines."""
        return WORK if self.subjects[0].kernel.dialect == "gpu" else WORK // 3

    @cached_property
    def _lost(self) -> frozenset[str]:
        """Tensors that only the old kernel has, reads back and does not return: workspaces."""
        old, new = self.subjects
        params = [*old.located.node.params.posonly_params, *old.located.node.params.params]
        try:
            kept = {params[place].name.value for place in output_positions(old.file, old.located)}
        except Blocked:
            return frozenset()
        kept |= {buffer.name for buffer in new.kernel.params}
        return frozenset(tensor.name for tensor, entry in traffic(old.kernel).items() if entry.exchanged) - kept

    @property
    def is_done(self) -> bool:
        """Whether all blocks were run."""
        return "old" in self.__dict__ and len(self.old.done) == self.old.count

    def compared(self, much: int) -> Outcome:
        """Compare what blocks store: a few, some or all, and always all where they differ."""
        bound = self.chosen.bound
        try:
            with np.errstate(all="ignore"):
                every = range(self.old.count), range(self.new.count)
                some = some_blocks(self.old.grid)[much]
                if self.old.count != self.new.count:
                    found = self._verdict(*every)
                else:
                    found = self._verdict(some, None, _ENOUGH[much])
                    if found.equal is False and len(self.old.done) < self.old.count:
                        found = self._verdict(*every)
                if found.equal is False and not self._leaves:
                    self._must_be_definite()
                    return replace(found, parting=self._parting(some))
                return replace(found, equal=None, why=self._leaves, behind=True) if found.equal is False else found
        except Fault as fault:
            if self.label == _NEW and self._leaves:
                return Outcome(None, self._leaves, bound, behind=True)
            if self.label == _NEW:
                return Outcome(False, f"{fault}", bound, fails=True)
            return Outcome(None, f"{self.label}: {fault}", bound)
        except NotChecked as missing:
            return Outcome(None, f"{self.label}: {missing}", bound, isinstance(missing, Unfit))
        except FAILS as error:
            return Outcome(None, f"{self.label}: {type(error).__name__} {error}", bound)

    @property
    def _leaves(self) -> str:
        """A tensor behind which the old kernel reads single elements: numbers that tables draw can lead there."""
        name = next((name for name, tensor in self.old.tensors.items() if tensor.left), None)
        return "" if name is None else f"{_OLD}: an element outside of `{name}` is read"

    def _verdict(self, mine: Sequence[int], theirs: Sequence[int] | None, enough: int = WORK) -> Outcome:
        """Compare after these blocks; ``theirs`` are those of the new kernel, None for what the old one has done."""
        self.label = _OLD
        values = self.old.run(mine, enough=enough)
        self.label = _NEW
        blocks = self.old.done if theirs is None else theirs
        return verdict(values, self.new.run(blocks[::-1]), self.drawn, self.chosen.bound)

    def _must_be_definite(self) -> None:
        """Raises :class:`NotChecked` for an old kernel that has other values where its blocks run backwards."""
        self.label, blocks = _OLD, range(self.old.count)
        values = self.old.run(blocks)
        again = self.old.run(blocks[::-1], watched=True)
        if verdict(values, again, self.drawn, self.chosen.bound).equal is False:
            raise NotChecked("its blocks store different values in one place")


    def _parting(self, blocks: Sequence[int]) -> Parting | None:
        """Where the values part in the first block that is wrong by itself."""
        if self.old.is_crew or self.new.is_crew:
            return None  # its cores store in no order
        for block in blocks if self.old.count == self.new.count else ():
            if self._verdict([block], None).equal is False:
                return parting(self.old, self.new, block)
        return None


def some_blocks(grid: Sequence[int]) -> Sequence[Sequence[int]]:
    """Numbers of a few blocks at the ends of a grid, such that any two axes are at each pair of their ends, and inside
    of long axes; then of some all over the grid, and of all."""
    long = [axis for axis, extent in enumerate(grid) if extent > 1]
    count, steps = math.prod(grid), [math.prod(grid[:axis]) for axis in long]
    corners = [[(grid[axis] - 1) * ends[n % 3] for n, axis in enumerate(long)] for ends in _CORNERS]
    inside = [[max(grid[axis] // 2 - before, 0) for axis in long] for before in (0, 1)] if max(grid) > 2 else []
    few = list(dict.fromkeys(sum(map(operator.mul, place, steps)) for place in (*corners, *inside)))
    spread = range(count - 1, -1, -(count // _SOME or 1))
    rest = range(count) if len(few) * 2 > count else few[LEAST_BLOCKS:]
    first = sorted(few[:LEAST_BLOCKS])
    return [[*first, *sorted(set(rest) - set(first))], spread, range(count)]
