"""The 32-byte blocks of UB: what an access asks of its start, its rows and its length.

The templates of ``src/tl_templates/ascend/common.h`` and the pass ``ascend_lower_parallel_to_vector.cc`` hand addresses
and counts to Ascend C as they stand. ``DataCopy`` between two UB tiles drops what is no whole block; a vector
instruction, and either side of ``DataCopyPad`` in UB, needs an address that is a multiple of 32 bytes; ``DataCopyPad``
lays every row of a tile on a block of its own. The page of TL700 has the table.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import libcst as cst

from tl2npu.kernel.factories.assertions import multiples
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.memory.ub_copies import aligned, sides
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Operand, Range, Stmt, walk_with_parents
from tl2npu.kernel.runtime import Late
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Opaque, Sym, const, product, var

BLOCK = 32
"""Bytes."""

_SAMPLES = 4096
_CALLERS = 64
_WRITTEN = "text "
_VERSION = re.compile(r"@[\w.]+")
_SINGLE = re.compile(r"(?<!\w)\((\w+)\)")
What = Literal["start", "rows", "length", "end"]


@dataclass(frozen=True, eq=False)
class Demand:
    """``elements`` of ``dtype`` must be a multiple of ``block`` bytes, in every turn of the loops around.

    ``what``: ``start`` and ``end`` are places in the tile, the end that of a load; ``rows`` is their distance,
    ``length`` what is moved, with ``row`` in one row. There is no demand if ``rows`` is 1, nor if the type of the other
    tile, ``beside``, differs from this one: the copy is a vector instruction then.
    """

    operand: Operand
    what: What
    elements: Sym
    dtype: str
    block: int = BLOCK
    rows: Sym | None = None
    beside: str = ""
    row: bool = False

    def changed(self, elements: Sym) -> Demand:
        """The same of another number of elements."""
        return replace(self, elements=elements)

    def given(self, numbers: Mapping[str, int]) -> Demand:
        """The same where names are known to be multiples of numbers."""
        known = {n: numbers[n] * var(n) for n in self.elements.variables() if n in numbers}
        return self.changed(self.elements.substitute(known)) if known else self


@dataclass(frozen=True)
class Verdict:
    """``holds`` None: not known; it does if every one of ``factors`` is a multiple of its number.

    ``size``: bytes, if it fails. ``bytes`` False: the element type is not known either, the numbers are bytes.
    ``some``: it fails for some of several configurations of one call, such as an autotuner's.
    """

    holds: bool | None
    size: int = 0
    factors: tuple[tuple[Sym, int], ...] = ()
    bytes: bool = True
    some: bool = False


@dataclass(frozen=True, eq=False)
class Judge:
    """Answers demands of one kernel from all that the file says of its sizes."""

    callers: Sequence[Caller]
    late: Late
    multiples: Mapping[str, int]
    grid: tuple[Range, ...]
    around: Mapping[int, tuple[Range, ...]]
    factory: str

    @classmethod
    def of(cls, file: FileKernels, located: Located, kernel: Kernel, callers: Sequence[Caller], late: Late) -> Judge:
        """For a kernel as it stands; ``callers`` are the known ways to call its factory."""
        some = callers[:: -(-len(callers) // _CALLERS)]
        around = {
            id(stmt): tuple(item for loop in (*parents, stmt) if isinstance(loop, Loop) for item in loop.ranges)
            for stmt, parents in walk_with_parents(kernel.body)
        }
        launch, grid = kernel.launch, tuple[Range, ...]()
        if launch is not None and len(launch.grid) == 1 and kernel.cid is not None:
            grid = (Range(kernel.cid, var(kernel.cid), const(0), launch.grid[0], None),)
        name = located.factory.node.name.value if located.factory else ""
        return cls(some, late, multiples(file, located), grid, around, name)

    def judge(self, demand: Demand, stmt: Stmt) -> tuple[Verdict, Caller]:
        """The worst verdict of all known calls, and whose it is."""
        loops = (*self.around.get(id(stmt), ()), *self.grid)
        demand = demand.given(self.multiples)
        found = [(is_aligned(demand, c.values, c.words, loops, self.moves), c) for c in self.callers]
        right = {self._choice(caller) for verdict, caller in found if verdict.holds}
        order = {False: 0, None: 1, True: 2}
        verdict, caller = min(found, key=lambda pair: (order[pair[0].holds], self._choice(pair[1]) in right))
        some = verdict.holds is False and self._choice(caller) in right
        factors = tuple((factor, number * self._known(factor)) for factor, number in verdict.factors)
        return replace(verdict, some=some, factors=factors), caller

    def _known(self, factor: Sym) -> int:
        """What :meth:`Demand.given` has taken out of each of the terms."""
        every = ({str(atom) for atom in monomial} for monomial, _ in factor.terms)
        return math.prod(self.multiples.get(name, 1) for name in set[str].intersection(*every)) if factor.terms else 1

    def _choice(self, caller: Caller) -> int:
        """The same number for all configurations of a tuner, which chooses one of them."""
        node = caller.node
        is_call = type(node) is cst.Call and type(node.func) is cst.Name and node.func.value == self.factory
        return id(node) if is_call else 0

    def moves(self, sym: Sym) -> bool:
        """Whether a value changes from block to block, or in a loop."""
        return self.late.is_late(sym)

    def certain(self, demands: Iterable[Demand], stmt: Stmt) -> bool:
        """False if one of the demands fails for a known call, or is for nobody to promise before the kernel runs."""
        for demand in demands:
            verdict, _ = self.judge(demand, stmt)
            if (verdict.holds is False and not verdict.some) or any(
                self.moves(factor) for factor, _ in verdict.factors
            ):
                return False
        return True


def is_aligned(
    demand: Demand,
    values: Mapping[str, int],
    words: Mapping[str, str],
    around: Sequence[Range],
    moves: Callable[[Sym], bool],
) -> Verdict:
    """Judge a demand where the integers ``values`` and the names of types ``words`` are known.

    ``moves``: whether a value changes from block to block or in a loop.
    """
    if demand.rows is not None and demand.rows.evaluate(values) == 1:
        return Verdict(True)
    if demand.beside and _type(demand.beside, words) != _type(demand.dtype, words):
        return Verdict(True)
    size = ITEM_SIZE.get(_type(demand.dtype, words))
    lanes = demand.block // math.gcd(demand.block, size or 1)
    known = {name: values[name] for name in demand.elements.variables() if name in values}
    count = demand.elements.substitute(known) if known else demand.elements
    rest = Sym.of({monomial: factor % lanes for monomial, factor in count.terms if factor % lanes})
    if rest.is_zero:
        return Verdict(True)
    if rest.constant is not None and size is not None:
        return Verdict(False, (rest.constant if count.constant is None else count.constant) * size)
    found = _over_the_loops(rest, lanes, values, around) if size is not None else None
    if found is not None and size is not None:
        return Verdict(False, found * size) if found else Verdict(True)
    if size is None:
        return Verdict(None, 0, ((count, lanes),), False)
    return Verdict(None, 0, tuple(_factors(rest, lanes, moves)))


def _factors(rest: Sym, lanes: int, moves: Callable[[Sym], bool]) -> Iterator[tuple[Sym, int]]:
    """What is enough: of products with something that changes in the kernel, that the other factor is a multiple."""
    fixed = const(0)
    for monomial, factor in rest.terms:
        term = Sym.of({monomial: factor})
        if not moves(term):
            fixed = fixed + term
            continue
        still = tuple(atom for atom in monomial if not moves(Sym.of({(atom,): 1})))
        yield from _whole(Sym.of({still or monomial: factor}), lanes)
    if not fixed.is_zero:
        yield from _whole(fixed, lanes)


def _whole(rest: Sym, lanes: int) -> Iterator[tuple[Sym, int]]:
    shared = math.gcd(lanes, *(factor for _, factor in rest.terms))
    yield Sym.of({monomial: factor // shared for monomial, factor in rest.terms}), lanes // shared


def _type(name: str, words: Mapping[str, str]) -> str:
    found = words.get(name, name)
    return "float32" if found == "float" else found


def shown(sym: Sym) -> str:
    """An expression as its author wrote it: without the numbers that tell variables of one name apart."""
    found = str(sym)
    for atom in sym.atoms():
        if isinstance(atom, Opaque) and atom.head.startswith(_WRITTEN):
            found = found.replace(atom.text, atom.head.removeprefix(_WRITTEN))
    return _SINGLE.sub(r"\1", _VERSION.sub("", found))


def _over_the_loops(rest: Sym, lanes: int, values: Mapping[str, int], around: Sequence[Range]) -> int | None:
    """What is left over in the first turn in which something is; 0 if nothing ever is; None if that is not known."""
    loops = {str(item.var): item for item in around}
    names = sorted(rest.variables())
    if not names or not all(name in loops for name in names):
        return None
    turns, complete = list[list[int]](), True
    for name in names:
        item = loops[name]
        start, extent = item.start.evaluate(values), item.extent.evaluate(values)
        step = 1 if item.step is None else item.step.evaluate(values)
        if start is None or step is None:
            return None
        complete = complete and ((extent is not None and extent <= lanes) or rest.plain)
        count = min(lanes, 2 if extent is None else max(extent, 0))
        turns.append([start + number * step for number in range(count)])
    if math.prod(map(len, turns)) > _SAMPLES:
        return None
    for chosen in itertools.product(*turns):
        found = rest.evaluate(dict(zip(names, chosen, strict=True)))
        if found is None:
            return None
        if found % lanes:
            return found % lanes
    return 0 if complete else None


def start_of(operand: Operand, zero: Sequence[Range] = ()) -> Sym:
    """The first element of an operand, counted from the start of its tile; loop variables in ``zero`` are 0."""
    offset = const(0)
    for dim, stride in zip(operand.dims or (), _strides(operand.buffer), strict=False):
        offset = offset + dim.lo * stride
    return offset.substitute({str(item.var): 0 for item in zero}) if zero else offset


def _strides(buffer: Buffer) -> list[Sym]:
    found = [const(1)]
    for extent in reversed(buffer.shape[1:]):
        found.insert(0, found[0] * extent)
    return found


def start(operand: Operand, zero: Sequence[Range] = ()) -> Iterator[Demand]:
    """The address of an operand in UB."""
    if operand.dims and operand.buffer.memory is Memory.UB:
        yield Demand(operand, "start", start_of(operand, zero), operand.buffer.dtype)


def rows(operand: Operand, columns: Sym, count: Sym) -> Iterator[Demand]:
    """The distance of rows, where there is more than one."""
    if operand.buffer.memory is Memory.UB and count != const(1):
        yield Demand(operand, "rows", columns, operand.buffer.dtype, rows=count)


def of_part(operand: Operand, loops: Sequence[Range], columns: Sym, count: Sym | None) -> Iterator[Demand]:
    """What elements of a tile ask for that a nest over ``loops`` goes over: by rows (``count``), or as one run."""
    yield from start(operand, loops)
    if count is not None and operand.buffer.memory is Memory.UB:
        yield from rows(operand, operand.buffer.shape[-1], count)
        yield Demand(operand, "length", columns, operand.buffer.dtype, row=True)


def of_copy(copy: Copy) -> Iterator[Demand]:
    """What a copy asks of its sides in UB; nothing where the extents cannot be told."""
    memories = (copy.src.buffer.memory, copy.dst.buffer.memory)
    if memories == (Memory.UB, Memory.UB):
        yield from _inside_of_ub(copy)
    elif Memory.UB in memories:
        tile, other = (copy.src, copy.dst) if memories[0] is Memory.UB else (copy.dst, copy.src)
        yield from start(tile)
        given = extents_of(other) or ()
        extents = extents_of(tile) or aligned(given, tile)
        if given and extents and product(given[:-1]) == const(1) and product(given) == product(extents):
            extents = given  # one burst: the compiler takes rows and columns from the part of the tensor
        if extents:
            yield from rows(tile, extents[-1], product(extents[:-1]))
            if tile is copy.dst and product(extents[:-1]) == const(1):
                yield from _end(tile, extents[-1])


def _end(tile: Operand, columns: Sym) -> Iterator[Demand]:
    """A load fills its last block, also where more of the tile lies in it."""
    end = start_of(tile) + columns
    if tile.dims and end != product(tile.buffer.shape):
        yield Demand(tile, "end", end, tile.buffer.dtype)


def _inside_of_ub(copy: Copy) -> Iterator[Demand]:
    yield from start(copy.src)
    yield from start(copy.dst)
    found = sides(copy)
    if found is None:
        return
    dtype, beside = copy.src.buffer.dtype, copy.dst.buffer.dtype
    if all(side.columns == side.stride for side in found):
        extents = extents_of(copy.dst) or aligned(extents_of(copy.src) or (), copy.dst)
        yield Demand(copy.dst, "length", product(extents), beside, beside=dtype)
        return
    for operand, side in zip((copy.src, copy.dst), found, strict=True):
        yield from rows(operand, side.stride, found[0].rows)
    yield Demand(copy.src, "length", found[0].columns, dtype, beside=beside, row=True)
