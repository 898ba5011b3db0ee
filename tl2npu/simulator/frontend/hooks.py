"""What rewritten kernel code calls while it is traced (see ``rewrite.py``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend import scopes
from tl2npu.simulator.frontend.builder import Builder, OpCall, kind_of
from tl2npu.simulator.frontend.loops import LoopSpec, serial
from tl2npu.simulator.frontend.parameters import declare
from tl2npu.simulator.frontend.scopes import Frame, Variable
from tl2npu.simulator.ir import expr
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Call, Const, Expr, Var, binary, plain
from tl2npu.simulator.ir.stmt import Break, Continue, If, Op, Store, While

_PRINTS = {"print", "printf", "dump_tensor", "device_assert"}


def emit(value: Any) -> None:
    """An expression statement."""
    if isinstance(value, OpCall):
        if not value.emitted:
            value.emitted = True
            if Builder.current().launch is None and value.name.removeprefix("npuir.") in _PRINTS:
                return  # before the launch there is no core that could print
            Builder.current().add(Op(value.name, value.args, site=value.site))
    elif isinstance(value, (list, tuple)):
        for item in value:
            emit(item)


def loop(iterable: Any, names: list[str], frame: Frame) -> Iterator[Any]:
    """A ``for``: once with loop variables for a loop of the language, else as often as Python says."""
    builder = Builder.current()
    if isinstance(iterable, LoopSpec):
        frame.traced = True
        builder.open.append("loop")
        yield from iterable.trace(builder, names)
        builder.open.pop()
        return
    if isinstance(iterable, (Expr, Buffer, Region)):
        raise TraceError(f"a loop over {kind_of(iterable)}; loops go over range, T.serial, ...", builder.here())
    for item in iterable:
        builder.open.append("python")
        try:
            yield item
        finally:
            builder.open.pop()


def while_(test: Callable[[], Any], frame: Frame) -> Iterator[None]:
    """A ``while``, always traced: a condition that never changes while the kernel runs has no meaning but false."""
    builder = Builder.current()
    condition = plain(test())
    if not isinstance(condition, Expr):
        if condition:
            raise TraceError(
                "the condition of this while is a constant of the kernel: it would never end (use T.alloc_var for "
                "what changes)",
                builder.here(),
            )
        return
    frame.traced = True
    statement = While(condition, [])
    builder.add(statement)
    builder.open.append("loop")
    with builder.inside(statement.body):
        yield
    builder.open.pop()


@dataclass
class Branch:
    """An ``if`` while its arms are traced."""

    condition: Any
    statement: If | None = None


def condition(test: Any, frame: Frame) -> Branch:
    """The test of an ``if``."""
    test = plain(test)
    if isinstance(test, (Buffer, Region, OpCall)):
        raise TraceError(f"{kind_of(test)} is not a condition", Builder.current().here())
    if not isinstance(test, Expr):
        return Branch(builtins.bool(test))
    frame.traced = True
    statement = If(test, [], [])
    Builder.current().add(statement)
    return Branch(test, statement)


def again(branch: Branch, frame: Frame) -> None:
    """Before the second arm of an ``if``."""
    frame.traced = branch.statement is not None


def then(branch: Branch) -> bool:
    """Whether to go through the first arm."""
    return _arm(branch, True)


def orelse(branch: Branch) -> bool:
    """Whether to go through the second arm."""
    return _arm(branch, False)


def _arm(branch: Branch, first: bool) -> bool:
    if branch.statement is None:
        return branch.condition is first
    builder = Builder.current()
    builder.open.append("branch")
    builder.bodies.append(branch.statement.then if first else branch.statement.orelse)
    return True


def end_branch(branch: Branch) -> None:
    """The end of an arm."""
    if branch.statement is not None:
        builder = Builder.current()
        builder.open.pop()
        builder.bodies.pop()


def frame(names: tuple[str, ...], *readers: Callable[[], Any]) -> Frame:
    """Before a loop or branch that assigns names."""
    return scopes.frame(names, readers)


def after(frame: Frame, place: str, *readers: Callable[[], Any]) -> tuple[Any, ...]:
    """Behind it: what the names are now."""
    return frame.after(readers, Builder.current().npu, place)


def break_() -> bool:
    """True if Python itself has to leave the loop."""
    return _leave(Break(), "break")


def continue_() -> bool:
    """True if Python itself has to start the next turn."""
    return _leave(Continue(), "continue")


def _leave(statement: Break | Continue, word: str) -> bool:
    builder = Builder.current()
    inner = builder.open[::-1]
    loops = [n for n, kind in enumerate(inner) if kind != "branch"]
    if not loops:
        raise TraceError(f"a {word} outside of a loop", builder.here())
    if inner[loops[0]] == "python":
        if loops[0] > 0:
            raise TraceError(
                f"a {word} that depends on a value known only when the kernel runs, in a loop that is unrolled while "
                "the kernel is traced",
                builder.here(),
            )
        return True
    builder.add(statement)
    return False


def result(value: Any) -> Any:
    """``return value``: possible only where no loop or branch of the program is open."""
    builder = Builder.current()
    if "loop" in builder.open or "branch" in builder.open:
        raise TraceError("a return inside a loop or branch of the kernel", builder.here())
    return value


def asserted(test: Any) -> Any:
    """The condition of an ``assert``."""
    if isinstance(plain(test), Expr):
        if Builder.current().on_launch is not None:
            return True  # eager style: the extents are still being looked for
        raise TraceError("an assert about a value known only when the kernel runs", Builder.current().here())
    return test


def refuse(what: str) -> None:
    """A statement of Python that the language does not have."""
    raise TraceError(f"{what} is not part of the language", Builder.current().here())


def enter(context: Any, names: list[str], many: bool) -> Any:
    """A ``with``: frames of the language are told the names that they are given."""
    if hasattr(context, "named"):
        return context.named(names, many)
    return context


def bind(name: str, value: Any, old: Callable[[], Any]) -> Any:
    """``name = value``: a store for a variable, a named value for an expression, else plain Python."""
    builder = Builder.current()
    before = scopes.previous(old)
    fresh = isinstance(value, Variable) and value.buffer.name == "?"
    if isinstance(before, Variable) and not fresh and isinstance(value, (Expr, int, float)):
        builder.add(Store(before.buffer, before.indices, builder.scalar(value, before.buffer.dtype)))
        return before
    if isinstance(value, Buffer) or fresh:
        return _named(name, value)
    if isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            if isinstance(item, (Buffer, Variable)):
                _named(f"{name}_{number}", item)
        return value
    if isinstance(value, OpCall):
        return value
    if isinstance(value, Const):
        return plain(value)
    if isinstance(value, Expr) and not isinstance(value, Var):
        return builder.let(name, value)
    return value


def once(value: Any) -> Any:
    """The right side of ``a = b = value``: read once."""
    fresh = isinstance(value, Variable) and value.buffer.name == "?"
    if isinstance(value, Expr) and not isinstance(value, (Var, Const)) and not fresh:
        return Builder.current().let("value", value)
    return value


def _named(name: str, value: Any) -> Any:
    buffer = value.buffer if isinstance(value, Variable) else value
    if buffer.name in ("", "?"):
        buffer.name = name
    return value


def unpack(value: Any, count: int) -> Any:
    """The right side of ``a, b = value``: its items, read before any of the names changes."""
    if isinstance(value, (Expr, Buffer, Region)):
        raise TraceError(f"{kind_of(value)} cannot be taken apart into {count} names", Builder.current().here())
    items = list(value)
    if len(items) != count:
        raise TraceError(f"{len(items)} value(s) for {count} names", Builder.current().here())
    builder = Builder.current()
    return [builder.let(i.buffer.name, i) if isinstance(i, Variable) and i.buffer.name != "?" else i for i in items]


def annotate(name: str, annotation: Any, value: Any, given: bool, old: Callable[[], Any]) -> Any:
    """``name: annotation = value``: the type of a parameter (eager style), or a variable with its element type."""
    if not given:
        before = scopes.previous(old)
        return declare(name, None if before is scopes.NOTHING else before, annotation)
    dtype = getattr(annotation, "name", annotation)
    if isinstance(value, (Expr, int, float)) and isinstance(dtype, str):
        value = expr.cast(dtype, value)
    return bind(name, value, old)


def store(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``."""
    if isinstance(target, Variable):
        target, key = target.buffer, target.within(key)
    if not isinstance(target, Buffer):
        target[key] = value
        return
    Builder.current().store(target, key, value)


slice = builtins.slice


def update(target: Any, key: Any, operation: Callable[[Any], Any]) -> None:
    """``target[key] += value``."""
    store(target, key, operation(target[key]))


def both(left: Any, right: Callable[[], Any]) -> Any:
    """``left and right``."""
    left = plain(left)
    if not isinstance(left, Expr):
        return right() if left else left
    return binary("and", left, plain(right()))


def either(left: Any, right: Callable[[], Any]) -> Any:
    """``left or right``."""
    left = plain(left)
    if not isinstance(left, Expr):
        return left if left else right()
    return binary("or", left, plain(right()))


def not_(value: Any) -> Any:
    """``not value``."""
    return expr.negate(plain(value))


def choose(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes if test else no``."""
    test = plain(test)
    if not isinstance(test, Expr):
        return yes() if test else no()
    return expr.call("if_then_else", test, yes(), no())


def builtin(name: str, actual: Any) -> Any:
    """Python's ``min``, ``range``, ... where the name still means that."""
    if actual is not getattr(builtins, name):
        return actual
    return _BUILTINS[name]


def _extremum(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        values = [plain(a) for a in (args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)]
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
