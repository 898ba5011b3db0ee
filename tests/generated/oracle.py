"""What a program computes: an interpreter of :mod:`tests.generated.program` in NumPy that shares nothing with tl2npu.

Blocks are executed one after the other, the iterations of a :class:`Parallel` as one vector of lanes. A program
without a single meaning is discarded: reads of unwritten memory, accesses behind the end of a tile, two iterations
that write one element, an iteration that reads what another one wrote.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.generated import program as p
from tests.generated.values import (
    BOOL,
    EPSILON,
    UNKNOWN,
    Discard,
    Value,
    binary,
    cast,
    choose,
    is_float,
    number,
    settle,
    unary,
)

Lanes = np.ndarray


@dataclass(eq=False)
class Memory:
    """A tile or a tensor: numbers, what is not known of them, and which of them have been written."""

    dtype: str
    value: np.ndarray
    slack: np.ndarray
    written: np.ndarray
    is_tensor: bool = False

    @classmethod
    def blank(cls, dtype: str, shape: Sequence[int], is_tensor: bool = False) -> Memory:
        shape = tuple(shape)
        return cls(dtype, np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), is_tensor)


@dataclass
class Lane:
    """The iterations that execute a statement: their names, which they are, and those of which it is not known."""

    env: dict[str, Value]
    ids: Lanes
    unsure: Lanes

    def of(self, chosen: Lanes, unsure: Lanes) -> Lane:
        """Some of them."""
        env = {
            name: Value(
                v.dtype,
                np.broadcast_to(v.value, self.ids.shape)[chosen],
                np.broadcast_to(v.slack, self.ids.shape)[chosen],
            )
            for name, v in self.env.items()
        }
        return Lane(env, self.ids[chosen], (self.unsure | unsure)[chosen])


@dataclass
class _Accesses:
    """Who wrote and read the elements of a buffer in a :class:`Parallel`; -1 for nobody, -2 for several."""

    writer: np.ndarray
    reader: np.ndarray


def run(program: p.Program, inputs: Mapping[str, np.ndarray]) -> dict[str, Value]:
    """The outputs of all launches, and tensors that were only read. Raises Discard for what has no meaning."""
    sizes = {name: number(value) for name, value in program.sizes}
    memory: dict[str, Memory] = {}
    for tensor in program.tensors:
        shape = tuple(_int(_evaluated(extent, sizes)) for extent in tensor.shape)
        made = memory[tensor.name] = Memory.blank(tensor.dtype, shape, True)
        if tensor.name in inputs:
            made.value[...] = inputs[tensor.name].astype(np.float64)
            made.written[...] = True
    for launch in program.launches:
        _launch(launch, sizes, memory, bool(program.spelled("at_once")))
    outputs = {}
    for tensor in program.tensors:
        if tensor.kind != "in":
            if not memory[tensor.name].written.all():
                raise Discard(f"{tensor.name} is not written everywhere")
            outputs[tensor.name] = Value(tensor.dtype, memory[tensor.name].value, memory[tensor.name].slack)
    return outputs


def agrees(expected: Value, got: np.ndarray) -> np.ndarray:
    """Which elements of a result are right, or cannot be judged."""
    got = np.asarray(got).astype(np.float64)
    with np.errstate(invalid="ignore"):
        room = expected.slack * 1.5
        if is_float(expected.dtype):
            room = (
                room
                + 4 * EPSILON[expected.dtype] * np.abs(np.where(np.isfinite(expected.value), expected.value, 0.0))
                + 1e-30
            )
        close = np.abs(got - expected.value) <= room
    same: np.ndarray = close | (got == expected.value) | ~np.isfinite(expected.slack)
    return same


def _launch(launch: p.Launch, sizes: dict[str, Value], tensors: dict[str, Memory], at_once: bool) -> None:
    grid = [_int(_evaluated(extent, sizes)) for _, extent in launch.blocks]
    for index in itertools.product(*(range(n) for n in grid)):
        env = dict(sizes)
        for (name, _), at in zip(launch.blocks, index, strict=True):
            env[name] = number(at)
        memory = dict(tensors)
        for tile in launch.tiles:
            memory[tile.name] = Memory.blank(tile.dtype, [_int(_evaluated(d, sizes)) for d in tile.shape])
        _Block(memory, at_once).execute(launch.body, env)


def _int(value: Value) -> int:
    if np.ndim(value.value) or value.slack > 0:
        raise Discard("a size that depends on data")
    return int(value.value)


def _truth(value: Value) -> Value:
    if value.dtype != BOOL:
        raise Discard("a number as a truth value")
    return value


def _evaluated(expr: p.Expr, env: dict[str, Value]) -> Value:
    one = np.zeros(1, np.int64)
    got = _Block({}).value(expr, Lane(env, one, np.zeros(1, bool)))
    return Value(got.dtype, np.asarray(got.value).reshape(-1)[0], np.asarray(got.slack).reshape(-1)[0])


@dataclass(eq=False)
class _Block:
    """One block, with its memory."""

    memory: dict[str, Memory]
    at_once: bool = False
    accesses: dict[str, _Accesses] | None = None

    def execute(self, body: Sequence[p.Stmt], env: dict[str, Value]) -> None:
        for statement in body:
            self._statement(statement, env)

    def _statement(self, s: p.Stmt, env: dict[str, Value]) -> None:
        if isinstance(s, p.Copy):
            self._copy(s, env)
        elif isinstance(s, p.Fill):
            place = self._box(s.target, env)
            filled = cast(self.memory[s.target.buffer].dtype, number(s.value))
            self._put(s.target.buffer, np.ix_(*place), filled)
        elif isinstance(s, p.Reduce):
            self._reduce(s)
        elif isinstance(s, p.Gemm):
            self._gemm(s)
        elif isinstance(s, p.For):
            for turn in range(_int(self._scalar(s.extent, env))):
                self.execute(s.body, {**env, s.var: number(turn)})
        elif isinstance(s, p.If):
            condition = _truth(self._scalar(s.condition, env))
            if condition.slack > 0:
                raise Discard("not known which way the block goes")
            self.execute(s.then if condition.value else s.orelse, dict(env))
        elif isinstance(s, p.Let):
            env[s.name] = self._scalar(s.value, env)
        elif isinstance(s, p.Macro):
            self.execute(s.body, dict(env))
        elif isinstance(s, p.Parallel):
            self._parallel(s, env)
        else:
            self._lanes([s], Lane(env, np.zeros(1, np.int64), np.zeros(1, bool)))

    def _scalar(self, expr: p.Expr, env: dict[str, Value]) -> Value:
        got = self.value(expr, Lane(env, np.zeros(1, np.int64), np.zeros(1, bool)))
        return Value(got.dtype, np.asarray(got.value).reshape(-1)[0], np.asarray(got.slack).reshape(-1)[0])

    # whole tiles

    def _box(self, region: p.Region, env: dict[str, Value]) -> list[np.ndarray]:
        box = []
        for start, length in zip(region.starts, region.lengths, strict=True):
            first = _int(self._scalar(start, env))
            box.append(np.arange(first, first + (1 if length is None else _int(self._scalar(length, env)))))
        memory = self.memory[region.buffer]
        for indices, extent in zip(box, memory.value.shape, strict=True):
            if not memory.is_tensor and len(indices) and (indices[0] < 0 or indices[-1] >= extent):
                raise Discard("a part of a tile that is not inside of it")
        return box

    def _copy(self, s: p.Copy, env: dict[str, Value]) -> None:
        source, target = self.memory[s.source.buffer], self.memory[s.target.buffer]
        there, here = self._box(s.source, env), self._box(s.target, env)
        long = [len(b) for b in there if len(b) > 1]
        if long != [len(b) for b in here if len(b) > 1]:
            raise Discard("a copy between boxes that differ")
        inside = np.ones([len(b) for b in there], bool)
        for axis, (b, extent) in enumerate(zip(there, source.value.shape, strict=True)):
            inside &= ((b >= 0) & (b < extent)).reshape([-1 if a == axis else 1 for a in range(len(there))])
        place = np.ix_(*(np.clip(b, 0, extent - 1) for b, extent in zip(there, source.value.shape, strict=True)))
        shape = [len(b) for b in here]
        got = Value(
            source.dtype, np.where(inside, source.value[place], 0.0), np.where(inside, source.slack[place], 0.0)
        )
        got = cast(target.dtype, got) if target.dtype != source.dtype else got
        written = np.where(inside, source.written[place], True).reshape(shape)
        if target.is_tensor and not written.all():
            raise Discard("unwritten memory goes into a tensor")
        kept = [b < extent for b, extent in zip(here, target.value.shape, strict=True)]
        at, cut = np.ix_(*(b[k] for b, k in zip(here, kept, strict=True))), np.ix_(*kept)
        target.value[at] = np.asarray(got.value).reshape(shape)[cut]
        target.slack[at] = np.asarray(got.slack).reshape(shape)[cut]
        target.written[at] = written[cut]

    def _put(self, name: str, place: Any, value: Value) -> None:
        memory = self.memory[name]
        memory.value[place], memory.slack[place], memory.written[place] = value.value, value.slack, True

    def _whole(self, name: str) -> Memory:
        if not self.memory[name].written.all():
            raise Discard(f"{name} is not written everywhere")
        return self.memory[name]

    def _reduce(self, s: p.Reduce) -> None:
        source, target = self._whole(s.source), self.memory[s.target]
        value, slack, axis = source.value, source.slack, s.axis % source.value.ndim
        if s.kind.startswith("abs"):
            value = np.abs(value)
        if s.kind in ("sum", "abssum"):
            narrow = target.dtype if is_float(target.dtype) else source.dtype
            each = np.abs(np.where(np.isfinite(value), value, 0.0)).sum(axis)
            room = slack.sum(axis) + 2 * EPSILON.get(narrow, 0.0) * each * value.shape[axis] ** 0.5 * 4
            result = Value(source.dtype, value.sum(axis), room)
        else:
            best = value.min(axis) if s.kind == "min" else value.max(axis)
            result = Value(source.dtype, best, slack.max(axis))
        result = cast(target.dtype, settle(source.dtype, result.value, result.slack))
        if not s.clear:
            self._whole(s.target)
            before = Value(target.dtype, target.value, target.slack)
            result = binary({"sum": "+", "abssum": "+"}.get(s.kind, s.kind.removeprefix("abs")), before, result)
        if np.shape(result.value) != target.value.shape:
            raise Discard("a reduction into another shape")
        self._put(s.target, (...,), result)

    def _gemm(self, s: p.Gemm) -> None:
        a, b = self._whole(s.a), self._whole(s.b)
        c = self.memory[s.c] if s.clear else self._whole(s.c)
        left, right = (a.value, a.slack), (b.value, b.slack)
        if s.transpose_a:
            left = (left[0].T, left[1].T)
        if s.transpose_b:
            right = (right[0].T, right[1].T)
        if not all(np.isfinite(m).all() for m in (*left, *right)):
            raise Discard("a product of numbers that are not known")
        if left[0].shape[1] != right[0].shape[0] or (left[0].shape[0], right[0].shape[1]) != c.value.shape:
            raise Discard("a product of tiles that do not fit")
        result = left[0] @ right[0]
        exact = EPSILON.get(c.dtype, 0.0) * 2 * (np.abs(left[0]) @ np.abs(right[0])) * 4
        slack = np.abs(left[0]) @ right[1] + left[1] @ (np.abs(right[0]) + right[1]) + exact
        got = settle(c.dtype, result, slack)
        if not s.clear:
            got = binary("+", Value(c.dtype, c.value, c.slack), got)
        self._put(s.c, (...,), got)

    # element by element

    def _parallel(self, s: p.Parallel, env: dict[str, Value]) -> None:
        extents = [_int(self._scalar(extent, env)) for extent in s.extents]
        count = int(np.prod(extents))
        if not count:
            return
        grids = np.unravel_index(np.arange(count), extents)
        inner = {
            **env,
            **{v: Value("int32", g.astype(np.float64), np.zeros(count)) for v, g in zip(s.vars, grids, strict=True)},
        }
        self.accesses = {}
        try:
            self._lanes(s.body, Lane(inner, np.arange(count), np.zeros(count, bool)))
        finally:
            self.accesses = None

    def _lanes(self, body: Sequence[p.Stmt], lanes: Lane) -> None:
        for s in body:
            if not len(lanes.ids):
                return
            if isinstance(s, p.Assign):
                self._assign(s, lanes)
            elif isinstance(s, p.Let):
                lanes.env[s.name] = self.value(s.value, lanes)
            elif isinstance(s, p.If):
                condition = _truth(self.value(s.condition, lanes))
                truth = np.broadcast_to(condition.value != 0, lanes.ids.shape)
                unsure = np.broadcast_to(condition.slack > 0, lanes.ids.shape)
                self._lanes(s.then, lanes.of(truth | unsure, unsure))
                self._lanes(s.orelse, lanes.of(~truth | unsure, unsure))
            elif isinstance(s, p.For):
                for turn in range(_int(self._scalar(s.extent, lanes.env))):
                    self._lanes(s.body, Lane({**lanes.env, s.var: number(turn)}, lanes.ids, lanes.unsure))
            else:
                raise Discard(f"{type(s).__name__} of one element")

    def _assign(self, s: p.Assign, lanes: Lane) -> None:
        memory = self.memory[s.target.buffer]
        value = self.value(p.Bin(s.op, s.target, s.value) if s.op else s.value, lanes)
        if value.dtype == BOOL:
            raise Discard("a truth value in a tile")
        place = self._place(s.target, lanes)
        flat = np.ravel_multi_index(place, memory.value.shape)
        if len(np.unique(flat)) != len(flat):
            raise Discard("two iterations write one element")
        result = cast(memory.dtype, value)
        self._wrote(s.target.buffer, flat, np.broadcast_to(result.value, flat.shape), lanes)
        memory.value.flat[flat] = np.broadcast_to(result.value, flat.shape)
        memory.slack.flat[flat] = np.where(lanes.unsure, UNKNOWN, np.broadcast_to(result.slack, flat.shape))
        memory.written.flat[flat] = True

    def _place(self, ref: p.Ref, lanes: Lane) -> tuple[np.ndarray, ...]:
        shape = self.memory[ref.buffer].value.shape
        place = []
        for expr, extent in zip(ref.index, shape, strict=True):
            index = self.value(expr, lanes)
            if np.any(index.slack > 0) or np.any(index.value < 0) or np.any(index.value >= extent):
                raise Discard("an index that is not inside, or not known")
            place.append(np.broadcast_to(index.value, lanes.ids.shape).astype(np.int64))
        return tuple(place)

    def _seen(self, name: str) -> _Accesses:
        assert self.accesses is not None
        size = self.memory[name].value.size
        if name not in self.accesses:
            self.accesses[name] = _Accesses(np.full(size, -1, np.int64), np.full(size, -1, np.int64))
        return self.accesses[name]

    def _wrote(self, name: str, flat: np.ndarray, value: np.ndarray, lanes: Lane) -> None:
        if self.accesses is None:
            return
        seen = self._seen(name)
        others = (seen.writer[flat] != -1) & (seen.writer[flat] != lanes.ids)
        if others.any():
            raise Discard("two iterations write one element")
        read = (seen.reader[flat] != -1) & (seen.reader[flat] != lanes.ids)
        if not self.at_once and (read & (self.memory[name].value.flat[flat] != value)).any():
            raise Discard("an iteration writes what another one read")
        seen.writer[flat] = lanes.ids

    def _read(self, name: str, flat: np.ndarray, lanes: Lane) -> None:
        if self.accesses is None:
            return
        seen = self._seen(name)
        if ((seen.writer[flat] != -1) & (seen.writer[flat] != lanes.ids)).any():
            raise Discard("an iteration reads what another one wrote")
        lowest, highest = np.full(seen.reader.shape, np.iinfo(np.int64).max), np.full(seen.reader.shape, -1, np.int64)
        np.minimum.at(lowest, flat, lanes.ids)
        np.maximum.at(highest, flat, lanes.ids)
        alone = (lowest == highest) & ((seen.reader == -1) | (seen.reader == highest))
        seen.reader = np.where(highest == -1, seen.reader, np.where(alone, highest, -2))

    def value(self, e: p.Expr, lanes: Lane) -> Value:
        """An expression in every lane."""
        if isinstance(e, p.Const):
            return number(e.value)
        if isinstance(e, p.Name):
            if e.name not in lanes.env:
                raise Discard(f"{e.name} has no value here")
            return lanes.env[e.name]
        if isinstance(e, p.Ref):
            return self._element(e, lanes)
        if isinstance(e, p.Un):
            return unary(e.op, self.value(e.operand, lanes))
        if isinstance(e, p.Cast):
            return cast(e.dtype, self.value(e.operand, lanes))
        if isinstance(e, p.Select):
            return self._select(e, lanes)
        return binary(e.op, self.value(e.left, lanes), self.value(e.right, lanes))

    def _element(self, e: p.Ref, lanes: Lane) -> Value:
        memory = self.memory[e.buffer]
        flat = np.ravel_multi_index(self._place(e, lanes), memory.value.shape)
        if not memory.written.flat[flat].all():
            raise Discard(f"{e.buffer} is read before it is written")
        self._read(e.buffer, flat, lanes)
        return Value(memory.dtype, memory.value.flat[flat], memory.slack.flat[flat])

    def _select(self, e: p.Select, lanes: Lane) -> Value:
        condition = _truth(self.value(e.condition, lanes))
        truth = np.broadcast_to(condition.value != 0, lanes.ids.shape)
        unsure = np.broadcast_to(condition.slack > 0, lanes.ids.shape)
        arms = []
        for expr, taken in ((e.yes, truth | unsure), (e.no, ~truth | unsure)):
            got = self.value(expr, lanes.of(taken, unsure))
            value, slack = np.zeros(lanes.ids.shape), np.zeros(lanes.ids.shape)
            value[taken], slack[taken] = got.value, got.slack
            arms.append(Value(got.dtype, value, slack))
        return choose(Value(BOOL, truth.astype(np.float64), np.where(unsure, UNKNOWN, 0.0)), *arms)
