"""The parts of an expression: walks over them, and the same expression with other ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tl2npu.simulator.ir.expr import Binary, Call, Cast, Expr, Load, Unary, Var, binary, cast


def walk(value: Any) -> Iterator[Expr]:
    """The expression and all in it, parents first. Things that are no expressions are skipped."""
    if not isinstance(value, Expr):
        return
    yield value
    if isinstance(value, Binary):
        children: tuple[Any, ...] = (value.left, value.right)
    elif isinstance(value, (Unary, Cast)):
        children = (value.value,)
    elif isinstance(value, Call):
        children = value.args
    elif isinstance(value, Load):
        children = value.indices
    else:
        return
    for child in children:
        yield from walk(child)


def rebuild(value: Any, change: Callable[[Expr], Any]) -> Any:
    """The expression with ``change`` applied to all parts, children first; ``change`` gives its argument to keep it."""
    if not isinstance(value, Expr):
        return value
    if isinstance(value, Binary):
        left, right = rebuild(value.left, change), rebuild(value.right, change)
        if left is not value.left or right is not value.right:
            value = binary(value.op, left, right)
    elif isinstance(value, Unary):
        inner = rebuild(value.value, change)
        if inner is not value.value:
            value = Unary(value.op, inner, value.dtype)
    elif isinstance(value, Cast):
        inner = rebuild(value.value, change)
        if inner is not value.value:
            value = cast(value.dtype, inner)
    elif isinstance(value, Call):
        args = tuple(rebuild(a, change) for a in value.args)
        if any(a is not b for a, b in zip(args, value.args, strict=True)):
            value = Call(value.name, args, value.dtype)
    elif isinstance(value, Load):
        indices = tuple(rebuild(i, change) for i in value.indices)
        if any(a is not b for a, b in zip(indices, value.indices, strict=True)):
            value = Load(value.buffer, indices)
    return change(value) if isinstance(value, Expr) else value


def substitute(value: Any, values: dict[Var, Any]) -> Any:
    """The expression with variables replaced."""
    return rebuild(value, lambda e: values.get(e, e) if isinstance(e, Var) else e)


def free(value: Any) -> set[Var]:
    """The variables that occur in an expression."""
    return {e for e in walk(value) if isinstance(e, Var)}
