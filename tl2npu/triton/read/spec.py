"""What the host says of one launch, and what the reader decided about its tensors on the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.triton.read.values import Shape, Tile, Value


class Again(Exception):
    """The kernel has to be read again: something new is known of its tensors or sizes."""


@dataclass(frozen=True)
class Tensor:
    """A tensor argument: its row-major shape, None where the host does not say, and its element type."""

    shape: Shape | None
    dtype: str

    @property
    def held(self) -> str:
        """The element type in the kernel: the compiler takes no tensors of bool, the launch passes their bytes."""
        return "uint8" if self.dtype == "bool" else self.dtype


@dataclass(frozen=True)
class Source:
    """The file around a kernel: its device functions, constants, and what its names mean.

    ``elsewhere``: the device functions that it imports, each with the module around it. ``unset``: by device functions,
    the environment variables that must not be set for them.
    """

    functions: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, Value]
    aliases: Mapping[str, str]
    elsewhere: Mapping[str, tuple[ast.FunctionDef, Source]] = field(default_factory=dict)
    unset: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Spec:
    """A launch. ``values``: parameter -> what it is; ``tensors``: pointer parameter -> what it points to.

    ``names``: sizes that the host may be asked to compare, ``equal`` what it must check to be equal, ``divides`` pairs
    ``(n, b)`` of which it must check that ``b`` divides ``n``; ``views``: how the kernel sees each tensor, by how many
    of the possible views did not fit; ``strict``: tensors of which every element that is read counts; ``pinned``:
    parameters that are read as the number that the launch passes; ``doubtful``: parameters of which the host does not
    say whether they are tensors; ``assumed``: tensors whose element type nothing shows, ``kin``: by these,
    the tensor of the host whose type they have, ``multiplied``: those of them in products; ``sure``: sizes that are at
    least 1; ``least``: other numbers, and what the host must check that they are at least; ``calls``: the sizes, as far
    as they are known, in each call of the launching function that the file shows; ``copied``, ``filled`` and
    ``turned``: allocations of memory on the chip that are read by copy because they are written again, begin as 0, and
    lie transposed; ``multiples``: sizes that are read as a number times :meth:`part`; ``parts``: masks that end at a
    size cut tiles off there; ``within``: pairs ``(n, b)`` of which the host must check that ``n`` is 1 to ``b``;
    ``least_rows``: tensors that may have more rows than the kernel reaches, for all that is known;
    ``extrema``: lines where NaN in the data decides what a maximum or minimum is; ``narrow``: integers that the host
    must check to fit into 32 bits; ``flat``: tensors that are one axis of memory, read and written row by row;
    ``stale``: the shape of a tensor became known while it was read; ``alike``: extents that the host gave one name, one
    after the other; ``proofs``: those of the ranges; ``unset``: device functions with the environment variables that
    must not be set for them; ``split``: places of the ``if`` statements whose branches both go on to the end.
    """

    function: ast.FunctionDef
    source: Source
    values: dict[str, Value]
    tensors: dict[str, Tensor]
    grid: tuple[Sym, ...]
    names: frozenset[str]
    numbers: dict[str, Value] = field(default_factory=dict)
    equal: list[tuple[Sym, Sym]] = field(default_factory=list)
    divides: list[tuple[Sym, Sym]] = field(default_factory=list)
    known: dict[str, Sym] = field(default_factory=dict)
    views: dict[str, Shape] = field(default_factory=dict)
    failed: set[tuple[str, Shape]] = field(default_factory=set)
    strict: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    assumed: list[str] = field(default_factory=list)
    kin: dict[str, str] = field(default_factory=dict)
    multiplied: set[str] = field(default_factory=set)
    sure: frozenset[str] = frozenset()
    flat: frozenset[str] = frozenset()
    least: dict[str, int] = field(default_factory=dict)
    calls: tuple[Mapping[str, int], ...] = ()
    copied: set[tuple[int, int]] = field(default_factory=set)
    filled: set[tuple[int, int]] = field(default_factory=set)
    turned: set[tuple[int, int]] = field(default_factory=set)
    multiples: dict[str, int] = field(default_factory=dict)
    parts: bool = False
    stale: bool = False
    within: list[tuple[Sym, Sym]] = field(default_factory=list)
    least_rows: set[str] = field(default_factory=set)
    extrema: set[int] = field(default_factory=set)
    narrow: set[Sym] = field(default_factory=set)
    alike: list[tuple[Sym, Sym]] = field(default_factory=list)
    proofs: dict[object, tuple[bool, frozenset[str]]] = field(default_factory=dict)
    unset: set[tuple[str, str]] = field(default_factory=set)
    split: set[tuple[int, int]] = field(default_factory=set)

    @property
    def constants(self) -> set[str]:
        """The names of sizes that are passed for a ``tl.constexpr``."""
        args = self.function.args
        names = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs) if arg.annotation}
        values = [value.integer for name, value in self.values.items() if name in names and isinstance(value, Tile)]
        return {name.partition("/")[0] for value in values if value is not None for name in value.names}

    def passed_alike(self, names: set[str]) -> set[str]:
        """The sizes with one number in every call that the file shows: they are that now, and the host checks it."""
        found = set()
        for name in sorted(names & self.names - self.pinned):
            shown = {call.get(name) for call in self.calls}
            number = next(iter(shown)) if len(shown) == 1 else None
            if number is not None:
                self.numbers[name] = number
                self.equal.append((var(name), const(number)))
                found.add(name)
        return found

    @staticmethod
    def part(name: str, number: int) -> str:
        """The variable that stands for a size divided by a number that divides it."""
        return f"{name}/{number}"

    def number(self, size: Sym) -> int | None:
        """A size as the number that the launch passes, if it does."""
        return size.substitute({name: n for name, n in self.numbers.items() if isinstance(n, int)}).constant

    def sizes(self) -> set[str]:
        """Numbers that are at least 1 where a block runs: sizes of tensors, and what the grid is computed from."""
        shapes = [tensor.shape or () for tensor in self.tensors.values()]
        found = set(self.sure)
        for extent in (part for shape in (*shapes, *self.views.values(), self.grid) for part in shape):
            if len(extent.terms) == 1:
                found |= extent.names
        return found | {name for name, number in self.numbers.items() if _is_size(number)}

    def smallest(self) -> dict[str, int]:
        """The smallest integers that the file shows, by name."""
        shown = [{name: n for name, n in self.numbers.items() if isinstance(n, int)}, *self.calls]
        return {name: min(values[name] for values in shown if name in values) for values in shown for name in values}

    def relations(self, one: Sym, other: Sym, tuned: bool = False) -> Iterator[tuple[int, int]]:
        """The two sizes in each call that shows both; ``tuned``: with the numbers that are passed for constants."""
        constants = self.constants if tuned else set()
        passed = {name: n for name, n in self.numbers.items() if isinstance(n, int) and name in constants}
        for values in self.calls:
            left, right = number_of(one, {**passed, **values}), number_of(other, {**passed, **values})
            if left is not None and right is not None:
                yield left, right


def _is_size(number: Value) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0
