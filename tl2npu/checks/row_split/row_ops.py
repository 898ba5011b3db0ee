"""TL830, TL832 to TL834, TL836 to TL838: operators that ``threads=2`` does not cut in half together with their buffers.

Evidence: facts 1 and ``src/transform/ascend_vid_reduction.cc``, which lists the operators that it adapts.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.row_split.split import Split, is_element, is_half, is_row_view, row_operands, split_of, starts_whole
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.ascend.arguments import COUNTED
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Access, Buffer, Loop, Memory, Op, Operand, Range, Scalar, Stmt, Store
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import const, product, var

_VECTOR_KINDS = (Kind.TILE, Kind.FILL, Kind.REDUCE)
_COMPARE_BYTES = 256


def check(subject: Subject) -> Iterator[Finding]:
    """Findings of a kernel launched with ``threads=2``; of UB atomics also where target pto has two vector cores."""
    pto = subject.target == "pto" and subject.threads is not None
    if not subject.is_split and not pto:
        return
    split = split_of(subject)
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op):
            continue
        if stmt.op.kind is Kind.ATOMIC:
            yield from _check_atomic(subject, split, stmt)
        elif subject.is_split and stmt.op.kind in _VECTOR_KINDS:
            yield from _check_op(subject, split, stmt)
    if subject.is_split:
        for item in split.rows:
            yield from _check_carried(subject, split, item)


def _check_atomic(subject: Subject, split: Split, stmt: Op) -> Iterator[Finding]:
    source = next((o for name, o in stmt.operands if name == "src"), None)
    if source is not None and source.buffer.memory is Memory.UB:
        if subject.is_split and _adds_its_rows(split, stmt, source):
            return
        why = (
            "`threads=2` splits neither its size nor its offset"
            if subject.is_split
            else "target pto runs two vector cores"
        )
        yield Finding("TL836", stmt.node, f"both vector cores would add all of `{source.buffer.name}`: {why}")


def _adds_its_rows(split: Split, stmt: Op, source: Operand) -> bool:
    """Each core adds half of the tile to its own half of the rows of a tensor: nobody moves such an addition."""
    target = stmt.args.get("dst")
    if (
        not is_half(source)
        or split.core is None
        or not isinstance(target, Operand)
        or not split.has_rows(source.buffer)
    ):
        return False
    half = source.buffer.shape[0] // const(2)
    dims, rank = target.dims or (), len(source.buffer.shape)
    moving = [axis for axis, dim in enumerate(dims) if dim.lo.depends_on(split.core)]
    if len(moving) != 1 or (dims[moving[0]].lo - var(split.core) * half).depends_on(split.core):
        return False
    starts = all(dim.is_point for dim in dims) and moving[0] == len(dims) - rank
    return starts or dims[moving[0]].extent == half


def _check_op(subject: Subject, split: Split, stmt: Op) -> Iterator[Finding]:
    operands = [o for _, o in row_operands(stmt) if o.buffer.memory is Memory.UB]
    halves = [o for o in operands if is_half(o) and split.has_rows(o.buffer)]
    name = f"T.{stmt.op.name}"
    cut = [o for o in operands if starts_whole(o) and split.has_rows(o.buffer)]
    adapts = subject.compiler.adapts_to_vid(stmt.op.name)
    counts_half = bool(cut) and all(_counts_half(stmt, o.buffer) for o in cut)
    if (halves and (subject.target == "pto" or adapts)) or (counts_half and adapts):
        text = f"{name} of `{code((halves or cut)[0].node)}`: `threads=2` halves this half once more"
        yield Finding("TL832", stmt.node, text)
        return
    plane = next((o for o in operands if _is_plane(o)), None)
    if stmt.op.kind is Kind.REDUCE and plane is not None:
        text = f"{name} of `{code(plane.node)}`: `threads=2` halves the rows of this plane, which each core has whole"
        yield Finding("TL833", stmt.node, text)
    part = next((o for o in operands if split.has_rows(o.buffer) and _is_part(o)), None)
    if part is not None:
        text = f"`{code(part.node)}` is a part of the rows: with `threads=2` each vector core would take half of it"
        yield Finding("TL825", stmt.node, text)
    if not cut or counts_half:
        return
    if stmt.op.kind is Kind.REDUCE:
        yield from _check_reduce(stmt, cut, name)
        return
    if not adapts:
        buffer = cut[0].buffer.name
        if not (stmt.op.elementwise or (stmt.op.row_independent and _along_rows(stmt))):
            text = f"{name} needs all rows of `{buffer}`, but with `threads=2` each vector core has half of them"
            if stmt.op.name == "tile.createvecindex":
                text = f"the row numbers in `{buffer}` would restart at 0 on each vector core with `threads=2`"
            yield Finding("TL837", stmt.node, text)
        elif subject.target != "pto" and not _names_half(stmt, split):
            text = f"{name} processes all of `{buffer}`, but with `threads=2` each vector core has half"
            yield Finding("TL832", stmt.node, text)
        return
    views = [o for o in operands if is_row_view(o) and split.has_rows(o.buffer)]
    tiles = [o for o in cut if len(o.buffer.shape) > 1]
    if views and tiles:
        text = f"{name} mixes a row of `{views[0].buffer.name}` with all rows of `{tiles[0].buffer.name}`"
        yield Finding("TL838", stmt.node, text)
    if stmt.op.name == "tile.compare":
        yield from _check_compare(subject, stmt, cut[-1])


def _is_plane(operand: Operand) -> bool:
    """``x[h, :, :]``: rows and columns behind a first index."""
    dims = operand.dims or ()
    return len(dims) > 1 and dims[0].is_point and sum(not dim.is_point for dim in dims) > 1


def _is_part(operand: Operand) -> bool:
    """``x[0:8, :]``: some of the rows, but not half of them from the first one."""
    dims = operand.dims
    return dims is not None and not (dims[0].is_point or starts_whole(operand) or is_half(operand))


def _counts_half(stmt: Op, buffer: Buffer) -> bool:
    """The number of elements is that of one vector core's rows (target pto counts by the halved tile)."""
    count = stmt.args.get("count")
    if not isinstance(count, Scalar) or (stmt.op.name == "tile.arith_progression" and len(buffer.shape) > 1):
        return False
    rows, rest = buffer.shape[0], product(buffer.shape[1:])
    return count.sym in (rows // 2 * rest, (rows * rest) // 2)


def _names_half(stmt: Op, split: Split) -> bool:
    """An operator that counts the elements of its operands, and names the rows of one vector core."""
    counted = [stmt.args.get(name) for name in COUNTED.get(stmt.op.name, ())]
    return bool(counted) and all(isinstance(o, Operand) and is_half(o) and split.has_rows(o.buffer) for o in counted)


def _along_rows(stmt: Op) -> bool:
    """True unless the axis that the operator works along is certainly not the last one."""
    axis = stmt.args.get(stmt.op.axis or "")
    if not isinstance(axis, Scalar):
        return True
    return axis.sym.constant not in (0, -2)


def _check_reduce(stmt: Op, cut: list[Operand], name: str) -> Iterator[Finding]:
    source = stmt.args.get("buffer")
    if not isinstance(source, Operand) or source not in cut:
        return
    rank = len(source.buffer.shape)
    if rank == 1:
        yield Finding(
            "TL834",
            stmt.node,
            f"{name} of the 1-D buffer `{source.buffer.name}` would cover half of it on each vector core",
        )
        return
    dim = stmt.args.get("dim")
    value = dim.sym.constant if isinstance(dim, Scalar) else -1
    if value is None or (value if value >= 0 else value + rank) != rank - 1:
        yield Finding(
            "TL833", stmt.node, f"{name} reduces over the rows of `{source.buffer.name}`, which `threads=2` splits"
        )


def _check_compare(subject: Subject, stmt: Op, operand: Operand) -> Iterator[Finding]:
    source = stmt.args.get("src0")
    buffer = source.buffer if isinstance(source, Operand) else operand.buffer
    size = ITEM_SIZE.get(buffer.dtype)
    for number in subject.numbers(product(buffer.shape)):
        if size is None or number is None:
            continue
        if number * size % _COMPARE_BYTES == 0 and number // 2 * size % _COMPARE_BYTES:
            text = f"each vector core would compare {number // 2 * size} bytes here, not a multiple of {_COMPARE_BYTES}"
            yield Finding("TL830", stmt.node, text)
            return


def _check_carried(subject: Subject, split: Split, item: Range) -> Iterator[Finding]:
    """A halved row loop that gathers its rows into something that all iterations share."""
    if not any(split.has_rows(use.buffer) for use in split.rows[item]):
        return
    loop = next(p for p in split.rows[item][0].placed.parents if isinstance(p, Loop) and item in p.ranges)
    if loop.kind == "parallel" and len(loop.ranges) > 1 and item is not loop.ranges[0]:
        return
    for placed in subject.below(loop):
        if isinstance(placed.stmt, (Op, Store)):
            found = _shared_result(split, placed, item)
            if found is not None:
                text = f"`{found.buffer.name}` collects all rows of loop `{item.name}`; each vector core runs half"
                yield Finding("TL837", placed.stmt.node, text)


def _shared_result(split: Split, placed: Placed, item: Range) -> Operand | None:
    """The destination of a statement that does not depend on the row, where the value does."""
    stmt: Stmt = placed.stmt
    if isinstance(stmt, Op) and stmt.op.kind in (Kind.DEBUG, Kind.ANNOTATION):
        return None
    found = list(accesses(stmt))
    if not any(_is_row(access.operand, item) for access in found if access.reads):
        return None
    for access in found:
        if access.writes and _is_shared(split, access, item) and _carries(found, access):
            return access.operand
    return None


def _is_row(operand: Operand, item: Range) -> bool:
    return bool(operand.dims) and operand.dims is not None and operand.dims[0].lo.depends_on(str(item.var))


def _is_shared(split: Split, access: Access, item: Range) -> bool:
    operand = access.operand
    if operand.buffer not in split.halved:
        return False
    return not any(dim.lo.depends_on(str(item.var)) for dim in operand.dims or ())


def _carries(found: list[Access], written: Access) -> bool:
    """The statement reads what it writes: it accumulates over the rows."""
    if written.reads:
        return True
    same = (a for a in found if a is not written and a.reads and a.operand.buffer is written.operand.buffer)
    return any(not is_element(a.operand) or _same_place(a.operand, written.operand) for a in same)


def _same_place(left: Operand, right: Operand) -> bool:
    mine, theirs = left.dims or (), right.dims or ()
    return len(mine) == len(theirs) and all(a.lo == b.lo for a, b in zip(mine, theirs, strict=True))
