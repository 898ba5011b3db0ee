"""TL835, TL840, TL841, TL843 to TL847, TL856, TL869: may these on-chip copies stand as they are?

The compiler routes each through a workspace of the whole tile, keyed by buffer name, and loads the tile back once,
before the first call that reads it. Evidence: facts 2 and
``src/transform/ascend_workspace_reduction.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tl2npu.checks.cross_core.channels import OnChip, Touch, on_chip
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.access import accesses, changes, is_on_chip
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Copy, Loop, Stmt, children

_NO_WORKSPACE_DTYPE = ("bool", "uint4", "int4")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every on-chip copy."""
    yield from _check_names(subject)
    found = on_chip(subject)
    yield from _check_pairs(found)
    for item in found:
        yield from _check_shape(subject, item)
        yield from _check_reader(subject, item)
        if subject.threads is None and not item.to_vector:
            text = "without `threads=` the cube core would get a tile made of the wrong halves"
            yield Finding("TL856", item.copy.node, text)
    count, limit = crossings(subject)
    if count > limit:
        yield Finding(
            "TL869", found[limit].copy.node, f"{count} cross-core transfers, but the flags suffice for {limit}"
        )


def crossings(subject: Subject) -> tuple[int, int]:
    """How many hand-overs a kernel has, and how many of them there are flags for."""
    return _flags(subject, subject.kernel.body), subject.compiler.cross_core_flags


def _flags(subject: Subject, body: Iterable[Stmt]) -> int:
    """The most hand-overs that one compilation has: of an ``if`` that Python decides only one arm is there."""
    total = 0
    for stmt in body:
        if isinstance(stmt, Branch) and subject.late.python_decides(stmt):
            total += max(_flags(subject, stmt.then), _flags(subject, stmt.orelse))
        else:
            total += isinstance(stmt, Copy) and is_on_chip(stmt)
            total += sum(_flags(subject, inner) for inner in children(stmt))
    return total


def _check_names(subject: Subject) -> Iterator[Finding]:
    """Memory planning runs in any case, and takes each name once (``src/transform/ascend_memory_planning.cc:184``)."""
    used = {access.operand.buffer for placed in subject.statements for access in accesses(placed.stmt)}
    names: dict[str, list[Placed]] = {}
    for placed in subject.statements:
        buffer = placed.stmt.buffer if isinstance(placed.stmt, Alloc) else None
        if buffer is None or not buffer.is_tile or buffer not in used:
            continue
        others = names.setdefault(buffer.name, [])
        if any(not _excluded(subject, other, placed) for other in others):
            text = f"two tiles are named `{buffer.name}`: the compiler takes each name once"
            yield Finding("TL847", buffer.node, text)
            return
        others.append(placed)


def _excluded(subject: Subject, one: Placed, other: Placed) -> bool:
    """Whether one program never has both: Python decides for an arm of an ``if``."""
    arms = {id(branch): arm for branch, arm in one.conditions if subject.late.python_decides(branch)}
    return any(arms.get(id(branch), arm) is not arm for branch, arm in other.conditions)


def _check_pairs(found: list[OnChip]) -> Iterator[Finding]:
    sources: dict[str, OnChip] = {}
    landings: dict[str, OnChip] = {}
    for item in found:
        if item.dst.name in landings:
            yield Finding(
                "TL840", item.copy.node, f"`{item.dst.name}` is the target of more than one cross-core transfer"
            )
        elif item.src.name in sources:
            yield Finding(
                "TL840", item.copy.node, f"`{item.src.name}` is the source of more than one cross-core transfer"
            )
        sources.setdefault(item.src.name, item)
        landings.setdefault(item.dst.name, item)


def _check_shape(subject: Subject, item: OnChip) -> Iterator[Finding]:
    node, src, dst = item.copy.node, item.src, item.dst
    for size in (*src.shape, *dst.shape):
        if subject.is_runtime(size):
            yield Finding("TL843", node, "a cross-core transfer needs a tile size that is known at compile time")
            return
    if item.row is None:
        if not item.copy.src.is_whole or not item.copy.dst.is_whole:
            part = item.copy.dst if item.copy.src.is_whole else item.copy.src
            yield Finding("TL841", node, f"`{code(part.node)}` is a part of `{part.buffer.name}`")
        elif len(src.shape) != 2 or len(dst.shape) != 2:
            yield Finding("TL843", node, f"`{src.name}` and `{dst.name}` must be 2-D tiles")
        elif not all(subject.same(a, b) for a, b in zip(src.shape, dst.shape, strict=True)):
            yield Finding("TL841", node, f"`{src.name}` and `{dst.name}` have different shapes")
    else:
        yield from _check_row(subject, item)
    if not item.to_vector and src.dtype != dst.dtype and not _same_dtype(src, dst) and subject.target != "pto":
        yield Finding("TL844", node, f"`{src.name}` is {src.dtype}, `{dst.name}` is {dst.dtype}")
    if dst.dtype in _NO_WORKSPACE_DTYPE:
        yield Finding("TL844", node, f"a cross-core transfer does not support {dst.dtype}")


def _check_row(subject: Subject, item: OnChip) -> Iterator[Finding]:
    """A row-wise copy to L1: the row is a whole 1-D buffer, and all rows of the tile are written."""
    node, src, dst, row = item.copy.node, item.src, item.dst, item.row
    dims = item.copy.dst.dims
    assert row is not None
    assert dims is not None
    columns = dims[1:]
    full = len(dst.shape) == len(dims) == 2 and columns[0].covers(dst.shape[1]) and item.copy.src.is_whole
    if item.to_vector or not full or len(src.shape) != 1:
        yield Finding("TL841", node, f"`{code(item.copy.dst.node)}` is a part of `{dst.name}`")
    elif not subject.same(src.shape[0], dst.shape[1]):
        yield Finding("TL841", node, f"`{src.name}` and a row of `{dst.name}` have different lengths")
    elif not row.start.is_zero or not subject.same(row.extent, dst.shape[0]):
        yield Finding("TL841", node, f"the loop over `{row.name}` does not fill all rows of `{dst.name}`")


def _same_dtype(left: Buffer, right: Buffer) -> bool:
    return {left.dtype, right.dtype} == {"float", "float32"}


_Arm = tuple[Branch, bool]


def _check_reader(subject: Subject, item: OnChip, without: frozenset[_Arm] = frozenset()) -> Iterator[Finding]:
    """The load must stand where, and as often as, the tile arrives.

    ``without``: arms of conditions of Python that are not in this kernel. What the first reader stands under is
    checked both ways.
    """
    dst = item.dst
    touches = [touch for touch in item.touches if without.isdisjoint(touch.placed.conditions)]
    reader = next((touch for touch in touches if touch.sees), None)
    for touch in touches:
        if touch is reader:
            break
        stale = touch.placed.order > item.placed.order or any(loop in item.placed.loops for loop in touch.placed.loops)
        if not stale:
            continue
        if touch.hidden or touch.accumulates:
            rule = "TL845" if touch.hidden else "TL835"
            how = "reads elements of" if touch.hidden else "accumulates into"
            how = "passes on" if isinstance(touch.placed.stmt, Copy) else how
            text = f"this statement {how} `{dst.name}` before the compiler loads the tile"
            yield Finding(rule, touch.placed.stmt.node, text)
            return
        late = item.placed.order < touch.placed.order or (
            reader is not None and reader.placed.order < item.placed.order
        )
        if touch.writes and reader is not None and late:
            text = f"`{dst.name}` is overwritten here, but the compiler loads the tile later, before its first reader"
            yield Finding("TL845", touch.placed.stmt.node, text)
            return
    if reader is None:
        yield Finding("TL845", item.copy.node, f"nothing reads the tile that is copied to `{dst.name}`")
        return
    before = (touch for touch in touches if touch.writes and touch.placed.order < reader.placed.order)
    if reader.placed.order < item.placed.order and not item.placed.loops and any(before):
        text = f"`{dst.name}` is read here, before the cross-core copy that fills it"
        yield Finding("TL845", reader.placed.stmt.node, text)
        return
    yield from _check_place(subject, item, reader)
    arm = next(
        (a for a in reader.placed.conditions if a not in item.placed.conditions and subject.late.python_decides(a[0])),
        None,
    )
    if arm is not None and (arm[0], not arm[1]) not in without:
        yield from _check_reader(subject, item, without | {arm})


def _check_place(subject: Subject, item: OnChip, reader: Touch) -> Iterator[Finding]:
    stmt, dst = reader.placed.stmt, item.dst
    here, there = (
        [arm for arm in placed.conditions if arm in item.placed.conditions or not subject.late.python_decides(arm[0])]
        for placed in (item.placed, reader.placed)
    )
    if here != there:
        text = f"`{dst.name}` is filled and first read under different conditions"
        deeper = len(reader.placed.conditions) > len(item.placed.conditions)
        yield Finding("TL846", stmt.node if deeper else item.copy.node, text)
        return
    inner = [loop for loop in reader.placed.loops if loop not in item.placed.loops and loop.kind != "parallel"]
    parallel = reader.parallel
    if parallel is not None and parallel.form == "rows" and changes(parallel.nest[0], dst):
        text = f"the first reader of `{dst.name}` updates it row by row; each row would reload the whole tile"
        yield Finding("TL845", stmt.node, text)
    elif any(changes(loop, dst) for loop in inner):
        text = f"the loop that first reads `{dst.name}` also updates it; each iteration would reload the whole tile"
        yield Finding("TL845", stmt.node, text)
    elif inner and not _same_counts(item, inner):
        text = f"each iteration of this loop would reload all of `{dst.name}`"
        yield Finding("TL845", stmt.node, text, "warning")


def _same_counts(item: OnChip, inner: list[Loop]) -> bool:
    """The copy stands in a loop of its own that runs as often: the loops of the two cores, not yet joined."""
    own = [loop for loop in item.placed.loops if loop.kind != "parallel"]
    return bool(own) and any(loop.ranges and loop.ranges[0].extent == inner[0].ranges[0].extent for loop in own)
