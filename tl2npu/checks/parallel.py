"""TL871, TL890, TL891, TL893, TL896: what ``T.Parallel`` turns into wrong or impossible vector instructions.

Evidence: facts 3, measured with the compiler at 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.expr import Expr
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.checks.vector_form import ParallelStore, nest_of, parallel_stores
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Memory, Operand, Range
from tl2npu.kernel.symbolic import const

_CONDITIONALS = ("if_then_else", "Select")
_INTRINSICS = ("exp", "log", "sqrt", "rsqrt", "abs")
_MISSING = ("exp2", "exp10", "log2", "log10", "log1p", "tanh", "sigmoid", "sin", "cos", "erf", "pow")
_CRASHING = ("max", "min")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every store in ``T.Parallel``."""
    for placed in subject.statements:
        if isinstance(placed.stmt, Loop) and placed.stmt.kind == "parallel":
            yield from _check_nest(placed, placed.stmt)
    for store in parallel_stores(subject):
        yield from _check_value(subject, store)
        yield from _check_columns(subject, store)


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
            yield Finding("TL871", node, f"T.{part.name} in T.Parallel becomes code that does not compile")
            return
    yield from _check_intrinsics(store)
    if store.outer is not None:
        for part in value.walk():
            left = _row_on_the_left(part, store.outer, store.inner)
            if left is not None:
                text = f"`{code(left.node)}` holds one value per row and stands on the left: it is taken for columns"
                yield Finding("TL890", node, text)
                return
    yield from _check_global(subject, store)


def _check_intrinsics(store: ParallelStore) -> Iterator[Finding]:
    node = store.store.node
    for part in store.value.walk():
        if part.kind == "call" and part.name in _MISSING:
            yield Finding("TL896", node, f"T.{part.name} has no vector instruction in T.Parallel")
        elif part.kind == "call" and part.name in _INTRINSICS and part.args and part.args[0].kind != "load":
            shown = code(part.args[0].node)
            yield Finding("TL896", node, f"T.{part.name} takes a buffer element in T.Parallel, not `{shown}`")
        elif part.kind == "call" and part.name in _CRASHING and _crashes(part, store):
            yield Finding("TL896", node, f"`{code(part.node)}` crashes the compiler: use T.tile.{part.name}")
        elif part.kind == "binary" and part.name in ("&", "|") and any(not arg.loads for arg in part.args):
            yield Finding("TL896", node, f"`{code(part.node)}` crashes the compiler")
        else:
            continue
        return


def _crashes(part: Expr, store: ParallelStore) -> bool:
    """``max(a, 0.0)`` is relu; another number, or a vector of one value per row, has no instruction."""
    scalars = [arg for arg in part.args if not arg.loads]
    if scalars:
        return part.name == "min" or not all(_is_zero(arg) for arg in scalars)
    if store.outer is None:
        return False
    spans = [(arg.depends_on(store.outer), arg.depends_on(store.inner)) for arg in part.args]
    return any(span != (True, True) for span in spans) and (True, True) in spans


def _is_zero(arg: Expr) -> bool:
    return code(arg.node).strip("()").rstrip("0") in ("", "0.", ".")


def _row_on_the_left(part: Expr, outer: Range, inner: Range) -> Expr | None:
    if part.kind != "binary" or part.name not in ("+", "-", "*", "/") or len(part.args) != 2:
        return None
    left, right = part.args
    per_row = bool(left.loads) and left.depends_on(outer) and not left.depends_on(inner)
    return left if per_row and right.depends_on(inner) else None


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
    """TL891: the vector instruction takes whole rows, whatever part of the columns the loop means."""
    if store.form == "scalar" or store.outer is None:
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
            text = f"the loop over `{inner.name}` does not run over all columns of `{operand.buffer.name}`"
            yield Finding("TL891", store.store.node, text)
            return
