"""What ``threads=2`` does to a kernel: the buffers and loops that the compiler cuts in half, and those it leaves whole.

Mirrors ``src/transform/ascend_vid_reduction.cc``: every UB buffer loses half of dim 0
except those that a copy fills through an index read from UB, and those in front of ``T.Kernel``, which stand in the
root block that the pass leaves alone; a loop is halved if its plain variable is the first index of a halved buffer.
Nothing else knows of the split, which is why the checks of rows exist.

``T.get_block_binding(1)`` is the number of the vector core, so that ``i + vid * (M // 2)`` is a row of the tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import libcst as cst

from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import is_arithmetic
from tl2npu.kernel.model import Access, Buffer, Copy, Dim, Memory, Op, Operand, Range
from tl2npu.kernel.symbolic import Opaque, Sym, const, var


@dataclass(frozen=True, eq=False)
class Use:
    """One access of a halved buffer; ``row`` is the loop whose plain variable is the first index."""

    placed: Placed
    access: Access
    row: Range | None

    @property
    def operand(self) -> Operand:
        """The operand of the access."""
        return self.access.operand

    @property
    def buffer(self) -> Buffer:
        """The buffer that is accessed."""
        return self.access.operand.buffer


@dataclass(eq=False)
class Split:
    """``halved``, ``gathered`` and ``outside`` (both left whole) UB buffers; ``rows`` the halved loop variables with
    their uses.

    ``columns`` are the loop variables that occur in another index than the first one; ``core`` is the variable for the
    number of the vector core, if the kernel asks for it.
    """

    halved: set[Buffer] = field(default_factory=set)
    gathered: set[Buffer] = field(default_factory=set)
    outside: set[Buffer] = field(default_factory=set)
    core: str | None = None
    uses: list[Use] = field(default_factory=list)
    rows: dict[Range, list[Use]] = field(default_factory=dict)
    columns: set[Range] = field(default_factory=set)

    def counts_rows(self, sym: Sym, item: Range) -> bool:
        """True if the variable of a halved loop occurs as a row of the tile only: its core's first row is added."""
        if self.core is None or not sym.depends_on(str(item.var)) or not is_arithmetic(sym):
            return False
        first = var(self.core) * (item.extent // const(2))
        return not sym.substitute({str(item.var): item.var - first}).depends_on(self.core)

    def has_rows(self, buffer: Buffer) -> bool:
        """Halved and with more than one row (a buffer of one row keeps it)."""
        return buffer in self.halved and bool(buffer.shape) and buffer.shape[0] != const(1)


def split_of(subject: Subject) -> Split:
    """The split of a kernel launched with ``threads=2``, worked out once for all who ask."""
    if Split not in subject.kept:
        subject.kept[Split] = _split(subject)
    return cast(Split, subject.kept[Split])


def _split(subject: Subject) -> Split:
    result = Split(core=subject.kernel.core)
    for placed in subject.statements:
        if isinstance(placed.stmt, Copy):
            result.gathered |= _gathered(placed.stmt)
    result.outside = {buffer for buffer in subject.allocated(Memory.UB) if buffer.outside}
    result.halved = set(subject.allocated(Memory.UB)) - result.gathered - result.outside
    for placed in subject.statements:
        for access in accesses(placed.stmt):
            if access.operand.buffer in result.halved:
                use = Use(placed, access, _row_of(placed, access.operand))
                result.uses.append(use)
                result.columns |= _columns_of(placed, access.operand)
                if use.row is not None:
                    result.rows.setdefault(use.row, []).append(use)
    return result


def _row_of(placed: Placed, operand: Operand) -> Range | None:
    dims = operand.dims
    if not dims or not dims[0].is_point:
        return None
    return placed.range_of(dims[0].lo)


def _columns_of(placed: Placed, operand: Operand) -> set[Range]:
    lows = [dim.lo for dim in (operand.dims or ())[1:]]
    return {item for item in placed.ranges if any(lo.depends_on(str(item.var)) for lo in lows)}


def _gathered(copy: Copy) -> set[Buffer]:
    """The UB side of a copy whose other side has an element of a UB buffer as a whole index."""
    found: set[Buffer] = set()
    for inner, outer in ((copy.src, copy.dst), (copy.dst, copy.src)):
        if inner.buffer.memory is Memory.UB and outer.buffer.memory is not Memory.UB and index_loads(outer):
            found.add(inner.buffer)
    return found


def index_loads(operand: Operand) -> list[Dim]:
    """The indices that are, as a whole, an element of a UB buffer."""
    return [dim for dim in operand.dims or () if is_plain_load(dim)]


def is_plain_load(dim: Dim) -> bool:
    """True for ``ix[i]`` as a whole index, with ``ix`` in UB (where the compiler looks for such indices)."""
    atom = dim.lo.atom
    names = {load.buffer.name for load in dim.loads if load.buffer.memory is Memory.UB and not load.buffer.outside}
    return isinstance(atom, Opaque) and atom.head.startswith("load ") and atom.head[5:] in names


def is_row_view(operand: Operand, whole: bool = True) -> bool:
    """``b[h, :]``: one row of a buffer with all (``whole``) or some of its columns."""
    dims = operand.dims
    if not dims or len(dims) < 2 or not dims[0].is_point:
        return False
    rest = list(zip(dims[1:], operand.buffer.shape[1:], strict=False))
    if all(dim.is_point for dim, _ in rest):
        return False
    return not whole or all(dim.covers(size) for dim, size in rest)


def is_element(operand: Operand) -> bool:
    """``b[i, j]``: a single element."""
    dims = operand.dims
    return dims is not None and len(dims) == len(operand.buffer.shape) and all(dim.is_point for dim in dims)


def starts_whole(operand: Operand) -> bool:
    """The operand starts at offset 0 and covers the rows: the whole buffer, or all rows of some columns from 0."""
    dims = operand.dims
    return dims is None or dims[0].covers(operand.buffer.shape[0])


def is_half(operand: Operand) -> bool:
    """``b[: M // 2, :]``: half of the rows from the first one, the rows of one vector core.

    The front end takes a range that ends only; one that also begins becomes vector lanes, which operators reject.
    """
    dims, shape = operand.dims, operand.buffer.shape
    if not dims or dims[0].is_point or len(dims) != len(shape):
        return False
    node = dims[0].node
    rest = zip(dims[1:], shape[1:], strict=True)
    return (
        isinstance(node, cst.Slice)
        and node.lower is None
        and dims[0].extent == shape[0] // const(2)
        and all(dim.covers(size) for dim, size in rest)
    )


def takes_its_rows(split: Split, source: Operand, target: Operand) -> bool:
    """A copy ``w[vid * (M // 2) : vid * (M // 2) + M // 2]`` to ``x[: M // 2]``: a core's part of a vector that it has
    whole.

    No side of such a copy is changed, as not both tiles are halved.
    """
    if split.core is None or source.buffer not in split.outside or not is_half(target) or not source.dims:
        return False
    half = target.buffer.shape[0] // const(2)
    rows, *rest = source.dims
    own = rows.lo == var(split.core) * half and rows.extent == half
    return own and not rest and len(target.buffer.shape) == 1


def row_operands(stmt: Op) -> Iterator[tuple[str, Operand]]:
    """The buffer arguments of an operator that are tiles or rows, not single elements used as scalars."""
    for name, operand in stmt.operands:
        if not is_element(operand):
            yield name, operand
