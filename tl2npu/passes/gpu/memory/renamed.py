"""TL137: a copy between two vector tiles of one shape and type that does nothing but rename the tile; one nobody reads.

So does one that converts what another copy moves, or moves what it converts, and what goes to float32 and back.

On a GPU one of them is shared by the threads and the other one is in registers; on an NPU both are in UB. A tile that
is copied out of L0C and not read has no place where the compiler could wait for it (TL845).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import libcst as cst

from tl2npu.kernel.access import accesses, touches, writes
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.memory.roles import sites
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Stmt
from tl2npu.passes.gpu.memory.landing import goes_by_rows
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type, literal
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_VECTOR = ("alloc_shared", "alloc_ub")
_HALVES = ("float16", "bfloat16")
"""What float32 has exactly."""


def drop(job: Job) -> None:
    """Load into the second tile or store from the first one, as long as there is such a copy."""
    while _Copies(job).drop():
        continue


def landings(job: Job) -> frozenset[str]:
    """The tiles between L0C and the tile that is used."""
    return frozenset(copy.src.buffer.name for _, copy in _Copies(job).products())


def land(job: Job, names: frozenset[str], *, taken: bool = False) -> bool:
    """Copy products to the tiles that are used, without these tiles between; False if none can be left out.

    The compiler loads a product in front of the first reader of its tile, which must take it whole (compiler-facts,
    rule 7; g2_inplace): that is for the checks to say (TL845). Where the first reader goes by rows, and where the
    caller wants it ``taken``, a multiplication with 1 does so, which needs no second tile.
    """
    before = job.module
    while (found := _Copies(job)).land(names, taken=taken):
        continue
    return found.job.module is not before


class _Copies:
    """What can be left out at once: copies that have no tile in common. ``taken``: the tiles of those that are."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.edits = Edits(job.file.index)
        self.taken: set[Buffer] = set()
        self.places = sites(job.kernel)
        self.stmts = list(job.kernel.walk())
        self.users: dict[Buffer, list[Stmt]] = {}
        for stmt in self.stmts:
            for buffer in {access.operand.buffer for access in accesses(stmt)}:
                self.users.setdefault(buffer, []).append(stmt)
        self.mentioned = Counter(name.value for name in names_in(job.located.node))

    @cached_property
    def liveness(self) -> Liveness:
        """The tiles whose values are wanted behind each statement."""
        return Liveness(self.job.kernel)

    def drop(self) -> bool:
        """Leave out copies; False if every one is needed."""
        for copy in self.stmts:
            if not isinstance(copy, Copy) or self.taken & {copy.src.buffer, copy.dst.buffer}:
                continue
            if self.unread(copy):
                self.write({}, copy, f"nothing reads `{copy.dst.buffer.name}`")
            elif not self.load(copy) and self.is_plain(copy):
                self.stores(copy)
        self.job.apply(self.edits)
        return bool(self.taken)

    def land(self, names: frozenset[str], *, taken: bool) -> bool:
        """Leave out tiles of products that have these names; False if there are none."""
        for first, copy in self.products():
            if copy.src.buffer.name in names and not self.taken & {copy.src.buffer, copy.dst.buffer}:
                self.write_load(first, copy, by_rows=taken or self.goes_by_rows(copy))
        self.job.apply(self.edits)
        return bool(self.taken)

    def unread(self, copy: Copy) -> bool:
        """A copy of a product into a tile that nothing else names."""
        tile = copy.dst.buffer
        return copy.src.buffer.memory is Memory.L0C and tile.memory is Memory.UB and self.others(tile, copy) == []

    def is_plain(self, copy: Copy) -> bool:
        """From a vector tile to another one of the same shape and type."""
        a, b = copy.src.buffer, copy.dst.buffer
        same = a is not b and a.shape == b.shape and a.dtype == b.dtype
        whole = copy.src.is_whole and copy.dst.is_whole and not copy.options
        return same and whole and all(tile.alloc in _VECTOR and tile.memory is Memory.UB for tile in (a, b))

    def others(self, buffer: Buffer, copy: Copy) -> list[Stmt] | None:
        """What else uses a tile; None where the text names it in another way."""
        found = [stmt for stmt in self.users.get(buffer, ()) if stmt is not copy]
        return found if self.mentioned[buffer.name] == len(found) + 2 else None

    def products(self) -> Iterator[tuple[Copy, Copy]]:
        """What brings a product from L0C, and the copy behind it that does nothing but rename its tile."""
        for copy in self.stmts:
            first = self.loaded(copy) if isinstance(copy, Copy) and self.is_plain(copy) else None
            if isinstance(copy, Copy) and first is not None and _is_product(first):
                yield first, copy

    def loaded(self, copy: Copy) -> Copy | None:
        """``T.copy(x, a)`` of ``T.copy(x, a); T.copy(a, b)`` where what is in ``a`` is not wanted again."""
        a, b, site, others = copy.src.buffer, copy.dst.buffer, self.places[id(copy)], self.others(copy.src.buffer, copy)
        before = [number for number, stmt in enumerate(site.body[: site.position]) if touches(stmt, a)]
        first = site.body[before[-1]] if before and others is not None else None
        if not isinstance(first, Copy) or first.via or first.dst.buffer is not a or not first.dst.is_whole:
            return None
        between = site.body[before[-1] + 1 : site.position]
        if first.src.buffer is b or any(touches(s, b) or (isinstance(s, Alloc) and s.buffer is b) for s in between):
            return None
        done = others == [first] or any(s.stmt is copy and a not in s.live for s in self.liveness.steps)
        return first if done else None

    def goes_by_rows(self, copy: Copy) -> bool:
        """Whether the next statement of the block that uses the tile of a copy takes it row by row."""
        site = self.places[id(copy)]
        return goes_by_rows(next((s for s in site.body[site.position + 1 :] if touches(s, copy.dst.buffer)), None))

    def load(self, copy: Copy) -> bool:
        """Load into the tile that is used."""
        first = self.loaded(copy)
        if first is None or _is_product(first) or not (self.is_plain(copy) or self.passes(first, copy)):
            return False
        self.write_load(first, copy)
        return True

    def passes(self, first: Copy, copy: Copy) -> bool:
        """Whether one copy does what two do, of which one converts, or the second one takes back what the first did."""
        tile, ends = copy.src.buffer, (first.src, copy.dst)
        if not copy.src.is_whole or first.options or copy.options or tile.alloc not in _VECTOR:
            return False
        if any(b.memory is not Memory.UB for b in (tile, ends[0].buffer, ends[1].buffer)):
            return False
        if any(end.dims is not None and sum(not d.is_point for d in end.dims) != len(tile.shape) for end in ends):
            return False
        one, other = (end.buffer.dtype for end in ends)
        if tile.dtype in (one, other):
            return True
        source, between = (element_type(self.job, buffer) for buffer in (ends[0].buffer, tile))
        return one == other and source in _HALVES and between == "float32"

    def write_load(self, first: Copy, copy: Copy, *, by_rows: bool = False) -> None:
        """Leave out the tile between; ``by_rows``: what was copied from it is taken whole in another way."""
        a, b = copy.src.buffer, copy.dst.buffer
        message = f"copied into `{b.name}` directly, without `{a.name}`"
        whole = f"T.tile.mul({b.name}, {b.name}, {literal(self.job, b, cst.Integer('1'))})" if by_rows else ""
        taken = parse(self.job, whole, copy.node) if by_rows else ()
        unused = a if self.others(a, copy) == [first] else None
        self.write({first: (first.dst.node, copy.dst.node)}, copy, message, unused=unused, instead=taken)

    def stores(self, copy: Copy) -> None:
        """``T.copy(a, b); T.copy(b, C[...])`` with nothing else in ``b``."""
        a, b = copy.src.buffer, copy.dst.buffer
        readers, site = self.others(b, copy), self.places[id(copy)]
        if not readers or any(isinstance(s, Copy) and s.dst.buffer is a and _is_product(s) for s in self.stmts):
            return
        changed: dict[Copy, tuple[cst.BaseExpression, cst.BaseExpression]] = {}
        for stmt in readers:
            there = self.places[id(stmt)]
            if not isinstance(stmt, Copy) or stmt.src.buffer is not b or not stmt.src.is_whole:
                return
            if stmt.dst.buffer.memory is not Memory.GM or there.body is not site.body or there.position < site.position:
                return
            changed[stmt] = (stmt.src.node, cst.Name(a.name))
        last = max(self.places[id(stmt)].position for stmt in readers)
        for stmt in site.body[site.position + 1 : last]:
            if any(operand.buffer is a for operand in writes(stmt, deep=True)):
                return
        self.write(changed, copy, f"stored `{a.name}` directly, without `{b.name}`")

    def write(
        self,
        changed: dict[Copy, tuple[cst.BaseExpression, cst.BaseExpression]],
        copy: Copy,
        message: str,
        *,
        unused: Buffer | None = None,
        instead: Sequence[cst.BaseStatement] = (),
    ) -> None:
        """Put other tiles into some copies, and leave one out, or write something ``instead``."""
        if unused is not None and unused.statement is not None:
            self.edits.remove(unused.statement)
        for node, other in changed.values():
            self.edits.replace(node, other.deep_clone())
        leave = self.edits.remove if copy.node in self.job.original else self.edits.move  # with the reason above it
        if instead:
            self.edits.replace_many(copy.node, instead)
        else:
            leave(copy.node)
        self.taken |= {copy.src.buffer, copy.dst.buffer}
        self.job.change("TL137", copy.node, message)


def _is_product(copy: Copy) -> bool:
    return copy.src.buffer.memory is Memory.L0C
