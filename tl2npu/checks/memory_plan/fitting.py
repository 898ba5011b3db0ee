"""TL801: do the tiles fit, for every known way to call the factory; and which tiles would.

The sizes of tiles are arguments of most factories, and a kernel is right for all that fit. So a call whose tiles do not
fit stops no migration where an argument would help: it gets a finding that names the largest tiles that fit for
certain. That is an error where the compiler will reject the call, whoever wrote the kernel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import libcst as cst

from tl2npu.checks.memory_plan.capacity import HUGE, Needs, Overflow
from tl2npu.checks.memory_plan.scratch import scratch_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.placement import Fit
from tl2npu.kernel.factories.callers import Caller, Values
from tl2npu.kernel.factories.tunings import named_lists
from tl2npu.kernel.model import Buffer, Op
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.tree import argument, calls_in, nodes_of, walk

_SMALLEST = 16
_PARAMETERS = 5
_USUAL = (16, 32, 64, 128)
_CAPS = tuple(1 << shift for shift in range(8, HUGE.bit_length()))
_LONG, _OTHERS = (512, 2048), 64
_TYPES = ("float16", "float32")


@dataclass(frozen=True, eq=False)
class Excess:
    """A caller whose tiles do not fit, and the largest sizes that would (None: no size does)."""

    caller: Caller
    overflow: Overflow
    fit: Values | None

    @property
    def is_certain(self) -> bool:
        """True if the compiler rejects it for certain."""
        return self.overflow.fit is Fit.NEVER


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each caller, or each memory, that asks for too much; warnings for a target that is not named.

    Where the kernel names no target the compiler takes the first of ``subject.targets``; users can ask for the other.
    """
    yield from _found(subject).of_calls


def check_open_sizes(subject: Subject) -> Iterator[Finding]:
    """One finding where no call asks for too much, and one with usual sizes would."""
    yield from _found(subject).of_open_sizes


@dataclass(frozen=True, eq=False)
class _Found:
    of_calls: tuple[Finding, ...] = ()
    of_open_sizes: tuple[Finding, ...] = ()


def _found(subject: Subject) -> _Found:
    """What is said of the calls, or else of the sizes that they leave open, for the first target with a finding."""
    found = subject.kept.get(_Found)
    if not isinstance(found, _Found):
        found = subject.kept[_Found] = _of_first_target(subject)
    return found


def _of_first_target(subject: Subject) -> _Found:
    for target in subject.targets:
        if target != subject.target and not _needs_other_tiles(subject, target):
            continue
        needs = Needs.of_subject(subject, target)
        calls = tuple(_of_calls(subject, needs))
        found = calls or tuple(_unproved(subject, needs))
        if target != subject.target:
            found = tuple(
                replace(
                    f, message=f"for target {target}: {f.message}", severity="warning", repair=(), as_it_stands=None
                )
                for f in found
            )
        if found:
            return _Found(found) if calls else _Found((), found)
    return _Found()


def _needs_other_tiles(subject: Subject, target: str) -> bool:
    """Whether a target may need more than the kernel's own: for instructions, or for columns that it keeps together."""
    ops = [placed.stmt for placed in subject.statements if isinstance(placed.stmt, Op)]
    if subject.compiler.tiles_columns and any(op.op.kind is Kind.GEMM for op in ops):
        return True
    return any(list(scratch_of(op, target)) != list(scratch_of(op, subject.target)) for op in ops)


def _of_calls(subject: Subject, needs: Needs) -> Iterator[Finding]:
    found: list[tuple[Caller, list[Overflow]]] = []
    for caller in subject.callers:
        overflows = needs.of(caller)
        if overflows:
            found.append((caller, overflows))
    if not found:
        return
    excesses = [Excess(caller, _worst(list_), None) for caller, list_ in found]
    first = {id(e.caller.node): e for e in reversed(excesses)}
    excesses = [
        Excess(e.caller, e.overflow, largest(subject, needs, e.caller)) if first[id(e.caller.node)] is e else e
        for e in excesses
    ]
    only = len(found) == len(subject.callers) and not any(e.caller.takes_options for e in excesses)
    if only and all(e.fit is None and e.is_certain for e in excesses):
        for overflow in {(o.memory, id(o.node)): o for _, list_ in reversed(found) for o in reversed(list_)}.values():
            yield Finding("TL801", overflow.node, str(overflow))
        return
    none_left = len(found) == len(subject.callers) and all(e.is_certain for e in excesses)
    for place in dict.fromkeys(id(e.caller.node) for e in excesses):
        yield _warning(subject, needs, [e for e in excesses if id(e.caller.node) == place], none_left)


def _unproved(subject: Subject, needs: Needs) -> Iterator[Finding]:
    """TL720: sizes and element types that nobody in the file gives, and that are usual, might not fit."""
    for caller in needs.that_differ():
        trial = _first_unfit(subject, needs, caller)
        if trial is None:
            if (row := next(_limits(subject, needs, caller), None)) is not None:
                text = f"nothing limits `{row.name}`; the tiles do not fit in {row.overflow.memory} above {row}"
                yield Finding("TL720", subject.kernel.launched.call, text)
                return
            continue
        held = "do not fit in" if trial.overflow.fit is Fit.NEVER else "may not fit in"
        text = f"no call in this file sets {trial.open}; with {trial.sizes} the tiles {held} {trial.overflow.memory}"
        text += f"; up to {trial.fits} fits" if trial.fits else ""
        yield Finding("TL720", subject.kernel.launched.call, text)
        return


@dataclass(frozen=True)
class _Trial:
    """Usual ``sizes`` for what is ``open``, that overflow a memory; ``fits``: the largest that does not, 0 if none."""

    open: str
    sizes: str
    overflow: Overflow
    fits: int


def _first_unfit(subject: Subject, needs: Needs, caller: Caller) -> _Trial | None:
    """The first of the usual sizes, and of the usual types, with which not everything fits for certain."""
    names, types = needs.unknown(caller.values, caller.words), needs.untyped(caller.values, caller.words)
    own = [name for name in (*names, *types) if name.isidentifier() and not subject.file.names.resolve(cst.Name(name))]
    shown = ", ".join(f"`{name}`" for name in own[:_PARAMETERS]) or "the tile sizes"
    trial = next((one for one in _trials(subject, needs, caller) if one[1]), None)
    if trial is None:
        return None
    given, overflows, values, words = trial
    high = max(values.values(), default=0)

    def overflow(size: int) -> object:
        sizes = {name: size if value == high else value for name, value in values.items()}
        return needs.of_sizes({**caller.values, **sizes}, words)

    return _Trial(shown, given, _worst(overflows), _largest_below(high, overflow))


def _largest_below(high: int, overflow: Callable[[int], object], low: int = 0) -> int:
    """The largest size below one that overflows, in steps of 16; ``low`` fits, or is 0."""
    while high - low >= 2 * _STEP:  # else there is no step between them
        middle = (low + high) // 2 // _STEP * _STEP
        low, high = (low, middle) if overflow(middle) else (middle, high)
    return low


def _trials(
    subject: Subject, needs: Needs, caller: Caller
) -> Iterator[tuple[str, list[Overflow], Values, Mapping[str, str]]]:
    """Usual sizes and types for what a caller leaves open, in words; what overflows; the sizes, and all types."""
    names, types = needs.unknown(caller.values, caller.words), needs.untyped(caller.values, caller.words)
    if not names and not types:
        return
    tensors = {str(extent) for buffer in subject.kernel.params for extent in buffer.shape}
    for word in _TYPES if types else ("",):
        words = {**caller.words, **dict.fromkeys(types, word)}
        usual = (*_USUAL, *(_CAPS if needs.capped(caller.values, words) else ()))
        trials = [(f"{size} each", dict.fromkeys(names, size)) for size in usual if names]
        for name, size in itertools.product([name for name in names if name in tensors], _LONG):
            rest = f" and {_OTHERS} for each other size" if len(names) > 1 else ""
            trials.append((f"`{name}` = {size}{rest}", {**dict.fromkeys(names, _OTHERS), name: size}))
        for sizes, values in trials or [("", {})]:
            overflows = needs.of_sizes({**caller.values, **values}, words)
            yield " and ".join(filter(None, (sizes, f"`{word}`" if word else ""))), overflows, values, words


def shortage(subject: Subject, only: frozenset[str] | None = None) -> tuple[int, float]:
    """How many calls ask for tiles that do not fit for certain, and how often a tile has to be halved until they do.

    Where sizes are open, the usual ones are calls of their own. Bytes do not count: who has to choose other tiles
    chooses among the usual ones. ``only``: the names of the tiles that count.
    """
    key = shortage, only
    if key not in subject.kept:
        needs = Needs.of_subject(subject)
        needs = needs if only is None else needs.of_only(only)
        misfits = [caller for caller in subject.callers if needs.of(caller)]
        trials = sum(bool(o) for caller in subject.callers for _, o, *_ in _trials(subject, needs, caller))
        alike: dict[object, list[Caller]] = {}  # a tuner has many that differ in threads or stages only
        for caller in misfits:
            alike.setdefault(needs.told(caller.values, caller.words), []).append(caller)
        halved = sum(len(same) * _halved(subject, needs, same[0]) for same in alike.values())
        subject.kept[key] = len(misfits) + trials, halved
    return cast(tuple[int, float], subject.kept[key])


def is_overfull(subject: Subject) -> bool:
    """Whether a known call asks for tiles that do not fit."""
    needs = Needs.of_subject(subject)
    return any(needs.of(caller) for caller in subject.callers)


def _halved(subject: Subject, needs: Needs, caller: Caller) -> float:
    """How often a tile of a caller is halved until all fit; infinitely often, if none does."""
    fit, tiles = largest(subject, needs, caller), tile_parameters(subject, caller)
    return sum(math.log2(caller.values[name] / fit[name]) for name in tiles) if fit is not None else math.inf


def _warning(subject: Subject, needs: Needs, excesses: Sequence[Excess], none_left: bool) -> Finding:
    """What is said about one call, or one set of configurations; ``none_left``: the compiler rejects all there are."""
    caller, fit = excesses[0].caller, excesses[0].fit
    tiles = tile_parameters(subject, caller)
    same = [other for other in subject.callers if other.node is caller.node]
    text = str(excesses[0].overflow)
    if tiles:
        text += f" with {_listed(caller.values, tiles)}"
    if fit is not None:
        text += f"; {_listed(fit, tiles)} is the largest that fits"
    if len(same) > 1:
        some = "" if all(e.is_certain for e in excesses) else " or may not fit"
        text = f"{len(excesses)} of {len(same)} configurations do not fit{some}: {text}"
    known = isinstance(caller.node, cst.Call) or bool(subject.options.calls)
    rejected = known and len(excesses) == len(same) and all(e.is_certain for e in excesses)
    rejected = none_left if caller.is_tuned else rejected
    edits = _repair(subject, needs, same, fit, tiles) if fit is not None else ()
    return Finding("TL801", caller.node, text, "warning", edits, "error" if rejected else None)


def _worst(overflows: Sequence[Overflow]) -> Overflow:
    return next((overflow for overflow in overflows if overflow.fit is Fit.NEVER), overflows[0])


def _listed(values: Values, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in names)


def tile_parameters(subject: Subject, caller: Caller) -> tuple[str, ...]:
    """Parameters of the factory that size tiles, and no tensor: those that may be chosen."""
    factory = subject.located.factory
    if factory is None:
        return ()
    params = (*factory.node.params.posonly_params, *factory.node.params.params, *factory.node.params.kwonly_params)
    found: list[str] = []
    sized, unsized = _extents(subject)
    for name in (param.name.value for param in params):
        value = caller.values.get(name)
        if value is None or isinstance(caller.bound.get(name), bool) or value < 2 * _SMALLEST:
            continue
        changed = caller.changed(factory.node, {name: value // 2})
        of_tensors = name in unsized.names or unsized.differ(caller.values, changed)
        if not of_tensors and sized.differ(caller.values, changed):
            found.append(name)
    return tuple(found[:_PARAMETERS])


@dataclass(frozen=True)
class _Extents:
    """Some extents of a kernel, with the variables in them."""

    syms: tuple[Sym, ...]
    names: frozenset[str]

    @classmethod
    def of(cls, buffers: Iterable[Buffer]) -> _Extents:
        syms = dict.fromkeys(extent for buffer in buffers for extent in buffer.shape)
        return cls(tuple(syms), frozenset(name for sym in syms for name in sym.variables()))

    def differ(self, values: Values, others: Values) -> bool:
        """Whether one of them is another number with other values."""
        if all(values.get(name) == others.get(name) for name in self.names):
            return False
        return any(sym.evaluate(values) != sym.evaluate(others) for sym in self.syms)


def _extents(subject: Subject) -> tuple[_Extents, _Extents]:
    """Those of the tiles, and those of tensors."""
    if _Extents not in subject.kept:
        buffers = subject.kernel.buffers.values()
        parts = ([b for b in buffers if b.is_tile], [b for b in buffers if not b.is_tile])
        subject.kept[_Extents] = tuple(_Extents.of(part) for part in parts)
    return cast(tuple[_Extents, _Extents], subject.kept[_Extents])


def largest(subject: Subject, needs: Needs, caller: Caller) -> Values | None:
    """The largest tiles, each at most what it is and halved some times, that fit; with all integers that follow."""
    factory = subject.located.factory
    tiles = tile_parameters(subject, caller)
    if factory is None or not tiles:
        return None
    sizes = [_halvings(caller.values[name]) for name in tiles]
    for chosen in sorted(itertools.product(*sizes), key=_preference):
        values = caller.changed(factory.node, dict(zip(tiles, chosen, strict=True)))
        if not needs.of_sizes(values, caller.words):
            return values
    return None


def _preference(sizes: Sequence[int]) -> tuple[int, int]:
    """Large tiles first, and square ones before long ones."""
    return -math.prod(sizes), max(sizes) - min(sizes)


def _halvings(value: int) -> list[int]:
    found = [value]
    while found[-1] % 2 == 0 and found[-1] // 2 >= _SMALLEST and found[-1] // 2 % _SMALLEST == 0:
        found.append(found[-1] // 2)
    return found


# Where the sizes of tiles are written: the edits of ``--unsafe``.

Repair = tuple[tuple[cst.CSTNode, str | None], ...]


def _repair(subject: Subject, needs: Needs, callers: Sequence[Caller], fit: Values, tiles: Sequence[str]) -> Repair:
    """The numbers to write in place of those of one caller, or the values that a configuration should leave out.

    Empty if a number is not written out where it is given.
    """
    place = callers[0].node
    factory = subject.located.factory
    assert factory is not None
    wanted = {name: fit[name] for name in tiles if fit[name] != callers[0].values.get(name)}
    if isinstance(place, cst.FunctionDef) and place is not factory.node:
        return _fewer(needs, place, callers, tiles)
    found: list[tuple[cst.CSTNode, str | None]] = []
    for name, value in wanted.items():
        node = _written(place, factory.node, name)
        if not isinstance(node, cst.Integer):
            return ()
        found.append((node, str(value)))
    return tuple(found)


def _written(place: cst.CSTNode, factory: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """The expression that gives a parameter its value: in the call, in the configuration, or its default."""
    positional = (*factory.params.posonly_params, *factory.params.params)
    if isinstance(place, cst.Dict):
        for element in place.elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            if isinstance(key, cst.SimpleString) and key.evaluated_value == name:
                return element.value
    if isinstance(place, cst.Call):
        at = next((number for number, param in enumerate(positional) if param.name.value == name), None)
        given = argument(place, name, at)
        if given is not None:
            return given
    return next((p.default for p in (*positional, *factory.params.kwonly_params) if p.name.value == name), None)


def _fewer(needs: Needs, place: cst.FunctionDef, callers: Sequence[Caller], tiles: Sequence[str]) -> Repair:
    """Values to take out of the lists of an autotuner until every combination fits; the costliest first."""
    left = list(callers)
    dropped: list[tuple[str, int]] = []
    while True:
        bad = [c for c in left if needs.of(c)]
        if not bad:
            break
        choices = [
            (sum(c.values.get(name) == value for c in bad), value, name)
            for name in tiles
            for value in {c.values[name] for c in bad if name in c.values}
            if len({c.values.get(name) for c in left}) > 1
        ]
        if not choices:
            return ()
        _, value, name = max(choices)
        dropped.append((name, value))
        left = [c for c in left if c.values.get(name) != value]
    found: list[tuple[cst.CSTNode, str | None]] = []
    for node in walk(place.body):
        for name, values in named_lists(node):
            for element in values.elements:
                number = element.value
                if isinstance(number, cst.Integer) and (name, int(number.value)) in dropped:
                    found.append((element, None))
    return tuple(found) if len(found) == len(dropped) else ()


# TL720: the longest rows that fit, where a tile has whole rows of a tensor and nothing says how long they are.
#
# Norms and softmaxes are such kernels; they run on rows of 4,096 to 16,384 elements.

_LENGTHS = (4096, 8192, 16_384)
_SHORT, _STEP, _OTHER_SIZES = 2048, 16, 64


@dataclass(frozen=True)
class Limit:
    """The largest size that may fit, in steps of 16 or, as a power of two, of its double.

    A little less can be too much: the compiler's planner leaves gaps between tiles.
    """

    name: str
    size: int
    overflow: Overflow
    others: bool

    def __str__(self) -> str:
        rest = f", with {_OTHER_SIZES} for each other size" if self.others else ""
        return f"`{self.name}` = {self.size:,}{rest}"


def _limits(subject: Subject, needs: Needs, caller: Caller) -> Iterator[Limit]:
    """For each length of a row that a caller leaves open, from which on it does not fit, if such rows are usual."""
    names = needs.unknown(caller.values, caller.words)
    rounded = _rounded_up(subject, names)
    for name in (name for name in names if name in _row_lengths(subject) | rounded):

        def overflow(size: int, name: str = name) -> Overflow | None:
            sizes = {**caller.values, **dict.fromkeys(names, _OTHER_SIZES), name: size}
            if not subject.takes(sizes):
                return None  # the launch takes another number of threads
            return next(needs.overflows(sizes, caller.words), None)

        lengths = (length for length in _LENGTHS if overflow(length) is not None)
        if all(size is not None and overflow(size) is None for size in (values.get(name) for values in subject.shown)):
            continue
        if overflow(_SHORT) is not None or (high := next(lengths, None)) is None:
            continue
        low, found = high // 2, overflow(high)
        if name not in rounded:
            low = _largest_below(high, overflow, low)
        assert found is not None
        yield Limit(name, low, found, len(names) > 1)


def _row_lengths(subject: Subject) -> frozenset[str]:
    """Sizes that are lengths of rows of tensors."""
    return frozenset(str(buffer.shape[-1]) for buffer in subject.kernel.params if buffer.shape)


def _rounded_up(subject: Subject, names: tuple[str, ...]) -> frozenset[str]:
    """Parameters of the factory for which a call in the file passes a size, rounded up to a power of two."""
    factory = subject.located.factory
    if factory is None:
        return frozenset()
    found: set[str] = set()
    for call in calls_in(subject.file.index.module):
        if isinstance(call.func, cst.Name) and call.func.value == factory.node.name.value:
            for arg in call.args:
                inner = [c for c in nodes_of(arg, cst.Call) if subject.file.names.resolve(c.func) == _ROUNDED]
                if arg.keyword is not None and arg.keyword.value in names and inner:
                    found.add(arg.keyword.value)
    return frozenset(found)


_ROUNDED = "tilelang.next_power_of_2"
