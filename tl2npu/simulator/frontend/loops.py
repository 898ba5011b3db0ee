"""The loops of the language: ``range``, ``T.serial``, ``T.Parallel``, ``T.Pipelined``, ``T.Persistent``, ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir.expr import Expr, Value, Var, binary, call, plain
from tl2npu.simulator.ir.parts import free
from tl2npu.simulator.ir.stmt import NOWHERE, Break, For, If, Parallel


class LoopSpec:
    """Something that a ``for`` goes over."""

    def trace(self, builder: Builder, names: list[str]) -> Iterator[Any]:
        """Yield the loop variables once, with the loop's body open."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        """A helper that is no macro, or a comprehension, goes over a loop of the language: constants are unrolled."""
        raise TraceError(
            "a loop of the language outside of a prim_func or macro, or in a comprehension",
            Builder.current().here() if Builder.active() else NOWHERE,
        )


@dataclass
class SerialSpec(LoopSpec):
    """One loop variable."""

    start: Value
    stop: Value
    step: int
    kind: str
    notes: Mapping[str, Any] = field(default_factory=dict)

    def extent(self) -> Value:
        """The number of turns."""
        length: Value = binary("-", self.stop, self.start)
        if self.step == 1:
            return length
        return call("ceildiv", length, self.step)  # type: ignore[no-any-return]

    def trace(self, builder: Builder, names: list[str]) -> Iterator[Any]:
        if len(names) > 1:
            raise TraceError(f"one loop variable is needed, {len(names)} are given", builder.here())
        hint = names[0] if names and names[0] != "_" else "i"
        var = Var(builder.unique(hint), hint=hint)
        extent = self.extent()
        if isinstance(extent, int):
            extent = max(extent, 0)
        statement = For(var, self.start, extent, [], self.kind, self.step, self.notes)
        builder.add(statement)
        with builder.inside(statement.body):
            yield var

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.start, Expr) or isinstance(self.stop, Expr):
            raise TraceError("a loop with an extent that is known only when the kernel runs, outside a prim_func")
        return iter(self._range())

    def _range(self) -> range:
        return range(self.start, self.stop, self.step)  # type: ignore[arg-type]

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._range())

    def __len__(self) -> int:
        return len(self._range())

    def __getitem__(self, item: Any) -> Any:
        return self._range()[item]

    def __contains__(self, item: object) -> bool:
        return item in self._range()


@dataclass
class ParallelSpec(LoopSpec):
    """``T.Parallel`` and ``T.grid``."""

    extents: tuple[Value, ...]
    kind: str = "parallel"

    def trace(self, builder: Builder, names: list[str]) -> Iterator[Any]:
        if names and len(names) != len(self.extents) and len(names) != 1:
            raise TraceError(f"{len(self.extents)} loop variables are needed, {len(names)} are given", builder.here())
        named = names if len(names) == len(self.extents) else [f"i{n}" for n in range(len(self.extents))]
        hints = [n if n != "_" else "i" for n in named]
        variables = tuple(Var(builder.unique(hint), hint=hint) for hint in hints)
        result = variables[0] if len(variables) == 1 else variables
        if self.kind == "parallel":
            statement = Parallel(variables, self.extents, [])
            builder.add(statement)
            outer = len(builder.lanes)
            builder.lanes += zip(variables, self.extents, strict=True)
            with builder.inside(statement.body):
                yield result
            del builder.lanes[outer:]
            inner = statement.body[0] if len(statement.body) == 1 else None
            if isinstance(inner, Parallel) and not any(free(n) & set(variables) for n in inner.extents):
                # one nest, as the compiler sees it
                statement.vars, statement.extents = (*variables, *inner.vars), (*self.extents, *inner.extents)
                statement.body = inner.body
        else:
            opened = 0
            for var, extent in zip(variables, self.extents, strict=True):
                loop = For(var, 0, extent, [], "serial")
                builder.add(loop)
                builder.bodies.append(loop.body)
                opened += 1
            yield result
            del builder.bodies[-opened:]


@dataclass
class PersistentSpec(LoopSpec):
    """``T.Persistent(domain, wave, index)``: the tiles of a domain, ``wave`` at a time (ir.cc:110-190)."""

    domain: tuple[Value, ...]
    wave: Value
    index: Value
    group: int = 8

    def trace(self, builder: Builder, names: list[str]) -> Iterator[Any]:
        total: Value = 1
        for extent in self.domain:
            total = binary("*", total, extent)
        turn = Var(builder.unique("w"))
        loop = For(turn, 0, call("ceildiv", total, self.wave), [])
        builder.add(loop)
        with builder.inside(loop.body):
            tile = builder.let("tile", binary("+", binary("*", turn, self.wave), self.index))
            builder.add(If(binary(">=", tile, total), [Break()], []))
            yield self._coordinates(tile)

    def _coordinates(self, tile: Value) -> Any:
        """Groups of columns of the last axis, then the axes before it, fastest first."""
        group = min(self.group, self.domain[-1]) if isinstance(self.domain[-1], int) else self.group
        rest, inner = binary("//", tile, group), binary("%", tile, group)
        middle: list[Value] = []
        for extent in reversed(self.domain[:-1]):
            middle.append(binary("%", rest, extent))
            rest = binary("//", rest, extent)
        last = binary("+", binary("*", rest, group), inner)
        return (*reversed(middle), last)


def _bounds(args: tuple[Any, ...]) -> tuple[Value, Value, int]:
    values = [plain(a) for a in args]
    if len(values) == 1:
        return 0, values[0], 1
    step = values[2] if len(values) > 2 and values[2] is not None else 1
    if not isinstance(step, int) or step == 0:
        raise TraceError("the step of a loop has to be a constant other than 0")
    return (values[0], values[1], step) if values[1] is not None else (0, values[0], step)


def serial(*args: Any, step: Any = None, annotations: Any = None, **_: Any) -> SerialSpec:
    """``T.serial(stop)``, ``T.serial(start, stop, step)``; Python's ``range`` in a kernel is the same."""
    start, stop, by = _bounds(args)
    return SerialSpec(start, stop, step or by, "serial", annotations or {})


def unroll(*args: Any, step: Any = None, **_: Any) -> SerialSpec:
    """``T.unroll``: as serial, for what a simulator can see of it."""
    start, stop, by = _bounds(args)
    return SerialSpec(start, stop, step or by, "unroll")


def vectorized(*args: Any, **_: Any) -> ParallelSpec:
    """``T.vectorized``: all lanes at once."""
    start, stop, _step = _bounds(args)
    if start != 0:
        raise TraceError("a vectorized loop that does not start at 0")
    return ParallelSpec((stop,))


def parallel(*extents: Any, **_: Any) -> ParallelSpec:
    """``T.Parallel(*extents)``."""
    return ParallelSpec(tuple(plain(e) for e in extents))


def grid(*extents: Any) -> ParallelSpec:
    """``T.grid``: nested serial loops."""
    return ParallelSpec(tuple(plain(e) for e in extents), "serial")


def pipelined(start: Any, stop: Any = None, num_stages: Any = 0, **notes: Any) -> SerialSpec:
    """``T.Pipelined(start, stop, num_stages)``; with one bound it is the stop."""
    start, stop = plain(start), plain(stop)
    begin, end = (0, start) if stop is None else (start, stop)
    return SerialSpec(begin, end, 1, "pipelined", {"num_stages": plain(num_stages), **notes})


def persistent(domain: Any, wave_size: Any, index: Any, group_size: Any = 8) -> PersistentSpec:
    """``T.Persistent``."""
    return PersistentSpec(tuple(plain(d) for d in domain), plain(wave_size), plain(index), plain(group_size))
