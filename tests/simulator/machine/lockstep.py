"""A slow reading of ``T.Parallel``: statement by statement, each for one lane after the other, one element at a time.

Reads of a statement come before its writes. ``run`` is the emitter's side of the comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Load, Unary, Var
from tl2npu.simulator.ir.stmt import For, If, Let, Parallel, Stmt, Store
from tl2npu.simulator.machine.access import Access
from tl2npu.simulator.machine.emit import Emitter

Lane = dict[Var, Any]


class Slow:
    """Executes statements on arrays, by buffer number. Raises SimulatorError as the emitter's program should."""

    def __init__(self, arrays: dict[int, np.ndarray]) -> None:
        self.arrays = arrays

    def block(self, body: list[Stmt], lanes: list[Lane]) -> None:
        for stmt in body:
            getattr(self, f"do_{type(stmt).__name__}")(stmt, lanes)

    def do_Parallel(self, stmt: Parallel, lanes: list[Lane]) -> None:
        inner = []
        for lane in lanes:
            for index in itertools.product(*(range(self.value(e, lane)) for e in stmt.extents)):
                inner.append({**lane, **dict(zip(stmt.vars, index, strict=True))})
        self.block(stmt.body, inner)

    def do_For(self, stmt: For, lanes: list[Lane]) -> None:
        bounds = [(lane, self.value(stmt.start, lane), self.value(stmt.extent, lane)) for lane in lanes]
        for turn in range(max((extent for _, _, extent in bounds), default=0)):
            inner = [{**lane, stmt.var: start + turn * stmt.step} for lane, start, extent in bounds if turn < extent]
            self.block(stmt.body, inner)

    def do_If(self, stmt: If, lanes: list[Lane]) -> None:
        truth = [bool(self.value(stmt.condition, lane)) for lane in lanes]
        self.block(stmt.then, [lane for lane, true in zip(lanes, truth, strict=True) if true])
        self.block(stmt.orelse, [lane for lane, true in zip(lanes, truth, strict=True) if not true])

    def do_Let(self, stmt: Let, lanes: list[Lane]) -> None:
        for lane in lanes:
            lane[stmt.var] = self.value(stmt.value, lane)

    def do_Store(self, stmt: Store, lanes: list[Lane]) -> None:
        written: dict[Any, Any] = {}
        array = self.arrays[stmt.buffer.number]
        for lane in lanes:
            at = self.place(stmt.buffer, stmt.indices, lane)
            value = array.dtype.type(self.value(stmt.value, lane))
            if at in written and written[at] != value:
                raise SimulatorError("two lanes write different values")
            written[at] = value
        for at, value in written.items():
            array[at] = value

    def place(self, buffer: Buffer, indices: tuple[Any, ...], lane: Lane) -> tuple[int, ...]:
        at = tuple(int(self.value(i, lane)) for i in indices)
        if not all(0 <= i < n for i, n in zip(at, self.arrays[buffer.number].shape, strict=True)):
            raise SimulatorError("out of bounds")
        return at

    def value(self, e: Any, lane: Lane) -> Any:
        if not isinstance(e, Expr):
            return e
        if isinstance(e, Var):
            return lane[e]
        if isinstance(e, Const):
            return np.dtype(e.dtype).type(e.value)
        if isinstance(e, Load):
            found = self.arrays[e.buffer.number][self.place(e.buffer, e.indices, lane)]
            return int(found) if found.dtype.kind == "i" else found
        if isinstance(e, Unary):
            return not self.value(e.value, lane)
        if isinstance(e, Cast):
            return np.dtype(e.dtype).type(self.value(e.value, lane))
        if isinstance(e, Call):
            if e.name == "if_then_else":
                return self.value(e.args[1] if self.value(e.args[0], lane) else e.args[2], lane)
            return {"max": max, "min": min}[e.name](*(self.value(a, lane) for a in e.args))
        assert isinstance(e, Binary)
        left = self.value(e.left, lane)
        if e.op == "and":
            return bool(left) and bool(self.value(e.right, lane))
        if e.op == "or":
            return bool(left) or bool(self.value(e.right, lane))
        right = self.value(e.right, lane)
        return eval("x op y".replace("op", e.op), {"x": left, "y": right})


class Recording(Access):
    """An observer, so that nothing outside of the lanes that are on may be touched. It checks that itself."""

    touched = 0

    def touch(self, number: int, array: np.ndarray, key: Any, kind: str, site: int) -> None:
        self.touched += 1
        assert array[key] is not None  # the key names elements of the array


def emitted(body: list[Stmt], buffers: list[Buffer], direct: bool) -> str:
    """The emitter's text."""
    return Emitter(True, Precise(), [], direct).program(list(buffers), body)[0]


def run(body: list[Stmt], buffers: list[Buffer], arrays: dict[int, np.ndarray], direct: bool, watched: bool) -> None:
    """Execute statements by the emitter's program."""
    emitter = Emitter(True, Precise(), [], direct)
    source, space = emitter.program(list(buffers), body)
    exec(source, space)
    access = (Recording if watched else Access)({b.number: b.name for b in buffers}, emitter.sites)
    steps: Iterator[Any] = space["program"](access, None, *(arrays[b.number] for b in buffers))
    with np.errstate(all="ignore"):
        assert next(steps, None) is None
