"""TL741: buffers of different shapes, parts without a size or of a late one; TL789: more than a tile has; TL886: copies
inside UB; TL892: columns.

The rows of a slice are packed one behind the other between global memory and UB, without the stride of the UB buffer.
The number of elements of a copy inside of UB is a template argument (common.h:261, ``copy_ub_to_ub``).
Evidence: facts 1 (g1_g_cols, gy_t2_colpartial, gy_ubub_col). Inside of UB see :mod:`tl2npu.kernel.memory.ub_copies`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.memory.ub_copies import sides
from tl2npu.kernel.model import Branch, Copy, Memory, Op, Operand, Scalar, Stmt
from tl2npu.kernel.simplified import literal
from tl2npu.kernel.sizes import FILLED, ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const, product, var

_TILES = (Memory.UB, Memory.L1, Memory.L0C)
_EVEN = 64
"""In place of a size that no call tells."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every copy between global memory and UB."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name == "tile.atomic_add":
            yield from _added(subject, stmt)
        if not isinstance(stmt, Copy):
            continue
        yield from _whole(subject, stmt)
        yield from _to_l0(subject, stmt)
        if not any(isinstance(parent, Branch) for parent in placed.parents):
            yield from _too_many(subject, stmt)
        if stmt.src.buffer.memory is stmt.dst.buffer.memory is Memory.UB:
            yield from _inside_of_ub(subject, stmt)
        else:
            yield from _late(subject, stmt)
            yield from _rows(subject, stmt)
        loads = stmt.src.buffer.memory is Memory.GM and stmt.dst.buffer.memory is Memory.UB
        stores = stmt.dst.buffer.memory is Memory.GM and stmt.src.buffer.memory is Memory.UB
        inner = stmt.dst if loads else stmt.src
        launch, pto = subject.kernel.launch, subject.target == "pto"
        # Target pto keeps the row stride in its own copy; in Developer mode its loads were measured packed.
        kept = pto and (stores or (launch is not None and launch.threads is None))
        if (loads or stores) and not kept and _is_column_slice(subject, inner):
            text = f"`{code(inner.node)}` is a part of the columns: the copy ignores the stride between its rows"
            yield Finding("TL892", stmt.node, text)


_WHOLE = "copy whole tiles: the compiler cuts loads and stores at the end of the tensor; or loop over rows"


def _whole(subject: Subject, copy: Copy) -> Iterator[Finding]:
    """TL741: two buffers without an index must have one shape (tilelang/language/copy.py)."""
    if copy.src.is_indexed and copy.dst.is_indexed and Memory.VAR not in _memories(copy):
        parts = " and ".join(f"`{code(side.node)}`" for side in (copy.src, copy.dst))
        yield Finding("TL741", copy.node, f"{parts} are single elements: nothing says how much to copy")
    left, right = copy.src.buffer.shape, copy.dst.buffer.shape
    if copy.src.dims is not None or copy.dst.dims is not None or "transpose" in copy.options:
        return
    if len(left) != len(right) or any(
        subject.known_different(one, other) for one, other in zip(left, right, strict=True)
    ):
        shapes = [", ".join(map(str, shape)) for shape in (left, right)]
        text = f"`{copy.src.buffer.name}` ({shapes[0]}) and `{copy.dst.buffer.name}` ({shapes[1]}) differ in shape"
        yield Finding("TL741", copy.node, f"{text}: say which part is copied")


def _memories(copy: Copy) -> tuple[Memory, Memory]:
    return copy.src.buffer.memory, copy.dst.buffer.memory


def _to_l0(subject: Subject, copy: Copy) -> Iterator[Finding]:
    """TL741: a part of L1 and the tile of L0 that it fills (``copy_l1_to_l0a`` of ``tl_templates/ascend/common.h``)."""
    if copy.src.buffer.memory is not Memory.L1 or copy.dst.buffer.memory not in (Memory.L0A, Memory.L0B):
        return
    src, dst = extents_of(copy.src), extents_of(copy.dst)
    if src is None or dst is None or (copy.src.dims is None and copy.dst.dims is None):
        return
    if subject.known_different(product(src), product(dst)):
        parts = " and ".join(f"`{code(side.node)}`" for side in (copy.src, copy.dst))
        yield Finding("TL741", copy.node, f"{parts} differ in size")


def _too_many(subject: Subject, copy: Copy) -> Iterator[Finding]:
    """TL789: a part of a tensor that has more rows or columns than the tile: nothing ends the copy with the tile.

    A load has the extents of its source; a store has those of the tensor as far as the tensor goes.
    """
    outer, inner = (copy.src, copy.dst) if copy.src.buffer.memory is Memory.GM else (copy.dst, copy.src)
    part, tile = extents_of(outer), extents_of(inner)
    if outer.buffer.memory is not Memory.GM or inner.buffer.memory not in _TILES or part is None or tile is None:
        return
    if "transpose" in copy.options or outer.dims is None or len(outer.dims) != len(outer.buffer.shape):
        return
    left = [size - dim.lo for size, dim in zip(outer.buffer.shape, outer.dims, strict=True)]
    for values in subject.together(*part, *tile, *left):
        sizes, own = values[: len(part)], values[len(part) : len(part) + len(tile)]
        if None in sizes or None in own:
            continue
        axes = [(n, size) for n, size in enumerate(sizes) if size is not None and size != 1]
        rooms = [size for size in own if size is not None and size != 1]
        for (n, size), room in zip(axes, rooms, strict=True) if len(axes) == len(rooms) else ():
            end = values[n - len(left)] if copy.dst is outer else None
            if min(size, size if end is None else end) > room:
                text = (
                    f"`{code(outer.node)}` has {size} elements along an axis of which `{code(inner.node)}` has {room}"
                )
                text += f": the copy {'fills' if copy.src is outer else 'reads'} what lies behind the tile"
                yield Finding("TL789", copy.node, text, help=f"copy {room} elements along this axis")
                return


def _added(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """TL892 of an atomic addition, as for copies; TL741: a slice with fewer axes than the tile (``ascend_tile.py``)."""
    source, target = stmt.args.get("src"), stmt.args.get("dst")
    if isinstance(source, Operand) and isinstance(target, Operand) and target.dims and not target.is_indexed:
        axes, needed = len(target.dims), len(extents_of(source) or ())
        if axes < needed:
            text = f"`{code(target.node)}` has {axes} of the {needed} axes of `{code(source.node)}`"
            yield Finding("TL741", stmt.node, text)
    if isinstance(source, Operand) and source.buffer.memory is Memory.UB and _is_column_slice(subject, source):
        text = f"`{code(source.node)}` is a part of the columns: the addition ignores the stride between its rows"
        yield Finding("TL892", stmt.node, text)


def _is_late(subject: Subject, extent: Sym) -> bool:
    """False for ``(vid + 1) * C // 2 - vid * C // 2`` too: the sizes of the factory are numbers for the compiler."""
    if not subject.late.is_late(extent):
        return False
    sizes = {name: _EVEN for name in extent.variables() if not subject.late.is_late(var(name))}
    return any(extent.substitute(sizes | known).constant is None for known in subject.values)


def _inside_of_ub(subject: Subject, copy: Copy) -> Iterator[Finding]:
    for side in (copy.src, copy.dst):
        if any(dim.extent is not None and _is_late(subject, dim.extent) for dim in side.dims or ()):
            text = f"`{code(side.node)}` has a size that is known at run time only: between two tiles the compiler"
            yield Finding("TL741", copy.node, f"{text} makes it a constant of the program", help=_WHOLE)
            return
    found = sides(copy)
    if found is None:
        return
    src, dst = found
    whole = [side for side in found if not subject.known_different(side.columns, side.stride)]
    if len(whole) == len(found):
        return
    for left, right, what in ((src.rows, dst.rows, "rows"), (src.columns, dst.columns, "columns")):
        if subject.known_different(left, right):
            text = f"`{code(copy.src.node)}` has {left} {what} and `{code(copy.dst.node)}` has {right}"
            yield Finding("TL886", copy.node, f"{text}: the copy uses the size of the source")
            return


def _late(subject: Subject, copy: Copy) -> Iterator[Finding]:
    """A window of a tile whose size is late; its rows are no constant of a store (``copy_ub_to_gm``, common.h)."""
    loads = copy.src.buffer.memory is Memory.GM
    inner = copy.dst if loads else copy.src
    if inner.buffer.memory is not Memory.UB or Memory.GM not in (copy.src.buffer.memory, copy.dst.buffer.memory):
        return
    dims = inner.dims or ()
    late = [dim for dim in dims if dim.extent is not None and not dim.is_point and _is_late(subject, dim.extent)]
    text = f"`{code(inner.node)}` has a size that is known at run time only"
    if late and late[-1] is dims[-1]:
        yield Finding("TL741", copy.node, f"{text}: the compiler makes it a constant of the program", help=_WHOLE)
    elif late and loads and not late[-1].lo.is_zero:
        yield Finding("TL741", copy.node, f"{text}: the copy fills rows behind the tile")
    elif late and loads and _overwrites(subject, copy):
        yield Finding("TL741", copy.node, f"{text}: the copy overwrites the rows behind it, which have a value")


def _overwrites(subject: Subject, copy: Copy) -> bool:
    """Whether a load of some rows of a tile replaces what a statement above stored behind them by ``pad_value``.

    ``copy_gm_to_ub`` has all rows of the tile where they are no constant (src/op/ascend.cc, ``compute_blocklen``), and
    fills it before it loads less, with types that ``Duplicate`` has.
    """
    tile, pad = copy.dst.buffer, copy.options.get("pad_value")
    if ITEM_SIZE.get(tile.dtype) not in FILLED:
        return False
    for placed in subject.statements:
        stmt = placed.stmt
        if stmt is copy:
            break
        if any(operand.buffer is tile for operand in writes(stmt)) and not _is_alike(stmt, pad):
            return True
    return False


def _is_alike(stmt: Stmt, pad: Scalar | None) -> bool:
    """A load, too, or a fill with the number that the load fills with."""
    if not isinstance(stmt, Op) or stmt.op.kind is not Kind.FILL:
        return isinstance(stmt, Copy) and stmt.src.buffer.memory is Memory.GM
    value = stmt.args.get("value")
    sides = [side.node if isinstance(side, Scalar) else cst.Integer("0") for side in (value, pad)]
    numbers = [literal(side) for side in sides]
    return code(sides[0]) == code(sides[1]) or (None not in numbers and numbers[0] == numbers[1])


def _rows(subject: Subject, copy: Copy) -> Iterator[Finding]:
    """Several rows of a tensor beside a vector: each begins a row of the vector's length, or of 32 bytes (common.h)."""
    outer, inner = (copy.src, copy.dst) if copy.src.buffer.memory is Memory.GM else (copy.dst, copy.src)
    extents, one = extents_of(outer), const(1)
    if inner.buffer.memory is not Memory.UB or outer.buffer.memory is not Memory.GM:
        return
    own = extents_of(inner) if inner.dims is not None else inner.buffer.shape
    if inner.dims is None and own is not None and len(own) > 1 and outer.dims is not None and len(outer.dims) == 1:
        rows, count = product(own[:-1]), extents[0] if extents is not None else product(own)
        if subject.known_different(rows, one) and subject.known_different(count, own[-1]):
            moved = f"the copy moves one of {_count(rows)} rows of `{code(inner.node)}`"
            yield Finding("TL741", copy.node, f"`{code(outer.node)}` has one axis: {moved}")
    if extents is None:
        return
    if own is None or any(size != one for size in own[:-1]) or not extents[:-1]:
        return
    if not subject.same(extents[-2], one):
        text = f"`{code(outer.node)}` has {_count(extents[-2])} rows and `{code(inner.node)}` has one"
        yield Finding("TL741", copy.node, f"{text}: the copy leaves gaps between the rows")


def _count(size: Sym) -> str:
    return "several" if size.constant is None else str(size.constant)


def _is_column_slice(subject: Subject, operand: Operand) -> bool:
    dims, shape = operand.dims, operand.buffer.shape
    if dims is None or len(dims) != len(shape) or len(dims) < 2:
        return False
    rows, last = dims[-2], dims[-1]
    if last.is_point or last.extent is None or rows.is_point or rows.extent == const(1):
        return False
    return not last.lo.is_zero or subject.known_different(last.extent, shape[-1])
