"""Whether what becomes of a Triton kernel gives its values: both are evaluated on the same tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tl2npu.checks.subject import Subject
from tl2npu.evaluate import host, inputs, sizes
from tl2npu.evaluate.compare import some_blocks
from tl2npu.evaluate.expressions import TOO_MANY
from tl2npu.evaluate.launch import WORK, Launch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import FAILS, Fault, Frame, NotChecked, Tile
from tl2npu.evaluate.verdict import Outcome, verdict
from tl2npu.kernel.model import Memory
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.symbolic import Div, Sym, const, var
from tl2npu.tile import expr
from tl2npu.triton.evaluate.machine import NOISE, Machine, plain
from tl2npu.triton.evaluate.memory import Pointers
from tl2npu.triton.host.torch_names import annotated
from tl2npu.triton.read import values as read
from tl2npu.triton.read.spec import Spec

_MOST_PROGRAMS = 4096
_WORK = WORK // 3
_CANCELS = 1000 * NOISE
"""What noise changes by more of itself has lost three digits."""
_MOST_STEPS = 6
_MOST_GROWN = 3
"""Sizes that are changed one after the other until the host takes them; times that tensors get longer."""
_MOST_ELEMENTS = 1_000_000
_FACTORS = (2, 4, 8, 16, 32, 64)
_ANY = 3
"""What the translation does not ask for may be any number."""
_CUT = 3
"""Elements that a row gets fewer, to end within a tile."""
_WIDEST = 256
_PLAIN = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Outside(Outcome):
    """The Triton kernel accesses more elements of some tensors than they have; ``reached`` says how many."""

    reached: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Compares the Triton kernel of one launch with kernels of TileLang that take its tensors by their names."""

    spec: Spec

    def __call__(self, translation: Subject, subject: Subject) -> Outcome:
        """Evaluate it and ``subject``, which became of its translation, at sizes that the checks of the host let
        through; ``equal`` is None where that cannot be."""
        first = Outcome(None, "no sizes are known that the host lets through")
        for chosen in self._candidates(translation):
            outcome = self._drawn(subject, chosen)
            if outcome.equal:
                ragged = self._ragged(translation, chosen)
                found = self._drawn(subject, ragged) if ragged is not None else outcome
                return outcome if found.equal is None else found
            if outcome.equal is False:
                return outcome
            first = first if first.sizes is not None else outcome
            if outcome.why.endswith(TOO_MANY):
                break  # larger sizes take more
        return first

    def _drawn(self, subject: Subject, chosen: Sizes) -> Outcome:
        """Compare at some sizes; integers that the old kernel cannot take are drawn again, and tensors that are too
        short for what nothing else tells are made longer."""
        first, attempts = None, inputs.ATTEMPTS if self._has_integers else inputs.ATTEMPTS[:2]
        for attempt in attempts:
            outcome = self._at(subject, chosen, attempt)
            longer: Sizes | None = chosen
            for _ in range(_MOST_GROWN):
                if isinstance(outcome, Outside) and longer is not None:
                    longer = self._longer(subject, longer, outcome.reached)
                    outcome = outcome if longer is None else self._at(subject, longer, attempt)
            if outcome.equal is not None or outcome.why.endswith(TOO_MANY):
                return outcome
            first = first or outcome
        assert first is not None
        return first

    @property
    def _has_integers(self) -> bool:
        return any("int" in tensor.dtype for tensor in self.spec.tensors.values())

    def _longer(self, subject: Subject, chosen: Sizes, reached: Mapping[str, int]) -> Sizes | None:
        """Sizes with which tensors have as many elements; None where their shapes have no size of their own."""
        shapes = {name: self.spec.views.get(name, tensor.shape or ()) for name, tensor in self.spec.tensors.items()}
        known = {name: value for name, value in chosen.bound.items() if type(value) is int}
        bound = dict(chosen.bound)
        for tensor, many in reached.items():
            others = [*(part for of, shape in shapes.items() if of != tensor for part in shape), *self.spec.grid]
            taken = {name for part in others for name in part.names}
            names = [name for part in shapes[tensor] for name in sorted(part.names)]
            own = sorted(names, key=lambda name: name in self.spec.values)  # those that the kernel gets may be strides
            own = [name for name in own if name in known.keys() - taken]
            size = math.prod(number_of(part, known) or 1 for part in shapes[tensor])
            if not own or many > _MOST_ELEMENTS:
                return None
            bound[own[0]] = known[own[0]] * -(-many // size)
        return self._fitted(subject, replace(chosen, bound=bound, given=False))

    def _at(self, subject: Subject, chosen: Sizes, attempt: int) -> Outcome:
        """Compare on one draw of values; a tensor of truths has 0 and 1."""
        drawn: dict[str, Any] = {}
        run = None
        try:
            with np.errstate(all="ignore"):
                launch = Launch(subject, chosen, drawn, attempt, work=_WORK)
                truths = {name for name, tensor in self.spec.tensors.items() if tensor.dtype == "bool"} & drawn.keys()
                drawn |= {name: drawn[name] % 2 for name in truths}
                launch = Launch(subject, chosen, drawn, attempt, work=_WORK) if truths else launch
                run = _Run(self.spec, launch, drawn, self._known(launch.around))
                few = some_blocks(run.grid)[0] if run.count == launch.count else run.every
                found = run.compared(few, chosen)
                if found.equal is True or isinstance(found, Outside):
                    return found
                return run.compared(run.every, chosen, thorough=True)
        except Fault as fault:
            is_new = run is not None and run.is_done
            return Outcome(False if is_new else None, str(fault), chosen.bound, fails=is_new)
        except NotChecked as missing:
            of = "the new kernel: " if run is not None and run.is_done else ""
            return Outcome(None, f"{of}{missing}", chosen.bound)
        except FAILS as error:
            return Outcome(None, f"{type(error).__name__} {error}", chosen.bound)

    # sizes ----------------------------------------------------------------------------------------------------------

    def _candidates(self, subject: Subject) -> Iterator[Sizes]:
        """Sizes to compare at: those of other kernels, changed where the host would not take them."""
        for larger in (False, True):
            small, called = sizes.choose(subject.file, subject.located, subject.kernel, larger)
            for chosen in (*small, *([called] if called is not None else [])):
                if (fitted := self._fitted(subject, chosen)) is not None:
                    yield fitted

    def _ragged(self, subject: Subject, chosen: Sizes) -> Sizes | None:
        """Sizes of tensors that end within a tile, and tiles that are as large as those: most masks are for these.
        None where the host takes no such sizes."""
        whole = {name: value for name, value in chosen.bound.items() if type(value) is int}
        shapes = (*self.spec.views.values(), *(tensor.shape or () for tensor in self.spec.tensors.values()))
        data = {name for shape in shapes for extent in shape for name in extent.names}
        tiles = self.spec.constants - self.spec.numbers.keys() - data
        cut = {n: v - _CUT for n, v in whole.items() if n in self._names - self.spec.constants | data and v > 2 * _CUT}
        tile = 1 << (max(whole.values(), default=1) - 1).bit_length()
        wide = {name: tile for name in tiles & whole.keys() if tile <= _WIDEST}
        found = self._fitted(subject, replace(chosen, bound={**chosen.bound, **cut, **wide}, given=False))
        return found if found is not None and found.bound != chosen.bound else None

    def _fitted(self, subject: Subject, chosen: Sizes) -> Sizes | None:
        """The sizes with other numbers, until all holds that the host checks; None where none of these helps."""
        try:
            around = host.surroundings(subject.file, subject.located, chosen.bound, chosen.symbols)
        except NotChecked:
            return None
        known = self._known(around)
        for _ in range(_MOST_STEPS):
            failing = [check for check in self._checks if not check.holds(known)]
            if not failing:
                return chosen
            step = next(self._steps(failing[0], len(failing), known), None)
            if step is None:
                return None
            name, value = step
            chosen = replace(chosen, bound={**chosen.bound, name: value}, given=False)
            known = self._known(around, {name: value for name, value in chosen.bound.items() if type(value) is int})
        return None

    def _steps(self, failing: _Check, count: int, known: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Numbers for a size at which a check holds, and fewer of the others fail than before."""
        for name in sorted(failing.names & known.keys()):
            others = sorted(set(known.values()) - {0})
            for value in (*(known[name] * by for by in _FACTORS), *others, *_PLAIN):
                new = self._known(None, {**known, name: value})
                if failing.holds(new) and sum(not check.holds(new) for check in self._checks) < count:
                    yield name, value

    def _known(self, around: Frame | None, known: Mapping[str, int] | None = None) -> dict[str, int]:
        """The numbers of the names that the launch goes by; ``known`` are some of them."""
        found = dict.fromkeys(self._names, _ANY)
        found |= {name: int(value) for name, value in self.spec.numbers.items() if isinstance(value, int)}
        for name in self._names if around is not None else ():
            value = around.find(name) if around is not None else None
            if isinstance(value, (int, np.integer)):
                found[name] = int(value)
        found |= known or {}
        for name, value in self.spec.known.items():
            if name not in (known or {}) or around is None:
                number = number_of(value, found)
                found |= {} if number is None else {name: number}
        for name, factor in self.spec.multiples.items():
            if name in found:
                found[self.spec.part(name, factor)] = found[name] // factor
        return found

    @cached_property
    def _names(self) -> frozenset[str]:
        values = [value.integer for value in self.spec.values.values() if isinstance(value, read.Tile)]
        shapes = [tensor.shape or () for tensor in self.spec.tensors.values()]
        every = (*values, *self.spec.grid, *(part for shape in (*shapes, *self.spec.views.values()) for part in shape))
        named = {name for value in every if value is not None for name in value.names}
        return frozenset(named | {name for check in self._checks for name in check.names} | self.spec.values.keys())

    @cached_property
    def _checks(self) -> Sequence[_Check]:
        """What the host checks before the launch."""
        spec = self.spec
        found = [_Check("equal", left, right) for left, right in spec.equal]
        found += [_Check("divides", left, right) for left, right in spec.divides]
        found += [_Check("within", left, right) for left, right in spec.within]
        integers = (value.integer for value in spec.values.values() if isinstance(value, read.Tile))
        parts = (atom for value in (*integers, *spec.grid) if value is not None for atom in value.atoms())
        found += [_Check("least", atom.num, atom.den) for atom in parts if isinstance(atom, Div)]
        return [*found, *(_Check("least", var(name), const(number)) for name, number in spec.least.items())]


class _Run:
    """Both kernels, ready to run on the same values. ``is_done``: the Triton kernel has run."""

    def __init__(self, spec: Spec, launch: Launch, drawn: Mapping[str, Any], known: Mapping[str, int]) -> None:
        self.spec, self.launch, self.drawn, self.known = spec, launch, drawn, known
        self.is_done = False
        self.grid = tuple(number(extent, known) for extent in spec.grid)
        self.count = math.prod(self.grid)
        if not 0 < self.count <= _MOST_PROGRAMS:
            raise NotChecked(f"it has {self.count} programs at this size")
        self.every = range(self.count)

    def compared(self, programs: Sequence[int], chosen: Sizes, thorough: bool = False) -> Outcome:
        """Compare behind some programs and the same blocks, or all. ``thorough``: leave out places in which programs
        do not agree, or digits cancel."""
        self.is_done = False
        reached: dict[str, int] = {}
        old = self.old(programs, reached)
        if reached:
            return Outside(None, f"it reaches outside of `{min(reached)}`", chosen.bound, True, reached=reached)
        self.is_done = True
        new = self.launch.run(programs if len(programs) < self.count else range(self.launch.count))
        found = verdict(old, new, self.drawn, chosen.bound)
        if found.equal is not False or not thorough:
            return found
        if verdict(old, self.old(programs[::-1], {}), self.drawn, chosen.bound).equal is False:
            return Outcome(None, "its programs store different values in one place", chosen.bound)
        noisy = self.old(programs, {}, noise=True)
        for name, tensor in old.items():
            if tensor.written and tensor.data.dtype.kind == "f":
                gap = np.abs(noisy[name].data - tensor.data)
                tensor.data = np.where(gap > _CANCELS * np.abs(tensor.data), np.nan, tensor.data)
        return verdict(old, new, self.drawn, chosen.bound)

    def old(self, programs: Sequence[int], reached: dict[str, int], noise: bool = False) -> dict[str, Tile]:
        """What the tensors of the launch are behind these programs of the Triton kernel."""
        tensors = {
            name: Tile(name, tile.dtype, Memory.GM, self.drawn[name].reshape(tile.shape))
            for name, tile in self.launch.tensors.items()
        }
        function = self.spec.function
        args = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        given = _Given(self.spec, self.known, tensors, self.launch.around, self.drawn, reached)
        values = {arg.arg: given.value(self.spec.values[arg.arg], annotated(arg, "constexpr")) for arg in args}
        Machine(self.spec.source, self.grid, _WORK, noise).run(function, values, programs)
        return tensors


@dataclass(frozen=True)
class _Check:
    kind: str
    one: Sym
    other: Sym

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it is about."""
        return frozenset(self.one.names | self.other.names)

    def holds(self, known: Mapping[str, int]) -> bool:
        """Whether it holds; True where a size is not known."""
        one, other = number_of(self.one, known), number_of(self.other, known)
        if one is None or other is None:
            return True
        if self.kind == "divides":
            return other != 0 and one % other == 0
        if self.kind == "least":
            return one >= other
        return one == other if self.kind == "equal" else 0 < one <= other


@dataclass(frozen=True)
class _Given:
    """What a launch passes, as values to compute with."""

    spec: Spec
    known: Mapping[str, int]
    tensors: Mapping[str, Tile]
    around: Frame
    drawn: Mapping[str, Any]
    reached: dict[str, int]

    def value(self, value: read.Value, constant: bool) -> Any:
        """A value that is passed; ``constant``: for a ``tl.constexpr``, which is a number of Python."""
        if isinstance(value, read.Pointer):
            kind = self.spec.tensors[value.param].dtype
            empty = Tile(value.param, "float32", Memory.GM, np.zeros(0))
            tile = self.tensors.get(value.param, empty)
            return Pointers(tile, np.int64(number(value.offset, self.known)), self.reached, kind == "bool")
        if isinstance(value, read.Function):
            return read.Function(value.node, value.source or self.spec.source)
        if isinstance(value, tuple):
            return tuple(self.value(item, constant) for item in value)
        if isinstance(value, read.Tile) and isinstance(value.expr, expr.Opaque):
            name = value.expr.text
            found = self.drawn.get(name, self.around.find(name))
            return self.spec.numbers.get(name) if not isinstance(found, (int, float, np.generic)) else found
        if isinstance(value, read.Tile) and value.integer is not None:
            return self.whole(value.integer, constant)
        return plain(value)

    def whole(self, value: Sym, constant: bool) -> Any:
        """An integer; a float where the host does not say which, and the kernel takes one."""
        name = str(value)
        found: Any = self.drawn[name] if name in self.drawn else self.around.find(name)
        if isinstance(found, (float, np.floating)):
            return found
        size = int(found) if name in self.drawn else number_of(value, self.known)
        if size is None:
            return read.Unusable(f"`{name}` is not known")
        return size if constant else np.int64(size)


def number(value: Sym, known: Mapping[str, int]) -> int:
    """The number that an integer of the host is; raises :class:`NotChecked`."""
    found = number_of(value, known)
    if found is None:
        raise NotChecked(f"the value of `{value}` is not known")
    return found
