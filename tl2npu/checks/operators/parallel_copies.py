"""TL783, TL887: ``T.Parallel`` with a plain copy, ``b[i, j] = a[i, j]``, which is no vector instruction.

The copy goes into *all* of a destination on the chip, from its first element on; the axes of both sides are those of
the buffers, of which one or two are written down (``src/transform/ascend_lower_parallel_to_vector.cc``,
``GenerateAscendCopy``). One that converts begins at the first element of the source too (``DecomposeExpression``).
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.operators.vector_form import ParallelStore, all_broadcast, types_of
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import element_types
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Operand
from tl2npu.kernel.symbolic import const

_MOST_AXES = 2


def check(subject: Subject, store: ParallelStore, in_rows: bool) -> Iterator[Finding]:
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
