"""Values that are whole numbers for certain: casts to integers keep them, and powers of two of them are exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tl2npu.kernel import element_types
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Kernel, Store
from tl2npu.passes.gpu.elementwise import functions
from tl2npu.passes.gpu.elementwise.body import Item, Put
from tl2npu.passes.gpu.elementwise.tree import Expr


def tiles(kernel: Kernel, items: Iterable[Item]) -> tuple[frozenset[str], frozenset[str]]:
    """The tiles that hold whole numbers only, and those that hold values that should be exact and are not."""
    others = {
        access.operand.buffer.name
        for stmt in kernel.walk()
        if not isinstance(stmt, Store)
        for access in accesses(stmt)
        if access.writes
    }
    stored: dict[str, list[Expr]] = {}
    for put in _puts(items):
        if put.target is not None:
            stored.setdefault(put.target.name, []).append(put.value)
    whole = frozenset(name for name, values in stored.items() if name not in others and all(map(is_whole, values)))
    return whole, frozenset(name for name, values in stored.items() if any(map(inexact, values)))


def _puts(items: Iterable[Item]) -> Iterator[Put]:
    for item in items:
        if isinstance(item, Put):
            yield item
        else:
            yield from _puts((*item.then, *item.orelse))


def is_whole(value: Expr) -> bool:
    """True if every element of a value is a whole number, an infinity or NaN."""
    if value.kind == "number":
        return value.name == "integer" or (value.value is not None and value.value.is_integer())
    if value.whole:
        return True
    if value.kind in ("load", "cast") and element_types.is_integer(value.dtype):
        return True
    if value.kind == "index":
        return True
    if value.kind == "cast":
        return value.dtype in ("float32", "float64") and is_whole(value.args[0])
    if value.kind == "call":
        if value.name in functions.ROUNDING or value.name in functions.LOG2_ROUNDED.values():
            return True
        return value.name in ("max", "min", "clamp", "abs") and all(map(is_whole, value.args))
    if value.kind == "select":
        return all(map(is_whole, value.args[1:]))
    if value.kind == "negative" or (value.kind == "binary" and value.name in ("+", "-", "*")):
        return value.dtype in ("", "float32") and all(map(is_whole, value.args))
    return False


def doubtful(value: Expr, approximate: frozenset[str] = frozenset()) -> Expr | None:
    """The first rounding, conversion to an integer or test for equality of a value that should be exact and is not.

    ``approximate``: tiles that hold such values. Rounded logarithms to base two and powers of two are exact.
    """
    for part in value.walk():
        inner: tuple[Expr, ...] = ()
        if part.kind == "call" and part.name in functions.ROUNDING:
            inner = () if is_rounded_log2(part) else part.args
        elif (part.kind == "cast" and element_types.is_integer(part.dtype) and not is_whole(part.args[0])) or (
            part.kind == "compare" and part.name in ("==", "!=")
        ):
            inner = part.args
        if any(_inexact(found, approximate) for arg in inner for found in arg.walk()):
            return part
    return None


def _inexact(value: Expr, approximate: frozenset[str]) -> bool:
    if value.kind == "load":
        return value.name in approximate
    if value.kind != "call" or value.name not in functions.INEXACT:
        return False
    return not is_power_of_two(value) and not (value.name == "pow" and value.args[-1].value in (1.0, 2.0, 3.0))


def inexact(value: Expr) -> bool:
    """True for a value that is the result of such a function, sums and products of it among them."""
    if value.kind == "binary" or value.kind == "negative":
        return any(map(inexact, value.args))
    return _inexact(value, frozenset())


def is_rounded_log2(value: Expr) -> bool:
    """``ceil(log2(x))`` and ``floor(log2(x))``."""
    (arg,) = value.args[:1] or (value,)
    return value.name in functions.LOG2_ROUNDED and arg.kind == "call" and arg.name == "log2"


def is_power_of_two(value: Expr) -> bool:
    """``exp2(k)`` and ``pow(2, k)`` of a whole number."""
    if value.kind != "call" or not value.axes:
        return False
    if value.name == "exp2":
        return is_whole(value.args[0])
    return value.name == "pow" and value.args[0].value == 2.0 and is_whole(value.args[1])
