"""TL221, TL223, TL799, TL842, TL885: parts of a tensor that no block of a launch loads or stores, by mistake.

For the sizes of a known call, what all blocks, vector cores and turns of the loops copy is written down, axis by axis.
What is left out is a fault where it goes with ``vid``, where the kernel stored it, where a copy begins outside of the
tensor instead, and in a tensor that a call makes and returns: the runtime gives it no values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.subject import Finding, Placed, Subject, some
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.positions import compilations, indices
from tl2npu.kernel.handover import Region, region
from tl2npu.kernel.model import CUBE_MEMORY, Access, Buffer, Copy, Memory, Op, Operand, Stmt
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.symbolic import Div, Mod, const
from tl2npu.results import Severity

_TURNS, _CORNERS, _CALLS = 2048, 512, 3
"""So many turns are looked at, along one axis and along all together, for so many calls."""
_TILE, _SIZE = 64, 512
"""Of tiles and of other sizes where no call gives them."""
_INDEX = "correct the index, or what the block index in it is multiplied by"
_Box = tuple[tuple[int, int], ...]
_Spans = dict[tuple[int, int], dict[str, int]]
"""First element and the one behind the last, each with the numbers of a block and turn."""


@dataclass(frozen=True, eq=False)
class _Part:
    """What one access takes of a tensor; ``inner`` is the other side of a copy."""

    placed: Placed
    operand: Operand
    region: Region
    inner: Operand | None


def check(subject: Subject) -> Iterator[Finding]:
    """The first part that is left out of each tensor, by its loads and by its stores."""
    loads: dict[Buffer, list[_Part]] = {}
    stores: dict[Buffer, list[_Part]] = {}
    unclear: set[Buffer] = set()
    for placed in subject.statements:
        for access in accesses(placed.stmt):
            tensor = access.operand.buffer
            part = _part(placed, access) if tensor.memory is Memory.GM else None
            if part is None or len(part.region) != len(tensor.shape):
                unclear.add(tensor)
                continue
            for parts, wanted in ((loads, access.reads), (stores, access.writes)):
                if wanted:
                    parts.setdefault(tensor, []).append(part)
    judge = _Judge(subject, loads, stores)
    for tensor in subject.kernel.params:
        if tensor not in unclear:
            yield from judge.stored(tensor)
            yield from list(judge.loaded(tensor)) or judge.beside(tensor)


def _part(placed: Placed, access: Access) -> _Part | None:
    stmt, operand = placed.stmt, access.operand
    other = _other(stmt, operand)
    if other is not None:
        return _Part(placed, operand, region(operand, other), other)
    if operand.dims is not None and not access.element and any(dim.extent is None for dim in operand.dims):
        return None  # of an operator, from here on
    return _Part(placed, operand, region(operand, operand), None)


def _other(stmt: Stmt, operand: Operand) -> Operand | None:
    if isinstance(stmt, Copy):
        return stmt.src if operand is stmt.dst else stmt.dst if operand is stmt.src else None
    given = dict(stmt.operands) if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC else {}
    return given.get("src") if operand is given.get("dst") else None


@dataclass(frozen=True, eq=False)
class _Left:
    """An axis of a tensor of which something is left out: ``gaps`` by these accesses, in a call with these sizes."""

    axis: int
    size: int
    known: Mapping[str, int]
    spans: Mapping[_Part, _Spans]
    gaps: Sequence[tuple[int, int]]

    @property
    def is_between(self) -> bool:
        """Whether something behind it is touched."""
        return self.gaps[0][1] < self.size

    def __str__(self) -> str:
        first, end = self.gaps[0]
        one = f"element {first}" if end == first + 1 else f"elements {first} to {end - 1}"
        return f"{one} of {self.size} on axis {self.axis} of `{next(iter(self.spans)).operand.buffer.name}`"


class _Judge:
    """What is left out in one kernel."""

    def __init__(
        self, subject: Subject, loads: Mapping[Buffer, list[_Part]], stores: Mapping[Buffer, list[_Part]]
    ) -> None:
        self.subject, self.sampler = subject, Sampler(subject)
        self.loads, self.stores = loads, stores
        self.is_gpu = subject.kernel.dialect == "gpu"
        self.vid = None if self.is_gpu else subject.kernel.vid
        self.returned = _returned(subject)
        self.cores = {name for name in (subject.kernel.cid, subject.kernel.vid) if name is not None}
        every = [part for parts in stores.values() for part in parts]
        self.splits = any(self._moves(part, axis) for part in every for axis in range(len(part.region)))
        self.calls = [(known, self._invented(known)) for known in some(subject.shown)[:_CALLS]]

    def stored(self, tensor: Buffer) -> Iterator[Finding]:
        """What no store reaches."""
        for left in self._left_out(tensor, self.stores.get(tensor, ())):
            outside, part = self._outside(left, "store"), self._by_vid(left)
            if part is not None and (outside or left.is_between):
                yield self._finding("TL221", part, f"with this vid offset no store reaches {left}", left)
            elif outside is not None:
                yield outside
            elif tensor in self.returned and not self.is_gpu:
                last = list(left.spans)[-1]
                yield self._finding("TL799", last, f"no store reaches {left}", left, help=self._in_block(last, left))
            else:
                continue
            return
        if tensor in self.returned and tensor in self.stores and not self.is_gpu and len(tensor.shape) > 1:
            yield from self._corner(tensor, self.stores[tensor])

    def loaded(self, tensor: Buffer) -> Iterator[Finding]:
        """What no load reaches."""
        for left in self._left_out(tensor, self.loads.get(tensor, ())):
            first, outside, part = next(iter(left.spans)), self._outside(left, "load"), self._by_vid(left)
            if part is not None and (outside or left.is_between):
                yield self._finding("TL221", part, f"with this vid offset no load reaches {left}", left, "warning")
            elif outside is not None:
                yield outside
            elif self.splits and self._is_stored(tensor, left):
                yield self._finding("TL842", first, f"no load reaches {left}, which the kernel stores", left)
            elif self.splits and left.is_between and not any(self._moves(one, left.axis) for one in left.spans):
                text = f"both vector cores load the same elements: no load reaches {left}"
                yield self._finding("TL223", first, text, left, "warning", "add the vid offset of the store")
            else:
                continue
            return

    def beside(self, tensor: Buffer) -> Iterator[Finding]:
        """A load by block and vector core alone that begins behind its tensor, where the same core stores inside of
        another one."""
        for part, axis in ((part, axis) for part in self.loads.get(tensor, ()) for axis in range(len(tensor.shape))):
            known, more = self.calls[0]
            size, own = number_of(tensor.shape[axis], known), self.sampler.place(part.placed).bounds
            names = own.expanded(part.region[axis][0]).names - known.keys()
            if more or size is None or part.placed.conditions or not names <= self.cores or self._is_cube(part):
                continue
            for (first, end), values in (self._spans(part, axis, known) or {}).items():
                if first >= size and end > first and self._stores_inside(values, known):
                    where = self.sampler.shown(self.sampler.place(part.placed), values, (), const(0))
                    text = f"`{code(part.operand.node)}` starts past the end of `{tensor.name}`{where}"
                    left = _Left(axis, size, known, {}, ())
                    yield self._finding(
                        "TL885", part, f"{text}, and what is stored there is not loaded", left, "warning", help=_INDEX
                    )
                    return

    def _stores_inside(self, values: Mapping[str, int], known: Mapping[str, int]) -> bool:
        """Whether all that a block stores, in the first turn of its loops, lies in its tensor."""
        here = {name: value for name, value in values.items() if name in self.cores}
        for tensor, parts in self.stores.items():
            for part, axis in ((part, axis) for part in parts for axis in range(len(tensor.shape))):
                place = self.sampler.place(part.placed)
                turn = {**known, **here}
                for name, (low, _) in place.bounds.ranges.items():
                    turn.setdefault(name, number_of(low, turn) or 0)
                start, size = number_of(place.bounds.expanded(part.region[axis][0]), turn), number_of(
                    tensor.shape[axis], turn
                )
                if start is None or size is None or start >= size or part.placed.conditions:
                    return False
        return bool(self.stores)

    def _is_cube(self, part: _Part) -> bool:
        """Whether another check says where such a copy begins, or it is none."""
        return part.inner is None or (part.inner.buffer.memory in CUBE_MEMORY and not self.is_gpu)

    def _left_out(self, tensor: Buffer, parts: Sequence[_Part]) -> Iterator[_Left]:
        """Each axis and call; with invented sizes only where the halves of the vector cores do not meet."""
        for axis, extent in enumerate(tensor.shape) if parts else ():
            for given, more in self.calls:
                known = {**more, **given}
                size = number_of(extent, known)
                found = [(part, self._spans(part, axis, known)) for part in parts if size is not None]
                spans = {part: one for part, one in found if one is not None}
                if size is None or len(spans) < len(parts):
                    continue
                gaps = _gaps(spans, size)
                left = _Left(axis, size, known, spans, gaps)
                if gaps and (not more or (left.is_between and self._by_vid(left))):
                    yield left

    def _invented(self, known: Mapping[str, int]) -> Mapping[str, int]:
        """Usual sizes where a call gives none: what is divided by is a tile."""
        every = [part for parts in (*self.loads.values(), *self.stores.values()) for part in parts]
        syms = [s for part in every for pair in part.region for s in pair]
        syms += [s for part in every for s in (*part.operand.buffer.shape, *self.subject.kernel.launched.grid)]
        syms += [s for part in every for pair in self.sampler.place(part.placed).bounds.ranges.values() for s in pair]
        tiles = {name for s in syms for atom in s.atoms() if isinstance(atom, (Div, Mod)) for name in atom.den.names}
        sizes = {name for s in syms for name in s.names if "@" not in name and name not in known}
        return {name: _TILE if name in tiles else _SIZE for name in sizes}

    def _spans(self, part: _Part, axis: int, known: Mapping[str, int]) -> _Spans | None:
        """What an access takes of an axis, in all blocks and turns; None where that is not known."""
        found = self._boxes(part, (axis,), known)
        return {box[0]: values for box, values in found.items()} if found else None

    def _boxes(self, part: _Part, axes: Sequence[int], known: Mapping[str, int]) -> dict[_Box, dict[str, int]] | None:
        """The first element and the one behind the last along these axes, in all blocks and turns."""
        expanded = self.sampler.place(part.placed).bounds.expanded
        pairs = [tuple(expanded(sym) for sym in part.region[axis]) for axis in axes]
        found: dict[_Box, dict[str, int]] = {}
        turns = self._turns(part, axes, known) or ()
        for values in turns if len(axes) == 1 or len(turns) <= _CORNERS else ():
            box = [(number_of(low, values), number_of(extent, values)) for low, extent in pairs]
            known_box = tuple((first, first + count) for first, count in box if first is not None and count is not None)
            if len(known_box) < len(box):
                return None
            found.setdefault(known_box, values)
        return found

    def _turns(self, part: _Part, axes: Sequence[int], known: Mapping[str, int]) -> list[dict[str, int]] | None:
        """The numbers of all blocks and turns on which the place along these axes depends; None if not known."""
        place, launch = self.sampler.place(part.placed), self.subject.kernel.launched
        ranges = dict(place.bounds.ranges)
        if len(launch.grid) > 1:  # of a GPU: the second name is that of the second axis
            names = (self.subject.kernel.cid, self.subject.kernel.vid)
            ranges |= {n: (const(0), end - 1) for n, end in zip(names, launch.grid, strict=False) if n is not None}
        steps = {str(item.var): item.step for item in place.loops if item.step is not None}
        needed = {name for axis in axes for sym in part.region[axis] for name in place.bounds.expanded(sym).names}
        while more := {n for name in needed & ranges.keys() for side in ranges[name] for n in side.names} - needed:
            needed |= more
        turns: list[dict[str, int]] = [dict(known)]
        for name in (name for name in ranges if name in needed):
            following: list[dict[str, int]] = []
            for values in turns:
                first, last = (number_of(side, values) for side in ranges[name])
                step = number_of(steps.get(name, const(1)), values)
                if first is None or last is None or not step or step < 0 or len(following) > _TURNS:
                    return None
                following += [{**values, name: n} for n in range(first, min(last, first + _TURNS * step) + 1, step)]
            turns = following
        return turns if len(turns) <= _TURNS else None

    def _corner(self, tensor: Buffer, parts: Sequence[_Part]) -> Iterator[Finding]:
        """A part that no store reaches although each axis is reached to its end: blocks that store the same tile."""
        axes = range(len(tensor.shape))
        for known in (given for given, more in self.calls if not more):
            if not any(self._go_together(part, axes) for part in parts):
                return
            sizes = [size for extent in tensor.shape if (size := number_of(extent, known)) is not None]
            made = [found for part in parts if (found := self._boxes(part, axes, known))]
            if len(sizes) < len(axes) or len(made) < len(parts):
                continue
            boxes = {box for one in made for box in one}
            hole = _hole(sizes, boxes)
            if hole is not None:
                at = ", ".join(f"{first}:{end}" for first, end in hole)
                left = _Left(0, 0, known, {}, ())
                count = sum(len(self._turns(part, axes, known) or ()) for part in parts)
                text = f"no store reaches `{tensor.name}[{at}]`"
                text += f": {count} stores go to {len(boxes)} different places" if count > len(boxes) else ""
                yield self._finding("TL799", parts[-1], text, left, help=_INDEX)
                return

    def _go_together(self, part: _Part, axes: Sequence[int]) -> bool:
        """Whether one number moves an access along two axes; otherwise it comes to every corner."""
        expanded = self.sampler.place(part.placed).bounds.expanded
        names = [
            expanded(part.region[axis][0]).names & self.sampler.place(part.placed).bounds.ranges.keys() for axis in axes
        ]
        return sum(map(len, names)) > len(frozenset[str]().union(*names))

    def _moves(self, part: _Part, axis: int) -> bool:
        """Whether the vector core chooses the place."""
        place = self.sampler.place(part.placed)
        return self.vid is not None and self.vid in place.bounds.expanded(part.region[axis][0]).names

    def _by_vid(self, left: _Left) -> _Part | None:
        """An access of which the second vector core does not begin where the first one ends."""
        for part, found in left.spans.items():
            low, extent = (self.sampler.place(part.placed).bounds.expanded(sym) for sym in part.region[left.axis])
            values = next(iter(found.values()))
            first, second = (number_of(low, {**values, str(self.vid): core}) for core in (0, 1))
            count = number_of(extent, {**values, str(self.vid): 0})
            if self._moves(part, left.axis) and (first or 0) + (count or 0) != second:
                return part
        return None

    def _outside(self, left: _Left, what: str) -> Finding | None:
        """A copy that certainly runs and begins behind its tensor, where no other check says so."""
        for part, found in left.spans.items():
            wrong = next((v for (first, end), v in found.items() if first >= left.size and end > first), None)
            if wrong is not None and not self._is_cube(part) and not part.placed.conditions:
                where = self.sampler.shown(self.sampler.place(part.placed), wrong, (), const(0))
                text = f"`{code(part.operand.node)}` starts past the end of `{part.operand.buffer.name}`{where}"
                return self._finding("TL885", part, f"{text}, and no {what} reaches {left}", left, help=_INDEX)
        return None

    def _in_block(self, part: _Part, left: _Left) -> str:
        """What to do where a block leaves out rows of its own, or where the first store begins too late."""
        if left.gaps[0][0] == 0 and left.is_between:
            return f"the first store begins at element {left.gaps[0][1]} of axis {left.axis}: begin at 0"
        low = self.sampler.place(part.placed).bounds.expanded(part.region[left.axis][0])
        values, cid = next(iter(left.spans[part].values())), str(self.subject.kernel.cid)
        here, there = (number_of(low, {**values, cid: block}) for block in (0, 1))
        stored, step = left.gaps[0][0], (there or 0) - (here or 0)
        first, end = next(iter(left.spans[part]))
        if 0 < step < end - first:
            count = end - first
            return f"a block moves by {step} and stores {count}, over what the one before stored: move by {count}"
        if not 0 < stored < step:  # more blocks are no remedy for what is left out between others
            return "compare by how much the index moves with how much is stored at once" if left.is_between else ""
        return f"a block moves by {step} and stores {stored}: store the rest at `+ vid * {stored}`, or move by {stored}"

    def _is_stored(self, tensor: Buffer, left: _Left) -> bool:
        """Whether the kernel itself stores what no load reaches."""
        every = [self._spans(part, left.axis, left.known) for part in self.stores.get(tensor, ())]
        touched = [span for found in every for span in found or ()]
        return any(first < end and begin < stop for first, stop in touched for begin, end in left.gaps)

    def _finding(
        self, rule: str, part: _Part, text: str, left: _Left, severity: Severity | None = None, help: str = ""
    ) -> Finding:
        """A finding with the sizes that it depends on."""
        used = {name for pair in part.region for sym in pair for name in sym.names}
        used |= part.operand.buffer.shape[left.axis].names
        given = [f"{name}={left.known[name]}" for name in sorted(used) if name in left.known and "@" not in name]
        sizes = f" with {', '.join(given)}" if given else ""
        return Finding(rule, part.placed.stmt.node, text + sizes, severity, help=help)


def _gaps(spans: Mapping[_Part, _Spans], size: int) -> list[tuple[int, int]]:
    """What is left of an axis."""
    found, at = [], 0
    for first, end in sorted(span for one in spans.values() for span in one):
        if at < min(first, size):
            found.append((at, min(first, size)))
        at = max(at, end)
    return [*found, (at, size)] if at < size else found


def _hole(sizes: Sequence[int], boxes: Collection[_Box]) -> list[tuple[int, int]] | None:
    """A box of a tensor that none of these covers a part of; None if there is none, or too many would be looked at."""
    inner = [{end for box in boxes for end in box[axis] if 0 < end < size} for axis, size in enumerate(sizes)]
    cuts = [sorted({0, size, *ends}) for size, ends in zip(sizes, inner, strict=True)]
    cells = set(product(*(range(len(ends) - 1) for ends in cuts))) if prod(map(len, cuts)) <= _TURNS else set()
    for box in boxes if cells else ():
        inside = (
            [n for n, first in enumerate(ends[:-1]) if span[0] <= first < span[1]]
            for ends, span in zip(cuts, box, strict=True)
        )
        cells.difference_update(product(*inside))
    first = min(cells, default=None)
    return [(ends[n], ends[n + 1]) for ends, n in zip(cuts, first, strict=True)] if first is not None else None


def _returned(subject: Subject) -> set[Buffer]:
    """The tensors that a call makes and returns, in every compilation of the file."""
    positions: list[set[int]] = []
    for compilation in compilations(subject.located):
        try:
            found = indices(subject.file, subject.located, compilation, "out_idx")
        except Blocked:
            return set()
        positions.append(set(found.positions) if found is not None else set())
    wanted = set.intersection(*positions) if positions else set()
    return {buffer for buffer in subject.kernel.params if buffer.index in wanted}
