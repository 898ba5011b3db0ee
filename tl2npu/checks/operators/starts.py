"""TL885: tiles that may begin outside of the tensor in global memory.

``src/op/ascend.cc:318-328`` (``compute_valid_extent``) gives a copy the rows and columns of a region that lie in the
tensor: none for a region that begins behind the end, all for one that begins before the start, and it looks at the last
two axes longer than 1 only (330-364). UB takes none for none, but ``copy_gm_to_l1``, ``copy_l0c_to_gm`` and
``atomic_add_l0c_to_gm`` take none for all (``src/tl_templates/ascend/common.h:61-62, 157-158``; for target pto
``src/tl_templates/pto/common.h:240-241, 269-270``): they go on behind the end of the tensor.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import Finding, Placed, Subject, some
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.clamped import CLAMPED, clamped_axes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import CUBE_MEMORY, Copy, Memory, Op, Operand
from tl2npu.kernel.ranges.bounds import Bounds, is_size
from tl2npu.kernel.ranges.loaded import is_load, is_sensible
from tl2npu.kernel.symbolic import Div, Mod, Sym, Var, const, var

_EVEN, _RAGGED, _FEW = 1024, (700, 900, 1000, 701), 8
_TILES = ((64,), (64, 256), (256, 64), (64, 128, 256))
"""Sizes that are tried where nothing is known: of tensors, of anything else, of tiles."""


@dataclass(frozen=True, eq=False)
class Move:
    """A transfer between global memory and the chip: the side in global memory, and the memory on the chip."""

    placed: Placed
    outer: Operand
    inner: Operand


@dataclass(frozen=True, eq=False)
class Doubt:
    """An index that is not known to lie inside of its tensor: ``goal`` is negative where it does not.

    ``last``: that of the last row of several, else that of the first.
    """

    axis: int
    goal: Sym
    behind: bool
    last: bool = False


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every copy from and to global memory; one for each buffer and axis."""
    starts = Starts(subject)
    seen: set[tuple[int, int, bool]] = set()
    for move in moves(subject):
        for doubt in starts.doubts(move):
            key = (id(move.outer.buffer), doubt.axis, doubt.behind)
            found = starts.judge(move, doubt) if key not in seen else None
            if found is not None:
                seen.add(key)
                yield found


@dataclass(frozen=True)
class Planes:
    """The axes of a tensor along which a copy has to be written as several, and those of them that may go on behind the
    end of it. ``cleared``: the tile of a load has to be zero before."""

    axes: frozenset[int]
    ending: frozenset[int]
    cleared: bool


def planes(subject: Subject) -> dict[Copy, Planes]:
    """Copies along more than two axes, of which the compiler moves one plane (TL798); and loads to a tile of several
    planes of one row, that end with their tensor, of which it fills the first plane (``compute_blocklen``)."""
    starts = Starts(subject)
    found: dict[Copy, Planes] = {}
    for move in moves(subject):
        extents, stmt = extents_of(move), move.placed.stmt
        if not isinstance(stmt, Copy):
            continue
        axes, shape = one_by_one(extents), move.inner.buffer.shape
        rows = len(shape) > CLAMPED and shape[-2] == const(1) and any(size != const(1) for size in shape[:-2])
        if not axes and not rows:
            continue
        ends = {axis: starts.end(move, axis) for axis in range(len(extents))}
        doubtful = {axis for axis, end in ends.items() if end is not None and starts.judge(move, end) is not None}
        cleared = bool(doubtful & axes) or (rows and bool(doubtful))
        if axes or cleared:
            found[stmt] = Planes(axes, axes & doubtful, cleared)
    return found


def moves(subject: Subject) -> Iterator[Move]:
    """Every transfer between global memory and the chip."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy):
            sides = [stmt.src, stmt.dst]
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            sides = [operand for name, operand in stmt.operands if name in ("src", "dst")]
        else:
            continue
        outer = [s for s in sides if s.buffer.memory is Memory.GM]
        inner = [s for s in sides if s.buffer.memory is not Memory.GM]
        if len(outer) == len(inner) == 1:
            yield Move(placed, outer[0], inner[0])


class Starts:
    """Where tiles begin, for one kernel."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.sampler = Sampler(subject)
        self._inside: dict[object, bool] = {}

    def doubts(self, move: Move) -> Iterator[Doubt]:
        """Every index of a move that is not proved to lie inside.

        An index that only chooses a head, a sequence, a batch is right for a right kernel: doubtful is what is loaded
        from a tensor and added to, the row of a loop over the rows of a tile, which may be the last one, and a row at a
        fixed distance from the first of a tile.
        """
        place = self.sampler.place(move.placed)
        extents = extents_of(move)
        clamped = clamped_axes(extents)
        turns = {item.var for item in move.placed.ranges}
        for axis, (dim, size) in enumerate(zip(move.outer.dims or (), move.outer.buffer.shape, strict=False)):
            low = place.bounds.expanded(dim.lo + self._of_core(move, axis))
            goals = [(low, False)]
            if axis not in clamped and extents[axis] != const(1) and (end := self.end(move, axis)) is not None:
                yield end
                continue
            if move.inner.buffer.memory in CUBE_MEMORY or axis not in clamped:
                goals.append((size - 1 - low, True))
            for goal, behind in goals if not low.is_zero else ():
                if axis not in clamped and not _is_doubtful(low, turns, place.bounds):
                    continue
                key = (goal, low, tuple(place.bounds.ranges.items()), place.bounds.facts)
                if key not in self._inside:
                    self._inside[key] = place.bounds.is_not_negative(goal) or is_sensible(place.bounds, low, behind)
                if not self._inside[key]:
                    yield Doubt(axis, goal, behind)

    def _of_core(self, move: Move, axis: int) -> Sym:
        """What the compiler adds to a row of a halved tile, in a kernel that asks for the number of the core."""
        dims, rank, core = move.inner.dims, len(move.inner.buffer.shape), self.subject.kernel.core
        if core is None or not self.subject.is_split or not dims or not dims[0].is_point:
            return const(0)
        if axis != len(move.outer.buffer.shape) - rank or not split_of(self.subject).has_rows(move.inner.buffer):
            return const(0)
        return var(core) * (move.inner.buffer.shape[0] // const(2))

    def end(self, move: Move, axis: int) -> Doubt | None:
        """The last row of a region along an axis, if it is not proved to lie inside."""
        place, extent = self.sampler.place(move.placed), extents_of(move)[axis]
        low = move.outer.dims[axis].lo if move.outer.dims else const(0)
        size = move.outer.buffer.shape[axis]
        goal = place.bounds.expanded(size - low - extent)
        if (low.is_zero and extent == size) or place.bounds.is_not_negative(goal):
            return None
        return Doubt(axis, goal, behind=True, last=True)

    def judge(self, move: Move, doubt: Doubt) -> Finding | None:
        """What is said about an index that may lie outside."""
        place = self.sampler.place(move.placed)
        calls = self.sampler.calls(move.placed, some(self.subject.shown))
        if not calls:
            return None
        buffer, node = move.outer.buffer, move.placed.stmt.node
        where = "past the end of" if doubt.behind else "before the start of"
        shown = f"`{code(move.outer.node)}`"
        if any(is_load(atom) for atom in place.everything(doubt.goal)):
            if not doubt.behind:
                return None  # offsets ascend
            text = f"{shown} can start {where} `{buffer.name}`, depending on data: {self._why(move, doubt)}"
            return Finding("TL885", node, text, "warning")
        found = [self.sampler.find(move.placed, doubt.goal, known) for known in calls]
        wrong = [one for one in found if one is not None]
        verb = "reach" if doubt.last else "start"
        text = f"{shown} {verb}{'es' if doubt.last else 's'} {where} `{buffer.name}`"
        if wrong:
            every = len(wrong) == len(found)
            return Finding("TL885", node, f"{text}{wrong[0]}: {self._why(move, doubt)}", None if every else "warning")
        if not doubt.behind:
            return None
        invented = self._invented(move, doubt, calls[0])
        if invented is not None:
            text = f"{shown} can {verb} {where} `{buffer.name}` for sizes that this file does not give"
            return Finding("TL885", node, f"{text}{invented}: {self._why(move, doubt)}", "warning")
        return None

    def _invented(self, move: Move, doubt: Doubt, known: Mapping[str, int]) -> str | None:
        """Where the index lies outside for a tensor that is no multiple of the tiles, but not for one that is."""
        atoms = list(self.sampler.place(move.placed).everything(doubt.goal))
        names = {atom.name for atom in atoms if isinstance(atom, Var) and is_size(atom.name)}
        tiles = {a for atom in atoms if isinstance(atom, (Div, Mod)) for a in _single(atom.den)}
        own = move.outer.buffer.shape[doubt.axis].variables()
        sizes = own - tiles or own
        tiles -= sizes
        ordered = sorted(tiles)
        usual = [known.get(name, _TILES[0][0]) for name in ordered]  # of which other values may be made
        made = [list(itertools.islice(itertools.cycle(choice), len(ordered))) for choice in _TILES]
        for chosen in (usual, *(other for number, other in enumerate(made) if other not in [usual, *made[:number]])):
            values = {name: known.get(name, _FEW) for name in names} | dict(zip(ordered, chosen, strict=True))

            def at(size: int, values: Mapping[str, int] = values) -> str | None:
                sized = {**known, **values, **dict.fromkeys(sizes, size)}
                return self.sampler.find(move.placed, doubt.goal, sized, {*known, *tiles, *sizes})

            if at(_EVEN) is None:
                wrong = next((one for size in _RAGGED if (one := at(size)) is not None), None)
                if wrong is not None:
                    return wrong
        return None

    def _why(self, move: Move, doubt: Doubt) -> str:
        if not doubt.behind:
            return "a copy is clamped only at the end of a tensor"
        if move.inner.buffer.memory in CUBE_MEMORY and not doubt.last:
            done = (
                "store a full tile there"
                if move.inner.buffer.memory is Memory.L0C
                else "load a full tile of other data"
            )
            return f"the NPU would {done}"
        return "a copy is clamped in its last two axes only"


def _single(sym: Sym) -> frozenset[str]:
    """The name that an expression is, if it is one."""
    return sym.variables() if len(sym.terms) == 1 and len(sym.terms[0][0]) == 1 else frozenset()


def _adds(sym: Sym, summands: Container[Sym]) -> bool:
    """True if one of these is a term of a sum."""
    return any(Sym.of({monomial: 1}) in summands for monomial, _ in sym.terms)


def _is_doubtful(low: Sym, turns: Container[Sym], bounds: Bounds) -> bool:
    return any(is_load(atom) for atom in low.atoms()) or _adds(low, turns) or _is_set_off(low, bounds)


def _is_set_off(sym: Sym, bounds: Bounds) -> bool:
    """True for what a block or a loop counts, plus something: the last row of a tile, ``i * rows + rows - 1``."""
    moves = [not Sym.of({monomial: 1}).variables().isdisjoint(bounds.ranges) for monomial, _ in sym.terms]
    return any(moves) and any(step > 0 for (_, step), moving in zip(sym.terms, moves, strict=True) if not moving)


def extents_of(move: Move) -> list[Sym]:
    """How many elements of each axis of its tensor a region has."""
    outer, inner = move.outer, move.inner
    rank = len(outer.buffer.shape)
    if any(dim.extent is not None for dim in outer.dims or ()):
        return [dim.extent if dim.extent is not None else const(1) for dim in outer.dims or ()]
    sizes = list(inner.buffer.shape) if inner.dims is None else [d.extent or const(1) for d in inner.dims]
    return ([const(1)] * rank + sizes)[-rank:]


def one_by_one(extents: list[Sym]) -> frozenset[int]:
    """The axes of a region of which a copy takes the first element only: all longer than 1, but the last two."""
    return frozenset(n for n, extent in enumerate(extents) if extent != const(1)) - clamped_axes(extents)
