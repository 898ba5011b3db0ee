"""What rewritten kernel code calls while it is traced (see ``rewrite.py``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder, OpCall
from tl2npu.simulator.frontend.loops import LoopSpec, serial
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Call, Const, Expr, Load, Var, binary, plain
from tl2npu.simulator.ir.stmt import Break, Continue, If, Op, Store, While


def emit(value: Any) -> None:
    """An expression statement."""
    if isinstance(value, OpCall):
        if not value.emitted:
            value.emitted = True
            Builder.current().add(Op(value.name, value.args, site=value.site))
    elif isinstance(value, (list, tuple)):
        for item in value:
            emit(item)


def loop(iterable: Any, names: list[str]) -> Iterator[Any]:
    """A ``for``: once with loop variables for a loop of the language, else as often as Python says."""
    builder = Builder.current()
    if isinstance(iterable, LoopSpec):
        yield from iterable.trace(builder, names)
        return
    if isinstance(iterable, (Expr, Buffer, Region)):
        raise TraceError(f"a loop over {type(iterable).__name__}; loops go over range, T.serial, ...", builder.here())
    for item in iterable:
        builder.loops.append(False)
        try:
            yield item
        finally:
            builder.loops.pop()


def while_(test: Callable[[], Any]) -> Iterator[None]:
    """A ``while``: traced if its condition is known only when the kernel runs."""
    builder = Builder.current()
    condition = _truth(test())
    if not isinstance(condition, Expr):
        while condition:
            builder.loops.append(False)
            try:
                yield
            finally:
                builder.loops.pop()
            condition = _truth(test())
        return
    statement = While(condition, [])
    builder.add(statement)
    builder.loops.append(True)
    with builder.inside(statement.body):
        yield
    builder.loops.pop()


@dataclass
class Branch:
    """An ``if`` while its arms are traced."""

    condition: Any
    statement: If | None = None


def condition(test: Any) -> Branch:
    """The test of an ``if``."""
    test = _truth(test)
    if not isinstance(test, Expr):
        return Branch(builtins.bool(test))
    statement = If(test, [], [])
    Builder.current().add(statement)
    return Branch(test, statement)


def then(branch: Branch) -> bool:
    """Whether to go through the first arm."""
    return _arm(branch, True)


def orelse(branch: Branch) -> bool:
    """Whether to go through the second arm."""
    return _arm(branch, False)


def _arm(branch: Branch, first: bool) -> bool:
    if branch.statement is None:
        return branch.condition is first
    Builder.current().bodies.append(branch.statement.then if first else branch.statement.orelse)
    return True


def end_branch(branch: Branch) -> None:
    """The end of an arm."""
    if branch.statement is not None:
        Builder.current().bodies.pop()


def break_() -> bool:
    """True if Python itself has to leave the loop."""
    return _leave(Break())


def continue_() -> bool:
    """True if Python itself has to start the next turn."""
    return _leave(Continue())


def _leave(statement: Break | Continue) -> bool:
    builder = Builder.current()
    if not builder.loops or not builder.loops[-1]:
        return True
    builder.add(statement)
    return False


def enter(context: Any, names: list[str], many: bool) -> Any:
    """A ``with``: frames of the language are told the names that they are given."""
    if hasattr(context, "named"):
        return context.named(names, many)
    return context


def bind(name: str, value: Any, old: Callable[[], Any]) -> Any:
    """``name = value``: a store for a scalar variable, a named value for an expression, else plain Python."""
    previous = _previous(old)
    if isinstance(previous, Buffer) and previous.memory == "var" and not isinstance(value, Buffer):
        builder = Builder.current()
        builder.add(Store(previous, (0,) * previous.ndim, builder.scalar(value, previous.dtype)))
        return previous
    if isinstance(value, Buffer) and value.name in ("", "?"):
        value.name = name
        return value
    if isinstance(value, OpCall):
        return value
    if isinstance(value, Expr) and not isinstance(value, (Var, Const)):
        return Builder.current().let(name, value)
    return value


def bind_many(names: tuple[str, ...], value: Any, olds: tuple[Callable[[], Any], ...]) -> Any:
    """``a, b = value``."""
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, Expr) else value
    if not isinstance(items, list) or len(items) != len(names):
        return value  # Python's own error
    return tuple(bind(n, v, o) for n, v, o in zip(names, items, olds, strict=True))


def annotate(name: str, annotation: Any, value: Any, given: bool, old: Callable[[], Any]) -> Any:
    """``name: annotation = value``: the type of a parameter (eager style), or a variable with its element type."""
    from tl2npu.simulator.frontend.eager import declare  # only eager functions declare parameters

    previous = _previous(old)
    if not given:
        return declare(name, previous, annotation)
    dtype = getattr(annotation, "name", annotation)
    if isinstance(value, (Expr, int, float)) and isinstance(dtype, str):
        value = expr.cast(dtype, value)
    return bind(name, value, old)


def _previous(old: Callable[[], Any]) -> Any:
    try:
        return old()
    except NameError:
        return None


def both(left: Any, right: Callable[[], Any]) -> Any:
    """``left and right``."""
    left = _truth(left)
    if not isinstance(left, Expr):
        return right() if left else left
    return binary("and", left, _truth(right()))


def either(left: Any, right: Callable[[], Any]) -> Any:
    """``left or right``."""
    left = _truth(left)
    if not isinstance(left, Expr):
        return left if left else right()
    return binary("or", left, _truth(right()))


def not_(value: Any) -> Any:
    """``not value``."""
    return expr.negate(_truth(value))


def choose(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes if test else no``."""
    test = _truth(test)
    if not isinstance(test, Expr):
        return yes() if test else no()
    return expr.call("if_then_else", test, yes(), no())


def _truth(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, Buffer) and value.memory == "var":
        return Load(value, (0,) * value.ndim)
    return value


def builtin(name: str, actual: Any) -> Any:
    """Python's ``min``, ``range``, ... where the name still means that."""
    if actual is not getattr(builtins, name):
        return actual
    return _BUILTINS[name]


def _extremum(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        values = [_truth(a) for a in (args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)]
        if any(isinstance(v, Expr) for v in values):
            return expr.call(name, *values)
        return getattr(builtins, name)(*args, **kwargs)

    return function


def _abs(value: Any) -> Any:
    return expr.call("abs", value) if isinstance(value, Expr) else builtins.abs(value)


def _round(value: Any, *digits: Any) -> Any:
    return Call("round", (value,), value.dtype) if isinstance(value, Expr) else builtins.round(value, *digits)


def _conversion(dtype: str, actual: Any) -> Callable[..., Any]:
    return lambda *args: expr.cast(dtype, args[0]) if args and isinstance(args[0], Expr) else actual(*args)


_BUILTINS: dict[str, Callable[..., Any]] = {
    "min": _extremum("min"),
    "max": _extremum("max"),
    "range": serial,
    "abs": _abs,
    "round": _round,
    "int": _conversion("int32", int),
    "float": _conversion("float32", float),
    "bool": _conversion("bool", bool),
}
