"""What a store in ``T.Parallel`` becomes: one vector instruction, one per row, or a scalar loop.

Decides which accesses the later passes see as calls. Evidence: facts 3 and
``src/transform/ascend_lower_parallel_to_vector.cc``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from tl2npu.checks.operators.expr import Expr, expression, value_of
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories import assertions
from tl2npu.kernel.model import Loop, Memory, Operand, Range, Stmt, Store
from tl2npu.kernel.named_types import named_floats, named_types, product_types
from tl2npu.kernel.numbers import is_float, is_zero, without_type
from tl2npu.kernel.simplified import assigned

NO_INSTRUCTION = "no vector instruction computes"
"""How the reason of a scalar loop begins that another text of the same value does not mend."""
Form = Literal["vector", "rows", "scalar"]

_PLANE = 2
"""Axes that an operand must follow: one that does not, and its loop, runs row by row, an element of a tile too
(``CheckExpressionSupports2DVectorization``)."""
_NARROW = ("float16", "bfloat16")
_SHORT = ("int8", "uint8", "int16", "uint16")
_BITWISE = ("&", "|", "^", "bitwise_and", "bitwise_or", "bitwise_xor")
_SHIFTS = ("<<", ">>", "shift_left", "shift_right")
_NAMES = {"float": "float32", "half": "float16"}
_UNARY = ("exp", "log", "sqrt", "rsqrt", "abs")
_CASTS = ("cast", "Cast", "astype")
_TWO = ("max", "min", "bitwise_and", "bitwise_or", "shift_left", "shift_right")


@dataclass(frozen=True, eq=False)
class ParallelStore:
    """A store in a ``T.Parallel`` nest: ``outer`` is the row range of a 2-D nest, ``inner`` the other one.

    ``value`` is simplified as the compiler does. ``wide``: a Python float beside elements, a float32; ``untyped``: any
    number beside them that is an int32 or a float32. ``why``: the reason of a scalar loop, empty for the other forms.
    """

    placed: Placed
    store: Store
    nest: tuple[Loop, ...]
    outer: Range | None
    inner: Range
    value: Expr
    form: Form
    wide: Expr | None
    untyped: Expr | None
    why: str = ""


def parallel_stores(subject: Subject) -> Iterator[ParallelStore]:
    """Every store in a ``T.Parallel`` nest, in text order."""
    for placed in subject.statements:
        found = parallel_store(subject, placed)
        if found is not None:
            yield found


def nest_of(placed: Placed) -> tuple[Loop, ...]:
    """The ``T.Parallel`` loops around a statement, outermost first."""
    return tuple(loop for loop in placed.loops if loop.kind == "parallel")


@lru_cache(maxsize=4096)
def parallel_store(subject: Subject, placed: Placed) -> ParallelStore | None:
    """The store that a statement is, with its form; None for anything else than a store in ``T.Parallel``."""
    nest = nest_of(placed)
    stmt = placed.stmt
    ranges = tuple(item for loop in nest for item in loop.ranges)
    if not nest or not ranges or not isinstance(stmt, Store):
        return None
    value = value_of(stmt, subject.located.evaluator)
    outer = ranges[-2] if len(ranges) > 1 else None
    written = expression(assigned(stmt.node) or stmt.value.node, stmt.env, subject.located.evaluator)
    wide = _wide(written, _floats(subject))
    found = ParallelStore(placed, stmt, nest, outer, ranges[-1], value, "vector", wide, _untyped(written))
    return for_types(found, _sums(subject))


@lru_cache(maxsize=2)
def _sums(subject: Subject) -> Mapping[str, str]:
    """The names of types that can be float32 only, as they are those of products, and those that are asserted."""
    names = product_types(subject.kernel, named_types(subject.file.index.module))
    return MappingProxyType(dict.fromkeys(names, "float32") | assertions.types(subject.file, subject.located))


@lru_cache(maxsize=2)
def _floats(subject: Subject) -> frozenset[str]:
    return named_floats(subject.file.index.module)


def for_types(found: ParallelStore, words: Mapping[str, str]) -> ParallelStore:
    """The store where the names of element types stand for ``words``, as for one call of a factory."""
    why = _why_scalar(found, words)
    return replace(found, form="scalar" if why else _form(found), why=why)


def wider_number(found: ParallelStore, words: Mapping[str, str]) -> str:
    """Which number of Python is of another type than the elements of a store beside it; empty if none is."""
    kinds = {one_name(words.get(name, name)) for name in types_of(found.value, found.store.target)}
    kind = next(iter(kinds), "") if len(kinds) == 1 else ""
    number = found.wide if kind in _NARROW else found.untyped if kind in _SHORT else None
    if number is None:
        return ""
    wide = "int32" if found.wide is None else "float32"
    return f"`{code(number.node)}` is {wide} and `{found.store.target.buffer.name}` is {kind}"


def _untyped(value: Expr) -> Expr | None:
    """A number beside elements that is not written in a type; of operators on bits it has that of the elements."""
    if value.kind not in ("binary", "unary", "call") or value.name in (*_CASTS, *_BITWISE):
        return None
    for position, arg in enumerate(value.args):
        counts = value.name in _SHIFTS and position == 1 and arg.sym is not None and arg.sym.constant is not None
        if arg.kind == "number" and without_type(arg.node) is arg.node and not counts:
            return arg
    return next(filter(None, map(_untyped, value.args)), None)


def _wide(value: Expr, floats: Collection[str]) -> Expr | None:
    """A Python float beside elements; None if there is none."""
    if value.kind not in ("binary", "unary", "call") or value.name in _CASTS:
        return None
    numbers = (arg for arg in value.args if arg.kind == "number" and is_float(arg.node, floats))
    return next(numbers, None) or next(filter(None, (_wide(arg, floats) for arg in value.args)), None)


def _why_scalar(found: ParallelStore, words: Mapping[str, str]) -> str:
    """Why a store has no vector form; empty if it has one."""
    store, value, items = found.store, found.value, [found.inner, *([found.outer] if found.outer is not None else [])]
    if not all(_only_stores(loop.body, found.nest) for loop in found.nest):
        return "the loop has another statement than stores"
    if not value.loads:
        used = next((item.name for item in items if value.depends_on(item)), "")
        return f"`{code(store.node)}` uses `{used}` as a value" if used else f"`{code(store.node)}` stores a constant"
    if why := wider_number(found, words) or _no_instruction(value, items):
        return why
    one = value.kind == "load" or (value.kind == "call" and value.name in _CASTS and value.args[0].kind == "load")
    if not one and len({one_name(words.get(name, name)) for name in types_of(value, store.target)}) != 1:
        return f"`{code(store.node)}` has several element types"
    lows = [dim.lo for dim in store.target.dims or ()]
    if not any(lo.depends_on(str(found.inner.var)) for lo in lows):
        return f"`{code(store.node)}` stores to one element for all `{found.inner.name}`"
    if not lows[-1].depends_on(str(found.inner.var)):
        return f"`{found.inner.name}` is not the last index in `{code(store.node)}`"
    return ""


def _form(found: ParallelStore) -> Form:
    store, value, outer, inner = found.store, found.value, found.outer, found.inner
    if outer is None:
        return "vector"
    others = (stmt for loop in found.nest for stmt in loop.body if isinstance(stmt, Store) and stmt is not store)
    loads = [*value.loads, *(load for stmt in others for load in stmt.value.loads)]
    return "rows" if any(len(_axes(load, outer, inner)) < _PLANE for load in loads) else "vector"


def _only_stores(body: list[Stmt], nest: tuple[Loop, ...]) -> bool:
    return all(isinstance(stmt, Store) or stmt in nest for stmt in body)


def _axes(operand: Operand, outer: Range, inner: Range) -> set[str]:
    lows = [dim.lo for dim in operand.dims or ()]
    return {str(item.var) for item in (outer, inner) if any(lo.depends_on(str(item.var)) for lo in lows)}


def _no_instruction(value: Expr, items: Sequence[Range]) -> str:
    """Which part of a value is computed element by element; empty if none is."""
    if value.kind == "load" or (value.kind == "call" and value.name in _CASTS and value.args):
        return "" if value.kind == "load" or value.args[0].kind == "load" else _no_operator(value)
    for part in value.walk():
        used = next((item.name for item in items if part.kind == "number" and part.depends_on(item)), "")
        if used:
            return f"`{code(value.node)}` uses `{used}` as a value"
        if part.kind == "other" or (part.kind == "call" and part.name not in _UNARY + _TWO):
            return _no_operator(part)
        if part.kind == "unary" and part.name == "~" and part.args[0].kind != "load":
            return _no_operator(part)
        if part.kind == "binary" and part.name in ("//", "%", "^", "**", "?"):
            return _no_operator(part)
        left = part.kind == "binary" or (part.kind == "call" and part.name in ("max", "min") and not is_relu(part))
        if left and not part.args[0].loads:
            return f"the number stands on the left in `{code(part.node)}`"
    return ""


def _no_operator(part: Expr) -> str:
    return f"{NO_INSTRUCTION} `{code(part.node)}`"


def is_relu(part: Expr) -> bool:
    """True for the maximum of an element and 0."""
    return part.name == "max" and any(
        is_zero(zero.node) and one.kind == "load" for zero, one in (part.args[:2], part.args[1::-1])
    )


def types_of(value: Expr, target: Operand) -> set[str]:
    """The element types of a store, as the source names them."""
    kinds = {operand.buffer.dtype for operand in value.loads if operand.buffer.memory is not Memory.VAR}
    return {one_name(kind) for kind in (*kinds, target.buffer.dtype)}


def one_name(name: str) -> str:
    """One name for each element type."""
    return _NAMES.get(name, name)


def all_broadcast(store: ParallelStore) -> bool:
    """Every operand is a vector of the rows or of the columns: each becomes a tile before."""
    if store.outer is None:
        return False
    variables = (store.outer.var, store.inner.var)
    return all(
        len(load.buffer.shape) == 1 and load.dims is not None and load.dims[0].lo in variables
        for load in store.value.loads
    )
