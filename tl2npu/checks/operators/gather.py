"""TL852 to TL855: rows that an index in UB picks, and partial loads of L1 tiles.

Evidence: facts 1 (g1_g_gather) and 2 (g2_rows_*), E28, E80, E81 and E83.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.cross_core.channels import OnChip, on_chip
from tl2npu.checks.operators.vector_form import parallel_stores
from tl2npu.checks.row_split.split import Split, index_loads, is_element, split_of
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Dim, Let, Memory, Op, Operand, Range
from tl2npu.kernel.symbolic import Var


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about gathered rows and about partial tiles in L1."""
    vectorised = any(store.form != "scalar" for store in parallel_stores(subject))
    rows = [item for item in on_chip(subject) if item.row is not None and not item.to_vector]
    for item in rows:
        yield from _check_source(subject, item)
    if rows and not vectorised:
        text = "without a vectorised T.Parallel in the kernel, rows loaded into an L1 tile overwrite each other"
        yield Finding("TL853", rows[0].copy.node, text)
    if vectorised:
        yield from _check_partial(subject)
    if subject.is_split:
        yield from _check_split(subject, split_of(subject))


def _check_source(subject: Subject, item: OnChip) -> Iterator[Finding]:
    """TL852: a row-wise hand-over works for rows loaded as ``T.copy(KV[.., ix[i], .., :], row)`` only."""
    loads = [p for p in subject.statements if isinstance(p.stmt, Copy) and p.stmt.dst.buffer is item.src]
    gathered = [p for p in loads if isinstance(p.stmt, Copy) and index_loads(p.stmt.src)]
    if not gathered:
        text = f"the rows of `{item.src.name}` are not selected by an index buffer (`ix[i]` as the whole index)"
        yield Finding("TL852", item.copy.node, text)
        return
    for placed in gathered:
        assert isinstance(placed.stmt, Copy)
        for dim in index_loads(placed.stmt.src):
            yield from _check_index(subject, placed, dim, item.row)


def _check_index(subject: Subject, placed: Placed, dim: Dim, row: Range | None) -> Iterator[Finding]:
    load = next(load for load in dim.loads if load.buffer.memory is Memory.UB)
    index = load.buffer
    node = placed.stmt.node
    if len(index.shape) != 1 or row is None or not load.dims or load.dims[0].lo != row.var:
        yield Finding("TL852", node, f"`{code(load.node)}` is not an element of a 1-D index buffer at the row number")
    elif not subject.same(index.shape[0], row.extent):
        yield Finding("TL852", node, f"`{index.name}` and the loop over `{row.name}` have different lengths")
    elif not any(_loads_whole(p, index) for p in subject.statements):
        yield Finding("TL852", node, f"`{index.name}` is not loaded from global memory as a whole")


def _loads_whole(placed: Placed, index: Buffer) -> bool:
    stmt = placed.stmt
    return (
        isinstance(stmt, Copy)
        and stmt.dst.buffer is index
        and stmt.dst.is_whole
        and stmt.src.buffer.memory in (Memory.GM, Memory.UB)
    )


def _check_partial(subject: Subject) -> Iterator[Finding]:
    """TL855: beside a vectorised T.Parallel, the place of a part in an L1 tile is counted by rows, not by fractals."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Copy) or (stmt.src.buffer.memory, stmt.dst.buffer.memory) != (Memory.GM, Memory.L1):
            continue
        if any(not dim.lo.is_zero for dim in stmt.dst.dims or ()):
            yield Finding("TL855", stmt.node, f"`{code(stmt.dst.node)}` starts inside the L1 tile")


def _check_split(subject: Subject, split: Split) -> Iterator[Finding]:
    """TL852, TL854 under ``threads=2``: what is gathered is left whole, everything around it is halved."""
    tainted = _names_from_ub(subject)
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy):
            yield from _check_gather_copy(split, stmt, tainted)
        elif isinstance(stmt, Op):
            whole = [o for _, o in stmt.operands if o.buffer.memory is Memory.UB and o.dims is None]
            yield from _check_mixed(split, whole, stmt)
        else:
            found = [a.operand for a in accesses(stmt) if a.operand.buffer in split.gathered and is_element(a.operand)]
            halved = [a.operand for a in accesses(stmt) if split.has_rows(a.operand.buffer)]
            if found and halved and found[0].dims and halved[0].dims and _same_first(found[0], halved[0]):
                yield Finding("TL854", stmt.node, _mixed_text(found[0].buffer, halved[0].buffer))


def _same_first(left: Operand, right: Operand) -> bool:
    assert left.dims is not None
    assert right.dims is not None
    return left.dims[0].lo == right.dims[0].lo


def _check_gather_copy(split: Split, stmt: Copy, tainted: set[str]) -> Iterator[Finding]:
    for outer, inner in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
        if outer.buffer.memory is not Memory.GM or inner.buffer.memory is not Memory.UB:
            continue
        if index_loads(outer):
            if inner.dims is not None:
                text = f"`{code(inner.node)}`: `threads=2` halves the gather loop, but not `{inner.buffer.name}`"
                yield Finding("TL854", stmt.node, text)
        elif any(_from_ub(dim, tainted) for dim in outer.dims or ()):
            text = f"`{code(outer.node)}`: the compiler does not recognise a gather whose index is computed from UB"
            yield Finding("TL852", stmt.node, text)
    yield from _check_mixed(split, [o for o in (stmt.src, stmt.dst) if o.buffer.memory is Memory.UB], stmt)


def _from_ub(dim: Dim, tainted: set[str]) -> bool:
    if any(load.buffer.memory is Memory.UB for load in dim.loads):
        return True
    return any(isinstance(atom, Var) and atom.name.split("@")[0] in tainted for atom in dim.lo.atoms())


def _names_from_ub(subject: Subject) -> set[str]:
    found: set[str] = set()
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Let) and any(load.buffer.memory is Memory.UB for load in stmt.value.loads):
            found.add(stmt.name)
    return found


def _check_mixed(split: Split, operands: list[Operand], stmt: Copy | Op) -> Iterator[Finding]:
    gathered = [o.buffer for o in operands if o.buffer in split.gathered]
    halved = [o.buffer for o in operands if split.has_rows(o.buffer) and o.dims is None]
    if gathered and halved:
        yield Finding("TL854", stmt.node, _mixed_text(gathered[0], halved[0]))


def _mixed_text(gathered: Buffer, halved: Buffer) -> str:
    return f"`threads=2` halves `{halved.name}`, but not the gathered rows `{gathered.name}`"
