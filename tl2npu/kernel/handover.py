"""Hand-overs: tiles that one core leaves in global memory for the other.

Works on a kernel without ``vid`` terms (:mod:`tl2npu.passes.ascend.halves` has run), so that the region written and the
region read can be compared as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Branch, Buffer, Copy, Kernel, Loop, Memory, Operand, Range, Stmt, walk_with_parents
from tl2npu.kernel.symbolic import Div, Mod, Sym, const, var

Region = tuple[tuple[Sym, Sym], ...]


@dataclass(eq=False)
class Place:
    """A copy with its enclosing statements, outermost first."""

    copy: Copy
    parents: tuple[Stmt, ...]
    region: Region
    order: int

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The enclosing loops."""
        return tuple(p for p in self.parents if isinstance(p, Loop))

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The enclosing conditions."""
        return tuple(p for p in self.parents if isinstance(p, Branch))


@dataclass(eq=False)
class Traffic:
    """Everything that a kernel does with one tensor of global memory."""

    tensor: Buffer
    writers: list[Place] = field(default_factory=list)
    readers: list[Place] = field(default_factory=list)
    element_reads: list[Stmt] = field(default_factory=list)
    element_writes: list[Stmt] = field(default_factory=list)

    @property
    def exchanged(self) -> bool:
        """Written and read inside the kernel."""
        return bool(self.writers or self.element_writes) and bool(self.readers or self.element_reads)


@dataclass(eq=False)
class HandOver:
    """One writer and one reader of the same region; ``row`` is the gather loop of a row-wise writer."""

    tensor: Buffer
    writer: Place
    reader: Place
    row: Range | None = None

    @property
    def src(self) -> Buffer:
        """The buffer on the producing core."""
        return self.writer.copy.src.buffer

    @property
    def dst(self) -> Buffer:
        """The buffer on the consuming core."""
        return self.reader.copy.dst.buffer

    @property
    def to_vector(self) -> bool:
        """True for cube -> vector (L0C to UB), False for vector -> cube (UB to L1)."""
        return self.src.memory is Memory.L0C


def traffic(kernel: Kernel) -> dict[Buffer, Traffic]:
    """The traffic of every tensor parameter."""
    found = {param: Traffic(param) for param in kernel.params}
    for order, (stmt, parents) in enumerate(walk_with_parents(kernel.body)):
        if isinstance(stmt, Copy):
            for operand, other, is_write in ((stmt.dst, stmt.src, True), (stmt.src, stmt.dst, False)):
                if operand.buffer in found:
                    place = Place(stmt, parents, region(operand, other), order)
                    entry = found[operand.buffer]
                    (entry.writers if is_write else entry.readers).append(place)
        for access in accesses(stmt):
            if access.operand.buffer not in found or (isinstance(stmt, Copy) and not access.element):
                continue
            entry = found[access.operand.buffer]
            if access.reads:
                entry.element_reads.append(stmt)
            if access.writes:
                entry.element_writes.append(stmt)
    return found


def extents_of(operand: Operand) -> tuple[Sym, ...] | None:
    """The extents that a whole buffer or a sliced region has; None for a start index, which has none of its own."""
    if operand.dims is None:
        return operand.buffer.shape
    if all(dim.is_point for dim in operand.dims):
        return None
    return tuple(const(1) if dim.extent is None else dim.extent for dim in operand.dims)


def region(operand: Operand, other: Operand) -> Region:
    """Start and extent of every dimension that a copy touches on ``operand``'s side.

    A start index takes the extents of the other side, aligned to the last dimensions (``tilelang/language/copy.py``).
    """
    if operand.dims is None:
        return tuple((const(0), size) for size in operand.buffer.shape)
    own = extents_of(operand)
    starts = [dim.lo for dim in operand.dims]
    if own is not None:
        return tuple(zip(starts, own, strict=False))
    theirs = list(extents_of(other) or ())
    padded = [const(1)] * max(0, len(starts) - len(theirs)) + theirs[-len(starts) :]
    return tuple(zip(starts, padded, strict=False))


def same_region(left: Region, right: Region) -> bool:
    """Proved equal in every dimension."""
    return len(left) == len(right) and all(a == b for a, b in zip(left, right, strict=False))


def disjoint(left: Region, right: Region) -> bool:
    """Proved to share no element: in some dimension one ends before the other starts."""
    for (lo, size), (other_lo, other_size) in zip(left, right, strict=False):
        ahead = (other_lo - lo - size).constant
        behind = (lo - other_lo - other_size).constant
        if (ahead is not None and ahead >= 0) or (behind is not None and behind >= 0):
            return True
    return False


def is_private(place: Place, kernel: Kernel, grid: Sequence[Sym]) -> bool:
    """True if different blocks touch different parts: the start indices determine ``cid``, and no parts overlap.

    Accepted are ``cid`` and its digits in a mixed radix (``cid % n``, ``cid // n % m``, ``cid // (n * m)``), one in a
    dimension, scaled by at least the extent there; the highest digit may have a modulo if the grid ends there.
    """
    size = grid[0] if len(grid) == 1 else None
    if kernel.cid is None or size == const(1):
        return True
    digits: dict[Sym, Sym | None] = {}
    for lo, extent in place.region:
        found = _digit(lo, extent, kernel.cid)
        if found is not None:
            digits[found[0]] = found[1]
    radix = const(1)
    while radix in digits:
        modulo = digits[radix]
        if modulo is None:
            return True
        radix = radix * modulo
    return radix == size


def _digit(lo: Sym, extent: Sym, cid: str) -> tuple[Sym, Sym | None] | None:
    """``(n, m)`` if the start is ``cid // n % m`` tiles of at least ``extent`` (``m`` None: no modulo), else None."""
    terms = [(monomial, coef) for monomial, coef in lo.terms if Sym.of({monomial: 1}).depends_on(cid)]
    if len(terms) != 1:
        return None
    monomial, coef = terms[0]
    atoms = [atom for atom in monomial if Sym.of({(atom,): 1}).depends_on(cid)]
    if len(atoms) != 1:
        return None
    stride = const(abs(coef))
    for atom in monomial:
        if atom is not atoms[0]:
            stride = stride * Sym.of({(atom,): 1})
    gap = (stride - extent).constant
    if gap is None or gap < 0:
        return None
    return _position(Sym.of({(atoms[0],): 1}), cid)


def _position(sym: Sym, cid: str) -> tuple[Sym, Sym | None] | None:
    """``(n, m)`` for ``cid // n % m`` however it is nested; the sizes in it are positive."""
    if sym == var(cid):
        return const(1), None
    atom = sym.atom
    if not isinstance(atom, (Div, Mod)) or atom.den.depends_on(cid):
        return None
    inner = _position(atom.num, cid)
    if inner is None:
        return None
    below, modulo = inner
    if modulo is not None and not (modulo % atom.den).is_zero:
        return None
    if isinstance(atom, Mod):
        return below, atom.den
    return below * atom.den, None if modulo is None else modulo // atom.den


def common_loops(writer: Place, reader: Place) -> tuple[Loop, ...]:
    """The loops around both, outermost first."""
    return tuple(loop for loop in writer.loops if loop in reader.loops)


def iterate_places(entry: Traffic) -> Iterator[Place]:
    """Writers and readers in text order."""
    return iter(sorted((*entry.writers, *entry.readers), key=lambda place: place.order))
