"""Sizes at which a kernel is evaluated: as its factory is called, but with few blocks and few turns of loops."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.factories.assertions import multiples
from tl2npu.kernel.factories.callers import Caller, callers_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Copy, Kernel, Loop, Memory
from tl2npu.kernel.runtime import symbols_of
from tl2npu.kernel.symbolic import Div, Mod, Sym, var
from tl2npu.kernel.variables import integers
from tl2npu.source.tree import mentioned, nodes_of

_LARGEST_PERIOD = 4096
_MOST_DOUBLINGS = 3
_FEW = 4
_WHOLE = 128
"""Taps, strides: sizes that are small as they are given stay."""
_LEAST = 8
"""Extents below which nothing is made smaller."""
_TILE = 16
"""Rows of a tile that two cores can share, where no call says how many there are."""
_PLAIN = (int, float, str, bool, tuple, type(None))
_GUESSES: tuple[tuple[str, object], ...] = (
    (r"acc\w*_?(d?type)?$|accum", "float32"),
    (r"d?type", "float16"),
    (r"_list$", (40, 24)),
    (r"^groups?$|group_size", 16),
    (r"kv_?heads|head_?kv", 2),
    (r"dim|hidden", 64),
    (r"eps|scale|alpha|beta|value|theta", 0.5),
    (r"^(is|has|use|with|enable)_|causal|trans|_first$|swizzle|rasteri", False),
    (r"threads", 128),
    (r"stages", 2),
)


@dataclass(frozen=True)
class Sizes:
    """Parameters of the factory, and sizes known at run time by the text in ``T.symbolic``.

    ``given``: a call in the file gives just these; else some sizes are smaller, or nobody gives any.
    """

    bound: Mapping[str, object]
    symbols: Mapping[str, int]
    given: bool


def choose(
    file: FileKernels, located: Located, kernel: Kernel, larger: bool = False
) -> tuple[list[Sizes], Sizes | None]:
    """Sizes to evaluate a kernel at: with smaller tiles, if they are large, with few blocks, and those of a call, None
    where no call gives all sizes.

    ``larger``: tiles have more rows than defaults such as ``groups=1`` give them, where nothing calls the factory.
    """
    caller = max(callers_of(file, located, shapes=True), key=lambda one: len(one.values))
    bound = _switches(file, located)
    bound |= {name: value for name, value in caller.bound.items() if isinstance(value, _PLAIN)}
    is_called = located.factory is None or caller.node is not located.factory.node
    choice = _Choice(file, located, kernel, caller)
    counted = choice.counted
    needed = {name for name in _needed(file, located, counted) if bound.get(name) is None}
    needed |= (caller.bound.keys() - bound.keys()) & counted  # given, but not known
    if larger and not is_called:
        needed |= {n for n, v in bound.items() if type(v) is int and v < _TILE} & choice.in_tiles
    guessed = {name: choice.guess(name) for name in sorted(needed)}
    for name in guessed.keys() & {"heads", "num_heads", "H", "n_heads"}:
        guessed[name] = 2 * int({**caller.values, **guessed}.get("groups", 1))  # type: ignore[call-overload]
    for name, value in guessed.items():
        if type(value) is int and name not in choice.in_tensors | choice.in_tiles:
            guessed[name] = max(value, 2 * choice.period(name, {**caller.values, **guessed}) % _LARGEST_PERIOD)
    symbols = symbols_of(file)
    free = {n for n, v in caller.values.items() if type(v) is int and n in counted} | guessed.keys()
    small = {name: value for name in free if (value := choice.smaller(name, {**caller.values, **guessed})) is not None}
    small = choice.with_turns(small, {**caller.values, **guessed})
    late = {text: choice.late(name, {**caller.values, **guessed}) for name, text in symbols.items()}
    chosen = Sizes({**bound, **guessed, **small}, late, False)
    called = None if guessed or symbols else Sizes(bound, {}, True)
    scaled = choice.scaled(chosen, symbols)
    return [one for one in (scaled, chosen) if one is not None], called


def in_numbers(file: FileKernels, located: Located, kernel: Kernel) -> list[dict[str, int]]:
    """The sizes of :func:`choose` by their names in the kernel."""
    symbols = symbols_of(file)
    return [
        {**_numbers(one.bound), **{name: one.symbols[text] for name, text in symbols.items()}}
        for one in choose(file, located, kernel)[0]
    ]


def switched(kernel: Kernel, chosen: Sizes) -> Sizes | None:
    """The same with the other value of each switch that the kernel names; None if it names none."""
    named = {name.value for name in nodes_of(kernel.node.body, cst.Name) if isinstance(name, cst.Name)}
    other = {name: not value for name, value in chosen.bound.items() if isinstance(value, bool) and name in named}
    return Sizes({**chosen.bound, **other}, chosen.symbols, False) if other else None


def in_whole_tiles(kernel: Kernel, chosen: Sizes) -> Sizes:
    """The same with longer tensors, in which no tile ends behind one."""
    shapes = [(buffer.memory is Memory.GM, size) for buffer in kernel.buffers.values() for size in buffer.shape]
    in_tiles = {name for in_global, size in shapes if not in_global for name in size.names}
    long = {name for in_global, size in shapes if in_global for name in size.names} - in_tiles
    bound = {n: _up(v) if n in long and type(v) is int and v > _FEW else v for n, v in chosen.bound.items()}
    return Sizes(bound, {text: _up(value) for text, value in chosen.symbols.items()}, False)


def _up(size: int) -> int:
    return -(-size // _WHOLE) * _WHOLE


def _needed(file: FileKernels, located: Located, counted: Set[str]) -> list[str]:
    """Parameters of the functions around the kernel that have no default, or None where a size is needed."""
    found = []
    for param in _params(file, located):
        none = isinstance(param.default, cst.Name) and param.default.value == "None"
        if param.default is None or (none and param.name.value in counted):
            found.append(param.name.value)
    return found


def _switches(file: FileKernels, located: Located) -> dict[str, object]:
    """Parameters of the functions around the kernel that are True or False if nobody says so."""
    found: dict[str, object] = {}
    for param in _params(file, located):
        if isinstance(param.default, cst.Name) and param.default.value in ("True", "False"):
            found[param.name.value] = param.default.value == "True"
    return found


def _params(file: FileKernels, located: Located) -> Iterator[cst.Param]:
    """Parameters of the functions around the kernel, innermost first."""
    for node in file.index.ancestors(located.node):
        if isinstance(node, cst.FunctionDef):
            yield from (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)


def _has_term(sym: Sym, name: str) -> bool:
    """Whether a multiple of the name alone is a term of a sum."""
    return any(len(monomial) == 1 and monomial[0].names == {name} for monomial, _ in sym.terms)


def _divisor(sym: Sym, name: str, known: Mapping[str, int]) -> int:
    """What a size is divided by in a quotient that is divided again: ``split`` of ``K // split // block``."""
    inner = [atom for monomial, _ in sym.terms for atom in monomial if isinstance(atom, Div) and len(monomial) == 1]
    by = [atom.den.evaluate(known) or 1 for atom in inner if _has_term(atom.num, name)]
    return math.lcm(*(one for one in by if one > 0))


def _numbers(values: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in values.items() if isinstance(value, int)}


class _Choice:
    """What is known of the sizes of one kernel."""

    def __init__(self, file: FileKernels, located: Located, kernel: Kernel, caller: Caller) -> None:
        self.kernel = kernel
        self.caller = caller
        self.multiples = multiples(file, located)
        buffers = kernel.buffers.values()
        self.in_tensors = frozenset(n for b in buffers if b.memory is Memory.GM for s in b.shape for n in s.names)
        self.in_tiles = frozenset(n for b in buffers if b.memory is not Memory.GM for s in b.shape for n in s.names)
        self.grid = grid = kernel.launch.grid if kernel.launch is not None else ()
        parts = [atom for value in (*self._integers(), *grid) for atom in value.atoms() if isinstance(atom, (Div, Mod))]
        divisors = {name for atom in parts for name in atom.den.names}
        self.in_grid = frozenset(n for extent in grid for n in extent.names) - divisors
        self.rows = frozenset(n for b in buffers if b.memory is Memory.GM for s in b.shape[-1:] for n in s.names)
        loops = [stmt for stmt in kernel.walk() if isinstance(stmt, Loop) and stmt.kind != "parallel"]
        self.turns = [item.extent for loop in loops for item in loop.ranges]
        threads = kernel.launch.threads if kernel.launch is not None else None
        fixed = divisors | (mentioned(threads.node) if threads is not None else set())
        self.in_loops = frozenset(name for extent in self.turns for name in extent.names) - fixed
        self.integers = list(self._integers())
        self.counted = self.in_tensors | self.in_tiles | {name for value in self.integers for name in value.names}

    def _integers(self) -> Iterator[Sym]:
        for buffer in self.kernel.buffers.values():
            yield from buffer.shape
        yield from self.kernel.launch.grid if self.kernel.launch is not None else ()
        for stmt in self.kernel.walk():
            yield from integers(stmt)

    def guess(self, name: str) -> object:
        """A value for a parameter that no call gives."""
        for pattern, value in _GUESSES:
            if re.search(pattern, name, re.IGNORECASE) and not (isinstance(value, float) and name in self.counted):
                return value
        if name in self.in_tiles:
            return 64 if name in self.in_tensors else 32
        return 8 if name in self.in_tensors - self.in_grid else 2

    def period(self, name: str, values: Mapping[str, object]) -> int:
        """What a size is divided by: with the same remainder it has the same tails."""
        known = _numbers(values)
        found, given = self.multiples.get(name, 1), known.get(name, 0)
        for value in self.integers:
            for atom in value.atoms():
                if isinstance(atom, (Div, Mod)) and name in atom.num.names and name not in atom.den.names:
                    by = atom.den.evaluate(known)
                    changing = {n for n in atom.den.names & (self.in_tensors - self.in_tiles) if known.get(n, 0) > _FEW}
                    if by is None or by <= 0 or changing:
                        continue
                    if _has_term(atom.num, name):
                        found = math.lcm(found, by)
                    elif (inner := _divisor(atom.num, name, known)) > 1:
                        found = math.lcm(found, by * inner)
                    elif name in self.rows:
                        found = math.lcm(found, math.gcd(given, by))
        return found

    def smaller(self, name: str, values: Mapping[str, object]) -> int | None:
        """The smallest size with the tails of the given one and two blocks; None where the size stays."""
        given, period = values.get(name), self.period(name, values)
        guessed = name not in self.caller.values
        if name not in (self.in_tensors | self.in_grid | self.in_loops) - self.in_tiles or type(given) is not int:
            return None
        if period > _LARGEST_PERIOD or (1 < given <= _FEW and not guessed):
            return None
        found = self.least(name, period, 0 if guessed else given % period, values)
        if guessed:
            found += max(0, -(-(given - found) // period)) * period
        return found if guessed or found < given or given < 2 else None

    def late(self, name: str, values: Mapping[str, object]) -> int:
        """A size that only a launch knows: a tile and a part of one."""
        if name in values and isinstance(values[name], int):
            return int(values[name])  # type: ignore[call-overload,no-any-return]
        period = self.period(name, values)
        part = max(self._parts(name, _numbers(values)), default=1)
        if period == 1 < part <= _LARGEST_PERIOD and name not in self.multiples:
            return part + part // 2 + 1
        ragged = 1 < period <= _LARGEST_PERIOD and name not in self.multiples
        return self.least(name, period, period // 2 + 1 if ragged else 0, values)

    def least(self, name: str, period: int, rest: int, values: Mapping[str, object]) -> int:
        """The smallest size with this remainder and two blocks, as long as two tiles that are copied from it."""
        known = _numbers(values)
        least = 2 * max((part for part in self._parts(name, known)), default=0)
        found = 2 * period if rest == 0 else period + rest
        return found + max(0, -(-(least - found) // period)) * period

    def with_turns(self, small: dict[str, int], values: Mapping[str, object]) -> dict[str, int]:
        """The sizes, larger where a loop in order would not turn, or once only and more often with those given."""
        known = _numbers(values)
        small = dict(small)
        for extent in self.turns:
            for _ in range(_MOST_DOUBLINGS):
                turns, given = extent.evaluate({**known, **small}), extent.evaluate(known)
                if turns not in (0, 1) or turns == given:
                    break
                for name in sorted(extent.names & small.keys()):
                    period = self.period(name, values)
                    grown = small[name] + period * max(1, small[name] // period)
                    small[name] = grown if name not in self.caller.values else min(grown, max(known[name], small[name]))
        return small

    def scaled(self, chosen: Sizes, symbols: Mapping[str, str]) -> Sizes | None:
        """Tiles, and tensors with them, that are smaller by one factor; None where they are small."""
        counted = {n: v for n, v in chosen.bound.items() if type(v) is int and v > _FEW and n in self.counted}
        late = {t: v for n, t in symbols.items() if n in self.counted and (v := chosen.symbols[t]) > _FEW}
        factor = 1 << max((min((*counted.values(), *late.values()), default=0) // _LEAST).bit_length() - 1, 0)
        if factor == 1:
            return None
        bound = {name: value // factor for name, value in counted.items()}
        late = {text: value // factor for text, value in late.items()}
        found = Sizes({**chosen.bound, **bound}, {**chosen.symbols, **late}, False)
        return found if self._has_as_many(found, chosen, symbols) else None

    def _has_as_many(self, found: Sizes, chosen: Sizes, symbols: Mapping[str, str]) -> bool:
        """Whether what there were two of, blocks, turns of loops or quotients, there still are two of."""
        after, before = (
            {**_numbers(one.bound), **{name: one.symbols[text] for name, text in symbols.items()}}
            for one in (found, chosen)
        )
        quotients = {atom for value in self.integers for atom in value.atoms() if isinstance(atom, Div)}
        extents = [*self.turns, *self.grid, *(atom.num // atom.den for atom in quotients)]
        known = [(one.evaluate(before), one.evaluate(after)) for one in extents if one.names <= before.keys()]
        return all(many is not None and (many < 2 or (left or 0) > 1) for many, left in known)

    def _parts(self, name: str, known: Mapping[str, int]) -> Iterator[int]:
        """Extents of parts that copies take along an axis of this size."""
        for stmt in self.kernel.walk():
            sides = (stmt.src, stmt.dst) if isinstance(stmt, Copy) else ()
            for side, other in zip(sides, reversed(sides), strict=True):
                sizes, dims = side.buffer.shape, side.dims or ()
                for axis, dim in enumerate(dims):
                    if axis >= len(sizes) or sizes[axis] != var(name):
                        continue
                    back = len(sizes) - axis
                    whole = other.dims is None and back <= len(other.buffer.shape) and side.is_indexed
                    extent = dim.extent if dim.extent is not None else other.buffer.shape[-back] if whole else None
                    yield (extent.evaluate(known) if extent is not None else None) or 1
