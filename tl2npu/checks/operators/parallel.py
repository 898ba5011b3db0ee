"""TL784, TL871, TL888, TL890, TL891, TL893, TL896: what ``T.Parallel`` turns into wrong or impossible instructions.

Evidence: facts 3, measured with the compiler at 95acbd7f; ``src/transform/ascend_lower_parallel_to_vector.cc``, read:
the left operand of an operation is a vector from its element on (1030-1070, ``HandleSimpleCase``) unless every operand
can be broadcast (530-620); a copy takes the whole destination (1788-1831, ``GenerateAscendCopy``), in every turn of a
loop over rows (730-880); a vector in a serial loop gets the elements of all turns (345-372, 450-461).
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.expr import Expr
from tl2npu.checks.operators.vector_form import (
    ParallelStore,
    all_broadcast,
    is_relu,
    nest_of,
    parallel_stores,
    types_of,
    wider_number,
)
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects import element_types
from tl2npu.dialects.functions import ASCEND_LOOPS, FUNCTIONS
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.alignment import start_of
from tl2npu.kernel.model import Loop, Memory, Operand, Range
from tl2npu.kernel.symbolic import const

_CONDITIONALS = ("if_then_else", "Select")
_MISSING = FUNCTIONS.keys() - ASCEND_LOOPS.keys() | {"pow"}
_CRASHING = ("max", "min")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every store in ``T.Parallel``."""
    for placed in subject.statements:
        if isinstance(placed.stmt, Loop) and placed.stmt.kind == "parallel":
            yield from _check_nest(placed, placed.stmt)
    stores = list(parallel_stores(subject))
    rows = {id(store.nest[0]) for store in stores if store.form == "rows"}
    for store in stores:
        yield from _check_value(subject, store)
        columns = list(_check_columns(subject, store))
        yield from columns or _check(subject, store, id(store.nest[0]) in rows)
        yield from _check_turns(store)


def _check_nest(placed: Placed, loop: Loop) -> Iterator[Finding]:
    outer = nest_of(placed)
    ranges = [item for one in (*outer, loop) for item in one.ranges]
    before = sum(len(one.ranges) for one in outer)
    if len(ranges) > 2 >= before:
        yield Finding("TL871", loop.node, f"T.Parallel over {len(ranges)} axes; at most 2 can be vectorised")


def _check_value(subject: Subject, store: ParallelStore) -> Iterator[Finding]:
    value = store.value
    node = store.store.node
    for part in value.walk():
        if part.kind == "call" and part.name in _CONDITIONALS:
            yield Finding("TL871", node, f"the compiler generates invalid C++ for T.{part.name} in T.Parallel")
            return
    yield from _check_intrinsics(store)
    for part in value.walk():
        left = _row_on_the_left(part, store.outer, store.inner) if store.outer is not None else None
        if left is not None:
            text = (
                f"`{code(left.node)}` holds one value per row: on the left, the compiler reads it as a row of columns"
            )
            yield Finding("TL890", node, text)
            return
        left = _taken_for_columns(part, store)
        if left is not None:
            text = f"`{code(left.node)}` is one value in `{code(part.node)}`, but is read as columns that start there"
            yield Finding("TL890", node, text)
            return
    other = _transposed(store)
    if other is not None:
        text = f"`{code(other.node)}` has its axes swapped: the compiler reads `{other.buffer.name}` in order"
        yield Finding("TL784", node, text)
        return
    text = _badly_spread(subject, store)
    if text:
        yield Finding("TL890", node, text)
        return
    other = _out_of_order(store)
    if other is not None:
        text = f"`{code(other.node)}` skips elements: the compiler takes those of `{other.buffer.name}` in order"
        yield Finding("TL784", node, text)
        return
    yield from _check_global(subject, store)


def _check_intrinsics(store: ParallelStore) -> Iterator[Finding]:
    node = store.store.node
    for part in store.value.walk():
        if part.kind == "call" and part.name in _MISSING:
            yield Finding("TL896", node, f"T.{part.name} has no vector instruction in T.Parallel")
        elif part.kind == "call" and part.name in ASCEND_LOOPS and part.args and part.args[0].kind != "load":
            shown = code(part.args[0].node)
            yield Finding("TL896", node, f"T.{part.name} takes a buffer element in T.Parallel, not `{shown}`")
        elif part.kind == "call" and part.name in _CRASHING and _crashes(part, store):
            shown = code(part.node) if code(part.node) in code(node) else code(node)  # it may be simplified
            yield Finding("TL896", node, f"`{shown}` crashes the compiler: use T.tile.{part.name}")
        elif part.kind == "binary" and part.name in ("&", "|") and any(not arg.loads for arg in part.args):
            yield Finding("TL896", node, f"`{code(part.node)}` crashes the compiler")
        elif part.kind == "binary" and part.name in ("<<", ">>") and part.args[1].loads:
            yield Finding("TL896", node, f"`{code(part.node)}` shifts by elements, for which there is no instruction")
        else:
            continue
        return


def _crashes(part: Expr, store: ParallelStore) -> bool:
    """``max(a, 0.0)`` is relu; another number behind, or a vector of one value per row, has no instruction.

    With a number in front the statement runs element by element (95acbd7f, generated code for ``ascendc``).
    """
    if (part.args and not part.args[0].loads) or wider_number(store, {}):
        return False
    if any(not arg.loads for arg in part.args):
        return not is_relu(part)
    if store.outer is None:
        return False
    spans = [(arg.depends_on(store.outer), arg.depends_on(store.inner)) for arg in part.args]
    return any(span != (True, True) for span in spans) and (True, True) in spans


def _row_on_the_left(part: Expr, outer: Range, inner: Range) -> Expr | None:
    if part.kind != "binary" or part.name not in ("+", "-", "*", "/") or len(part.args) != 2:
        return None
    left, right = part.args
    per_row = bool(left.loads) and left.depends_on(outer) and not left.depends_on(inner)
    return left if per_row and right.depends_on(inner) else None


def _taken_for_columns(part: Expr, store: ParallelStore) -> Expr | None:
    """The element, one for all columns, that an operation takes as its vector: ``m[i] * c``, ``exp(m[i])``."""
    if store.form == "scalar" or all_broadcast(store) or not part.args:
        return None
    first = part.args[0]
    takes = (part.kind == "binary" and part.name in ("+", "-", "*", "/")) or (
        part.kind == "call" and part.name in ASCEND_LOOPS
    )
    if not takes or first.kind != "load" or not first.loads or first.depends_on(store.inner):
        return None
    return first if first.loads[0].buffer.memory is Memory.UB else None


def _transposed(store: ParallelStore) -> Operand | None:
    """An operand whose last axis is that of the rows: an instruction goes through its elements as they lie."""
    target = store.store.target.dims or ()
    if store.form == "scalar" or store.outer is None or not target:
        return None
    outer, inner = str(store.outer.var), str(store.inner.var)
    if not target[-1].lo.depends_on(inner):
        return None  # a loop over the elements
    for load in store.value.loads:
        dims = load.dims or ()
        if dims and dims[-1].lo.depends_on(outer) and any(dim.lo.depends_on(inner) for dim in dims[:-1]):
            return load
    return None


def _out_of_order(store: ParallelStore) -> Operand | None:
    """An operand of which an instruction, which goes from its first element on, takes others than the loop means.

    Executed for ``pto``: columns, diagonals, every second element, ``i // 2``, ``15 - i``; copies and destinations too.
    Where an index is an element of a tile, an operation runs row by row, a copy does not.
    """
    if store.form == "scalar" or store.inner.extent.constant == 1:
        return None
    inner, outer = store.inner, [store.outer] if store.outer is not None and store.outer.extent.constant != 1 else []
    by_rows = store.form == "rows" or (store.value.kind != "load" and any(load.loads for load in store.value.loads))
    for operand in (store.store.target, *store.value.loads):
        dims, shape = operand.dims or (), operand.buffer.shape
        if operand.buffer.memory is Memory.GM:
            rests = [dim.lo - item.var for dim in dims for item in (inner, *outer) if dim.lo.depends_on(str(item.var))]
        elif operand.buffer.memory is Memory.UB and start_of(operand).depends_on(str(inner.var)):
            rests = [start_of(operand) - inner.var]
            if outer and not by_rows and rests[0].depends_on(str(outer[0].var)):
                rests = [rests[0] - outer[0].var * (shape[-1] if len(shape) > 1 else inner.extent)]
        else:
            continue
        moving = (inner,) if by_rows else (inner, *outer)
        if any(rest.depends_on(str(item.var)) for rest in rests for item in moving):
            return operand
    return None


def _badly_spread(subject: Subject, store: ParallelStore) -> str:
    """Why vectors without a tile beside them are not spread as they should be; empty where they are (facts 11).

    Each vector of an expression becomes a tile before, of which an operation then takes all elements on its left, but
    the first element on its right (760, ``IsScalarAccess``). A loop over one row is none, so nothing is spread there.
    """
    loads = store.value.loads
    if store.form == "scalar" or store.outer is None or not loads or not all_broadcast(store):
        return ""
    if any(load.buffer.memory is not Memory.UB for load in loads):
        return ""
    if 1 in subject.numbers(store.outer.extent) and not store.value.depends_on(store.inner):
        row = "a single row" if store.outer.extent.constant == 1 else "a single row in a call of this file"
        return f"`{code(store.value.node)}` is the value of {row}, but is read as columns that start there"
    if store.outer.extent.constant == 1:
        return ""
    if len(loads) > 1:
        return f"`{code(store.value.node)}` is made of vectors only: of the second one a single element is taken"
    return ""


def _check_turns(store: ParallelStore) -> Iterator[Finding]:
    """TL888: a serial loop around nothing but one loop over a vector."""
    loops = store.placed.loops
    if store.form == "scalar" or len(store.nest) != 1 or len(store.nest[0].ranges) != 1 or len(loops) < 2:
        return
    around, inner = loops[-2], loops[-1]
    alone = around.kind == "serial" and len(around.ranges) == 1 and around.body == [inner]
    if alone and inner is store.nest[0] and len(store.store.target.buffer.shape) == 1:
        if around.ranges[0].extent.constant in (0, 1):
            return
        text = f"each iteration of the loop over `{around.ranges[0].name}` computes the elements of all iterations"
        yield Finding("TL888", store.store.node, f"{text}, past the end of `{store.store.target.buffer.name}`")


def _check_global(subject: Subject, store: ParallelStore) -> Iterator[Finding]:
    if store.value.kind == "load":
        return
    for load in store.value.loads:
        if load.buffer.memory is not Memory.GM:
            continue
        tile = _moves(load, store)
        if tile or subject.target == "pto":
            how = "copy the tile into UB first" if tile else "bind the value to a name before the loop"
            text = f"`{code(load.node)}` is in global memory: {how}"
            yield Finding("TL893", store.store.node, text)
            return


def _moves(load: Operand, store: ParallelStore) -> bool:
    items = [store.inner, *([store.outer] if store.outer is not None else [])]
    return any(dim.lo.depends_on(str(item.var)) for item in items for dim in load.dims or ())


def _check_columns(subject: Subject, store: ParallelStore) -> Iterator[Finding]:
    """TL891: one instruction for the tile takes whole rows, whatever part of the columns the loop means.

    An instruction for each row takes the columns of the loop (730-880), except for the plain copy of a tile.
    """
    if store.form == "scalar" or store.outer is None or store.form == "rows":
        return
    inner = store.inner
    for operand in (store.store.target, *store.value.loads):
        if operand.buffer.memory is not Memory.UB or len(operand.dims or ()) < 2 or operand.dims is None:
            continue
        last, columns = operand.dims[-1], operand.buffer.shape[-1]
        if not last.lo.depends_on(str(inner.var)):
            continue
        shift = last.lo - inner.var
        if (shift.constant or 0) != 0 or (not shift.is_zero and not shift.depends_on(str(inner.var))):
            yield Finding("TL891", store.store.node, f"`{code(operand.node)}` starts in the middle of the columns")
            return
        if columns != const(1) and subject.known_different(inner.extent, columns):
            text = f"the loop over `{inner.name}` does not cover all columns of `{operand.buffer.name}`"
            yield Finding("TL891", store.store.node, text)
            return


# TL783, TL887: ``T.Parallel`` with a plain copy, ``b[i, j] = a[i, j]``, which is no vector instruction.
#
# The copy goes into *all* of a destination on the chip, from its first element on; the axes of both sides are those of
# the buffers, of which one or two are written down (``src/transform/ascend_lower_parallel_to_vector.cc``,
# ``GenerateAscendCopy``). One that converts begins at the first element of the source too (``DecomposeExpression``).

_MOST_AXES = 2


def _check(subject: Subject, store: ParallelStore, in_rows: bool) -> Iterator[Finding]:
    """One finding about a store of a plain element. ``in_rows``: another statement of the loop makes rows of it."""
    target, value = store.store.target, store.value
    if store.form == "scalar" or value.kind != "load" or store.store.augmented or not value.loads:
        return
    source = value.loads[0]
    if target.dims is None or not source.dims or source.buffer.memory is Memory.VAR or all_broadcast(store):
        return
    if _is_loop(subject, source, target) or len(target.buffer.shape) != len(target.dims):
        return
    node, shown = store.store.node, f"`{code(store.store.node)}`"
    text = _ranks(source, target)
    if text and not _converts(store):
        yield Finding("TL783", node, text)
    elif target.buffer.memory is not Memory.UB:
        return
    elif in_rows and len(target.dims) > 1:
        yield Finding("TL887", node, f"{shown} would run once for each row, as another statement of the loop has rows")
    elif _goes_elsewhere(subject, store, source):
        yield Finding("TL887", node, f"{shown} would copy into all of `{target.buffer.name}`")
    elif _converts(store) and _starts_inside(store, source):
        yield Finding("TL887", node, f"{shown} would convert `{source.buffer.name}` from its first element on")


def _is_loop(subject: Subject, source: Operand, target: Operand) -> bool:
    """Rows of different length in UB are copied by a loop over the elements."""
    buffers = source.buffer, target.buffer
    if any(len(buffer.shape) < _MOST_AXES or buffer.memory is not Memory.UB for buffer in buffers):
        return False
    return subject.known_different(source.buffer.shape[-1], target.buffer.shape[-1])


def _ranks(source: Operand, target: Operand) -> str:
    """Why the compiler dies: "IndexError: indexing 1 on an array of size 1", "Buffer is 3-dimensional"."""
    for buffer in (source.buffer, target.buffer):
        if len(buffer.shape) > _MOST_AXES:
            return f"`{buffer.name}` has {len(buffer.shape)} axes: a copy in T.Parallel takes at most {_MOST_AXES}"
    if len(source.buffer.shape) > len(target.buffer.shape) and target.buffer.memory is not Memory.GM:
        return f"a copy in T.Parallel cannot go from two axes (`{source.buffer.name}`) to one (`{target.buffer.name}`)"
    return ""


def _converts(store: ParallelStore) -> bool:
    known = [element_types.known(name) for name in types_of(store.value, store.store.target)]
    return len(known) > 1 and all(known)


def _starts_inside(store: ParallelStore, source: Operand) -> bool:
    variables = {str(item.var): 0 for loop in store.nest for item in loop.ranges}
    return any(not dim.lo.substitute(variables).is_zero for dim in source.dims or ())


def _goes_elsewhere(subject: Subject, store: ParallelStore, source: Operand) -> bool:
    target = store.store.target
    items = [store.outer, store.inner] if store.outer is not None else [store.inner]
    dims, shape = target.dims or (), target.buffer.shape
    if len(items) > len(dims):
        return False
    if len(items) < len(dims):  # a row of a tile
        return shape[0] != const(1) and (len(source.buffer.shape) > 1 or not dims[0].lo.is_zero)
    for dim, size, item in zip(dims, shape, items, strict=True):
        shift = dim.lo - item.var
        if (shift.constant or 0) != 0 or (len(items) > 1 and subject.known_different(item.extent, size)):
            return True
    return False
