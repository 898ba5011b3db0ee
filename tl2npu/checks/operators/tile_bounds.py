"""TL789: a statement that goes past the end of a tile, in the first or the last turn of its loops.

Nothing asserts this: an access of UB, L1 or L0 is an address, and what lies behind the tile is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tl2npu.checks.operators.vector_form import parallel_store
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import region
from tl2npu.kernel.model import Branch, Copy, Loop, Op, Operand, Store
from tl2npu.kernel.symbolic import Sym, ceildiv, const

_CALLS = 4
_Part = tuple[tuple[Sym, Sym], ...]


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each statement that always runs."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, (Copy, Op, Store)) or any(isinstance(p, Branch) for p in placed.parents):
            continue
        store = parallel_store(subject, placed)
        if store is not None and store.form == "vector" and store.value.kind == "load":
            continue  # the copy of a whole tile, whatever the loop says
        for operand in {id(access.operand): access.operand for access in accesses(stmt)}.values():
            text = _behind(subject, placed, operand) if operand.buffer.is_tile and operand.dims else ""
            if text:
                yield Finding("TL789", stmt.node, text)
                break


def _behind(subject: Subject, placed: Placed, operand: Operand) -> str:
    part, shape = _part(placed, operand), operand.buffer.shape
    if part is None or len(part) != len(shape):
        return ""
    for axis, ((lo, extent), size) in enumerate(zip(part, shape, strict=True)):
        if lo.is_zero and extent == size:
            continue
        for known in subject.values[:_CALLS]:
            ends = [_end(lo + extent, turn) for turn in _turns(subject, placed, known)]
            whole = size.evaluate(known)
            last = max((end for end in ends if end is not None), default=None)
            if last is not None and whole is not None and last > whole:
                names = sorted(name for name in (size + extent).variables() if name in known)
                given = f" with {', '.join(f'{name}={known[name]}' for name in names)}" if names else ""
                return f"`{code(operand.node)}` ends at {last} on axis {axis}, which has {whole} elements{given}"
    return ""


def _part(placed: Placed, operand: Operand) -> _Part | None:
    """Start and extent of each axis; of a start index in an operator at least one element."""
    stmt = placed.stmt
    if isinstance(stmt, Copy) and operand in (stmt.src, stmt.dst):
        return region(operand, stmt.dst if operand is stmt.src else stmt.src)
    if isinstance(stmt, Op) and not is_element(operand) and any(dim.extent is None for dim in operand.dims or ()):
        dims = operand.dims or ()
        return tuple((dim.lo, const(1) if dim.extent is None else dim.extent) for dim in dims)
    return tuple((dim.lo, dim.extent or const(1)) for dim in operand.dims or ())


def _turns(subject: Subject, placed: Placed, known: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """The numbers of the first and of the last turn of all loops, for the first block and both vector cores."""
    kernel = subject.kernel
    for last in (False, True):
        numbers = dict(known)
        numbers |= {name: 0 for name in (kernel.cid, kernel.core) if name is not None}
        numbers |= {kernel.vid: int(last)} if kernel.vid is not None else {}
        for item in placed.ranges if not isinstance(placed.stmt, Loop) else ():
            step = item.step or const(1)
            start, count, by = (sym.evaluate(numbers) for sym in (item.start, ceildiv(item.extent, step), step))
            if start is None or count is None or by is None:
                continue
            if count <= 0:
                return
            numbers[str(item.var)] = start + (count - 1) * by if last else start
        yield numbers


def _end(sym: Sym, numbers: Mapping[str, int]) -> int | None:
    try:
        return sym.evaluate(numbers)
    except ZeroDivisionError:
        return None
