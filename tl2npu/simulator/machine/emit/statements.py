"""Loops, branches, named values and stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.interval import interval
from tl2npu.simulator.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Let,
    Op,
    Parallel,
    Return,
    Scope,
    Stmt,
    Store,
    While,
)
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.machine.emit import blocks
from tl2npu.simulator.machine.emit.operators import Operators, is_sync
from tl2npu.simulator.machine.operand import Operand


class Emitter(Operators):
    """One core's program; see ``State`` for what it is given."""

    def program(self, parameters: list[Var | Buffer], body: list[Stmt]) -> tuple[str, dict[str, Any]]:
        """The source of ``def program(X, S, <parameters>)`` and the names that it needs."""
        arguments = ["X", "S"]
        for parameter in parameters:
            arguments.append(self.buffer(parameter) if isinstance(parameter, Buffer) else self.define(parameter))
        self.space.update({"A": self.arithmetic, "np": np, "NAN": math.nan, "INF": math.inf, "_Operand": Operand})
        self.rebound = {b.number for stmt in statements(body) if isinstance(stmt, Op) for b in self.replaced(stmt)}
        self.block(body)
        text = [f"def program({', '.join(arguments)}):", *self.lines, "    return", "    yield 0"]
        return "\n".join(text), self.space

    # structure

    def block(self, body: list[Stmt]) -> None:
        """A statement list. What it names is not known after it."""
        start, names, lanes = len(self.lines), dict(self.names), dict(self.lanes)
        for stmt in body:
            self.statement(stmt)
        if len(self.lines) == start:
            self.put("pass")
        if self.depth > 1:
            self.names, self.lanes = names, lanes

    def indented(self, body: list[Stmt]) -> None:
        """A statement list one step deeper."""
        self.depth += 1
        self.block(body)
        self.depth -= 1

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        self.site = self.site_of(stmt.site)
        if self.watched is not None and isinstance(stmt, (Op, Store)) and not is_sync(stmt):
            self.put(f"X.begin({len(self.watched)})")
            self.watched.append((stmt, bool(self.rank), self.site))
        rule = getattr(self, f"do_{type(stmt).__name__}")
        try:
            rule(stmt)
        except SimulatorError as error:
            if not error.site.line:
                raise type(error)(error.plain, stmt.site) from None
            raise

    @contextmanager
    def looping(self, mask: str | None) -> Iterator[None]:
        """Inside of a loop that starts under ``mask``, or of a ``T.Parallel`` (None)."""
        self.loops.append(mask)
        try:
            yield
        finally:
            self.loops.pop()

    def masked(self, condition: str, body: list[Stmt]) -> None:
        """Statements for the lanes of a condition only."""
        before = self.mask
        name = self.fresh("m")
        self.put(f"{name} = {condition}" if not before else f"{name} = {before} & {condition}")
        self.mask = name
        names, lanes = dict(self.names), dict(self.lanes)
        self.block(body)
        self.names, self.lanes = names, lanes
        self.mask = before

    def do_Scope(self, stmt: Scope) -> None:
        for inner in stmt.body:
            self.statement(inner)

    def do_Alloc(self, stmt: Alloc) -> None:
        self.buffer(stmt.buffer)

    # loops

    def do_For(self, stmt: For) -> None:
        self._bound(stmt)
        if self.spans(stmt.extent) or self.spans(stmt.start):
            self._ragged(stmt)
            return
        start, extent = self.code(stmt.start), self.code(stmt.extent)
        name = self.define(stmt.var)
        if start == "0" and stmt.step == 1:
            self.put(f"for {name} in range({extent}):")
        else:
            self.put(f"for {name} in range({start}, {start} + ({extent}) * {stmt.step}, {stmt.step}):")
        before = self.trips
        self.trips *= stmt.extent if isinstance(stmt.extent, int) else 1
        with self.looping(self.mask):
            self.indented(stmt.body)
        self.trips = before

    def _bound(self, stmt: For) -> None:
        """What values the loop variable can have."""
        start, extent = interval(stmt.start, self.ranges), interval(stmt.extent, self.ranges)
        if start is not None and extent is not None:
            last = max(extent[1] - 1, 0) * stmt.step
            self.ranges[stmt.var] = (start[0] + min(last, 0), start[1] + max(last, 0))

    def _ragged(self, stmt: For) -> None:
        """A serial loop in a ``T.Parallel`` whose start or length differs between lanes."""
        count, limit, first = self.fresh("n"), self.fresh("e"), self.fresh("s")
        self.put(f"{first} = {self.snapshot(stmt.start)}")
        self.put(f"{limit} = {self.snapshot(stmt.extent)}")
        within = f"np.where({self.mask}, {limit}, 0)" if self.mask else limit
        self.put(f"for {count} in range(int(np.max({within}, initial=0))):")
        self.depth += 1
        name = self.define(stmt.var)
        self.put(f"{name} = {first} + {count} * {stmt.step}")
        if self.spans(stmt.start):
            self.lanes[stmt.var] = -1
        before = self.mask
        if self.spans(stmt.extent):
            self.mask = self.fresh("m")
            self.put(f"{self.mask} = {f'{before} & ' if before else ''}({count} < {limit})")
        with self.looping(self.mask):
            self.block(stmt.body)
        self.mask = before
        self.lanes.pop(stmt.var, None)
        self.depth -= 1

    def do_While(self, stmt: While) -> None:
        if self.spans(stmt.condition):
            raise UnsupportedOperator("a while loop whose condition differs between the iterations of a T.Parallel")
        self.put(f"while {self.code(stmt.condition)}:")
        with self.looping(self.mask):
            self.indented(stmt.body)

    def do_Break(self, stmt: Break) -> None:
        self._leave("break")

    def do_Continue(self, stmt: Continue) -> None:
        self._leave("continue")

    def do_Return(self, stmt: Return) -> None:
        if self.rank or self.mask:
            raise UnsupportedOperator("a thread_return that some threads of a block reach and others do not")
        self.put("return")

    def _leave(self, word: str) -> None:
        if not self.loops or self.loops[-1] is None:
            raise UnsupportedOperator(f"a {word} that is in no loop, or directly in a T.Parallel")
        if self.mask != self.loops[-1]:
            raise UnsupportedOperator(f"a {word} under a condition that differs between the iterations of a T.Parallel")
        self.put(word)

    def do_Parallel(self, stmt: Parallel) -> None:
        outermost = not self.rank
        if outermost and self.in_blocks:
            self.demand(blocks.of_parallel(stmt))
        if outermost:
            self.rank = _rank(stmt)
        taken = sum(1 for axis in self.lanes.values() if axis >= 0)
        names, lanes = dict(self.names), dict(self.lanes)
        sizes = []
        for extent in stmt.extents:
            if self.spans(extent):
                raise UnsupportedOperator("a T.Parallel whose extent differs between the iterations of another one")
            code = self.code(extent)
            if not isinstance(extent, int):
                size = self.fresh("e")
                self.put(f"{size} = max({code}, 0)")
                code = size
            sizes.append(code)
        for axis, (var, size) in enumerate(zip(stmt.vars, sizes, strict=True), taken):
            name = self.define(var)
            if size.isdecimal():
                self.put(f"{name} = {self.constant(_axis(int(size), axis, self.rank))}")
            else:
                shape = ", ".join("-1" if n == axis else "1" for n in range(self.rank))
                self.put(f"{name} = np.arange({size}).reshape({shape})")
            self.lanes[var] = axis
            self.extents[var] = size
        with self.looping(None):
            self.block(stmt.body)
        self.names, self.lanes = names, lanes
        if outermost:
            self.rank = 0

    # branches, values, stores

    def do_If(self, stmt: If) -> None:
        if self.spans(stmt.condition):
            condition = self.fresh("c")
            self.put(f"{condition} = {self.truth(stmt.condition)}")
            self.masked(condition, stmt.then)
            if stmt.orelse:
                self.masked(f"np.logical_not({condition})", stmt.orelse)
            return
        self.put(f"if {self.code(stmt.condition)}:")
        self.indented(stmt.then)
        if stmt.orelse:
            self.put("else:")
            self.indented(stmt.orelse)

    def do_Let(self, stmt: Let) -> None:
        code, spans = self.snapshot(stmt.value), self.spans(stmt.value)
        if not spans and dtypes.is_integer(stmt.var.dtype):
            found = interval(stmt.value, self.ranges)
            if found is not None:
                self.ranges[stmt.var] = found
        self.put(f"{self.define(stmt.var)} = {code}")
        if spans:
            self.lanes[stmt.var] = -1

    def do_Store(self, stmt: Store) -> None:
        value = self.code(stmt.value)
        if self.mask or any(self.spans(i) for i in stmt.indices) or self.spans(stmt.value):
            self.put_lanes(stmt.buffer, stmt.indices, value)
            return
        name, index = self.buffer(stmt.buffer), self.tuple(stmt.indices)
        self.put(f"X.store({stmt.buffer.number}, {name}, {index}, {value}, {self.site})")


def _rank(stmt: Parallel) -> int:
    """The number of axes that a nest of ``T.Parallel`` needs."""
    inner = [s for s in statements(stmt.body) if isinstance(s, Parallel)]
    return len(stmt.vars) + max((_rank(s) for s in inner), default=0)


def _axis(size: int, axis: int, rank: int) -> np.ndarray:
    """0, 1, ... along one of the axes of the lanes; read-only, since it is made once."""
    values = np.arange(size).reshape([-1 if n == axis else 1 for n in range(rank)])
    values.flags.writeable = False
    return values
