"""The inputs of a script's launch, once more with other values: what the script chose says what a kernel can take.

Floats, and integers that are neither indices nor bounds of loops, are drawn. Indices stay in the range that the script
gave them: they are shuffled, or kept where they ascend, as offsets of ragged batches do. Symbolic extents become
primes, and so do whole numbers that are passed when the kernel is launched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import solve, symbols_of
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import PRIMES, Kind, Sizes, far, generator, integers, numbers
from tl2npu.verify.launching import allocate, named
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.meanings import Meanings
from tl2npu.verify.recording import same_memory

Extents = Literal["primes", "one prime for equal ones", "seen"]
Integers = Literal["shuffled", "drawn", "seen"]


@dataclass(frozen=True)
class Variation:
    """What a repeated launch changes beside its floats.

    ``integers``: ``shuffled`` draws those that are no indices, shuffles indices and changes scalars; ``drawn`` leaves
    indices and whole scalars as they were.
    """

    extents: Extents = "seen"
    integers: Integers = "drawn"


class Relaunch:
    """A launch of a script to be repeated: ``inputs`` are its tensors by name, ``scalars`` what else it was given."""

    def __init__(self, compiled: Any, inputs: Arrays, scalars: dict[str, Any], session: Session) -> None:
        self.compiled, self.inputs, self.scalars, self.session = compiled, inputs, scalars, session
        params = compiled.kernel.params
        self.params = params
        made = {params[n].name for n in (*compiled.out_idx, *compiled.workspace_idx)}
        self.given = {p.name: p for p in params if isinstance(p, Buffer) and p.name not in made}
        self.meanings = Meanings(compiled.kernel)
        self.sizes = Sizes.of(compiled.kernel)
        self.shared = same_memory(inputs)
        numbered = {p.number: inputs[p.name] for p in params if isinstance(p, Buffer) and p.name in inputs}
        self.known = {p: scalars[p.name] for p in params if isinstance(p, Var)}
        found = solve(params, numbered, self.known)
        in_shapes = symbols_of([p for p in params if isinstance(p, Buffer)])
        self.symbols = {symbol: int(found[symbol]) for symbol in in_shapes if symbol in found}
        if any(free_strides(p) for p in self.given.values()):
            self.symbols = {}

    @property
    def numbers(self) -> dict[str, Any]:
        """Symbolic extents and scalars by name."""
        return {**{p.name: size for p, size in self.symbols.items()}, **self.scalars}

    def variations(self, kind: Kind) -> Iterator[Variation]:
        """What may be changed for a kind of values: the most first, then what is left where the old kernel fails."""
        integers = [p for p in self.given.values() if not dtypes.is_float(p.dtype)]
        scalars = [p for p in self.known if p not in self.symbols]
        most: Integers = "drawn"
        if kind in PRIMES and (self._shuffled() or any(not dtypes.is_float(p.dtype) for p in scalars)):
            most = "shuffled"
        if self.symbols and kind in PRIMES:
            alike = len({*self.symbols.values()}) < len(self.symbols)
            yield Variation("primes", most)
            if most != "drawn":
                yield Variation("primes", "drawn")
            if alike:
                yield Variation("one prime for equal ones", "drawn")
        if most != "drawn":
            yield Variation("seen", most)
        yield Variation("seen", "drawn")
        if integers or scalars:
            yield Variation("seen", "seen")

    def drawn(self, seed: int, kind: Kind, what: Variation) -> tuple[Arrays, dict[str, Any], dict[str, Any]]:
        """All tensors and scalars of the launch with values of a kind, and what was changed beside them by name.

        Raises what the simulator does where the extents fit no tensor.
        """
        extents = self._extents(kind, what)
        scalars = {p.name: extents.get(p, self._scalar(p, kind, seed, what)) for p in self.known}
        values = {**extents, **{p: scalars[p.name] for p in self.known}}
        arrays = named(self.compiled, allocate(self.compiled, self.session, {}, values))
        for number, (name, param) in enumerate(self.given.items()):
            rng = generator(seed, name, kind)
            if dtypes.is_float(param.dtype):
                sign = far(kind, number)
                arrays[name][...] = numbers(param.dtype, arrays[name].shape, rng, kind, self.sizes, sign, not number)
            else:
                arrays[name][...] = self._integers(param, arrays[name].shape, rng, kind, what)
        for name, first in self.shared.items():
            arrays[name] = arrays[first]
        changed: dict[str, Any] = {p.name: extents[p] for p, value in self.symbols.items() if extents[p] != value}
        changed |= {name: value for name, value in scalars.items() if value != self.scalars[name]}
        if what.integers == "shuffled":
            changed |= dict.fromkeys(self._shuffled(), "shuffled")
        return arrays, scalars, changed

    def _shuffled(self) -> list[str]:
        """The indices that are shuffled."""
        places = [name for name, p in self.given.items() if not dtypes.is_float(p.dtype)]
        return [name for name in places if name in self.meanings.places and not in_order(self.inputs[name])]

    def _extents(self, kind: Kind, what: Variation) -> dict[Var, int]:
        """Primes above what the script gave, and for another kind of values below it."""
        if what.extents == "seen":
            return dict(self.symbols)
        taken: dict[Var, int] = {}
        of: dict[int, int] = {}
        for symbol, size in self.symbols.items():
            if what.extents != "primes" and size in of:
                taken[symbol] = of[size]
                continue
            below = kind != "wide values"
            of[size] = taken[symbol] = prime_beside(size, below, {*taken.values()})
        return taken

    def _scalar(self, param: Var, kind: Kind, seed: int, what: Variation) -> Any:
        value = self.scalars[param.name]
        if what.integers == "seen" or kind not in PRIMES:
            return value
        if what.integers == "drawn" and not dtypes.is_float(param.dtype):
            return value
        number = float(value) if dtypes.is_float(param.dtype) else bool(value) if param.dtype == "bool" else value
        return other_number(number, generator(seed, param.name, kind), kind)

    def _integers(self, param: Buffer, shape: tuple[int, ...], rng: Any, kind: Kind, what: Variation) -> np.ndarray:
        name, seen = param.name, self.inputs[param.name]
        place = name in self.meanings.places
        if what.integers == "seen" or not seen.size:
            return np.resize(seen, shape)
        if not place:
            found, _ = integers(param.dtype, shape, rng, 8, True, kind == "the whole range")
        else:
            found = np.resize(seen, shape)
            if in_order(seen):
                return found
            if what.integers == "shuffled":
                found = rng.permutation(found.reshape(-1)).reshape(shape)
        if name in self.meanings.absent and param.dtype.startswith("int") and kind in PRIMES:
            found[rng.random(shape) < 0.25] = -1
        return found


def free_strides(param: Buffer) -> bool:
    """Whether strides of a tensor are known only when the kernel is launched."""
    return any(not isinstance(stride, int) for stride in param.strides or ())


def other_number(value: Any, rng: np.random.Generator, kind: Kind) -> Any:
    """Another factor in place of a float, a prime or an odd number in place of an integer; negative ones stay."""
    if isinstance(value, float):
        return float(np.float32(value * rng.uniform(0.5, 1.5) if value else 0.5))
    if isinstance(value, bool):
        return not value
    if value in (0, 1):
        return type(value)(not value) if kind == "wide values" else 3
    return value if value < 0 else prime_beside(value, True, set()) if kind == "wide values" else value // 2 | 1


def in_order(seen: np.ndarray) -> bool:
    """Whether indices are in order without being all of a range: offsets, where a part of a batch begins."""
    flat = seen.reshape(-1).astype(np.int64)
    return bool((np.diff(flat) >= 0).all()) and not (flat.size > 1 and np.array_equal(flat, np.arange(flat.size)))


def prime_beside(size: int, below: bool, but: set[int]) -> int:
    """The next prime above a size, or below it, if there is one, that is none of ``but``."""
    found = size
    while True:
        found += -1 if below else 1
        if found < 2:
            found, below = max(size, 1), False
        elif found not in but and all(found % divisor for divisor in range(2, int(found**0.5) + 1)):
            return found
